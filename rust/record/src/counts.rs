//! Where the samples of each stream went: counted where it happens, read by everybody.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Where the samples of one stream went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Came over the wire.
    pub received: u64,
    /// Handed to the file.
    pub written: u64,
    /// Covered by an fdatasync.
    pub durable: u64,
    /// Lost because the queue was full.
    pub lost_queue: u64,
    /// Lost because the disk refused.
    pub lost_disk: u64,
    /// Payload and metadata bytes written.
    pub bytes: u64,
    /// Samples that the device counted and that did not come.
    pub sequence_gaps: u64,
    /// Payloads that were not what the media name promises.
    pub unparsed: u64,
    /// Samples in a row with the same payload, up to now.
    pub frozen_run: u64,
}

/// The counts, shared between intake and writer thread.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "see Counts")]
pub struct Counters {
    pub received: AtomicU64,
    pub written: AtomicU64,
    pub durable: AtomicU64,
    pub lost_queue: AtomicU64,
    pub lost_disk: AtomicU64,
    pub bytes: AtomicU64,
    pub sequence_gaps: AtomicU64,
    pub unparsed: AtomicU64,
    pub frozen_run: AtomicU64,
}

impl Counters {
    /// The counts as they are now.
    pub fn read(&self) -> Counts {
        Counts {
            received: self.received.load(Relaxed),
            written: self.written.load(Relaxed),
            durable: self.durable.load(Relaxed),
            lost_queue: self.lost_queue.load(Relaxed),
            lost_disk: self.lost_disk.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            sequence_gaps: self.sequence_gaps.load(Relaxed),
            unparsed: self.unparsed.load(Relaxed),
            frozen_run: self.frozen_run.load(Relaxed),
        }
    }
}
