//! One thread that owns both files of a take, behind a queue bounded in bytes.
//!
//! The thread flushes at least every `flush_ns`: episode first, evidence second, so evidence never claims bytes that
//! are not on the disk. What does not fit into the queue is counted `lost_queue`. When the disk refuses, the thread
//! leaves the files as far as they are durable, counts everything that is not `lost_disk`, and ends when the take does:
//! at the end `received = durable + lost_queue + lost_disk` for every stream.

mod thread;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;

use crate::channels::streams;
use crate::counts::{Counters, Counts};
use crate::device::DeviceInfo;
use crate::digest::FileDigest;
use crate::episode::EpisodeWriter;
use crate::error::{RecordError, RecordResult};
use crate::evidence::{Attachment, EvidenceWriter, Row};
use crate::mcap_file::sync_folder;
use thread::WriterThread;

/// Digests of the files of a take, by name.
pub type Files = BTreeMap<&'static str, FileDigest>;

/// Samples of one stream on their way to the files.
#[derive(Debug)]
pub struct Batch {
    /// Number of the stream.
    pub stream: usize,
    /// One row per sample, in order; `digest` is filled in by the writer thread.
    pub rows: Vec<Row>,
    /// Lengths of payload and metadata per sample.
    pub lengths: Vec<(u32, u32)>,
    /// The bytes, in the order of the wire.
    pub payload: Bytes,
}

/// What goes to the writer thread.
#[derive(Debug)]
pub enum Item {
    /// Samples for both files.
    Batch(Batch),
    /// Rows for the evidence alone: warm-up, or samples whose bytes were lost.
    Rows {
        /// Number of the stream.
        stream: usize,
        /// The rows.
        rows: Vec<Row>,
    },
    /// Trigger edges: index and time.
    Edges(Vec<[i64; 2]>),
    /// Final ticks: number, reference, residual.
    Ticks(Vec<[i64; 3]>),
    /// An event, JSON object.
    Event(String),
    /// Finish with this JSON.
    Stop(String),
}

impl Item {
    /// What it counts for in the queue.
    fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Batch(batch) => batch.payload.len() + batch.rows.len() * size_of::<Row>(),
            Self::Rows { rows, .. } => rows.len() * size_of::<Row>(),
            Self::Edges(edges) => edges.len() * 16,
            Self::Ticks(ticks) => ticks.len() * 24,
            Self::Event(text) | Self::Stop(text) => text.len(),
        };
        bytes as u64
    }
}

/// How much the queue takes at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// The whole batch.
    Batch,
    /// Rows only: the bytes are lost.
    Rows,
    /// Nothing: the disk has stalled for so long that not even rows find room.
    Nothing,
    /// The disk has refused.
    Failed,
}

/// What a take needs to start.
#[derive(Debug)]
pub struct TakeSpec<'a> {
    /// Folder of the episode.
    pub folder: &'a Path,
    /// JSON of the take.
    pub take: &'a str,
    /// Devices as JSON, verbatim.
    pub devices_json: &'a str,
    /// The same, parsed.
    pub devices: &'a [DeviceInfo],
    /// Verbatim documents for the evidence.
    pub attachments: &'a [Attachment],
    /// Time of the take's start.
    pub start_ns: i64,
    /// Longest time between two flushes.
    pub flush: Duration,
    /// Bound of the queue.
    pub queue_bytes: u64,
    /// Wait for room instead of losing samples: for sources that can wait, such as a replay.
    pub lossless: bool,
}

#[derive(Debug)]
struct Shared {
    queued: AtomicU64,
    failed: AtomicBool,
    /// Why the disk refused, for the live page.
    failure: Mutex<String>,
    counters: Vec<Counters>,
    gate: Mutex<()>,
    drained: Condvar,
}

/// The running writer of one take.
pub struct TakeWriter {
    sender: Sender<Item>,
    shared: Arc<Shared>,
    thread: JoinHandle<RecordResult<Files>>,
    queue_bytes: u64,
    lossless: bool,
    folder: PathBuf,
}

impl TakeWriter {
    /// Creates both files, with everything known at the start on the disk, and starts the thread.
    ///
    /// # Errors
    /// [`RecordError::Disk`], [`RecordError::DiskFull`], [`RecordError::Invalid`].
    pub fn start(spec: &TakeSpec<'_>) -> RecordResult<Self> {
        let TakeSpec { folder, take, devices_json, devices, attachments, start_ns, .. } = *spec;
        let evidence = EvidenceWriter::create(folder, take, devices_json, devices, attachments, start_ns)?;
        let episode = EpisodeWriter::create(folder, devices, start_ns)?;
        sync_folder(folder)?;
        let shared = Arc::new(Shared {
            queued: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            failure: Mutex::new(String::new()),
            counters: std::iter::repeat_with(Counters::default).take(streams(devices).count()).collect(),
            gate: Mutex::new(()),
            drained: Condvar::new(),
        });
        let (sender, receiver) = channel();
        let writer = WriterThread::new(receiver, Arc::clone(&shared), episode, evidence, spec);
        let thread = std::thread::Builder::new()
            .name("firsthand-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(|e| RecordError::io("starting the writer of", folder, e))?;
        Ok(Self {
            sender,
            shared,
            thread,
            queue_bytes: spec.queue_bytes,
            lossless: spec.lossless,
            folder: folder.to_path_buf(),
        })
    }

    /// The counters of stream number `stream`.
    pub fn counters(&self, stream: usize) -> Option<&Counters> {
        self.shared.counters.get(stream)
    }

    /// The counts of every stream.
    pub fn counts(&self) -> Vec<Counts> {
        self.shared.counters.iter().map(Counters::read).collect()
    }

    /// Why the disk refused; empty while all is well.
    pub fn failure(&self) -> String {
        self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the queue takes of a batch of that many payload bytes and samples. Waits where the take is lossless.
    pub fn room(&self, payload: usize, samples: usize) -> Room {
        let bytes = (payload + samples * size_of::<Row>()) as u64;
        loop {
            if self.shared.failed.load(Relaxed) {
                return Room::Failed;
            }
            let queued = self.shared.queued.load(Relaxed);
            // A batch larger than the whole queue still goes through an empty one.
            if queued == 0 || queued + bytes <= self.queue_bytes {
                return Room::Batch;
            }
            if !self.lossless {
                // Rows have an eighth of their own, so that the evidence outlives a stall of the disk.
                let rows_fit = queued + bytes - payload as u64 <= self.queue_bytes + self.queue_bytes / 8;
                return if rows_fit { Room::Rows } else { Room::Nothing };
            }
            let gate = self.shared.gate.lock().unwrap_or_else(PoisonError::into_inner);
            // The time-out covers a notification between the check above and the wait.
            drop(self.shared.drained.wait_timeout(gate, Duration::from_millis(5)));
        }
    }

    /// Hands an item over.
    pub fn send(&self, item: Item) {
        self.shared.queued.fetch_add(item.bytes(), Relaxed);
        // The thread outlives the sender unless it panicked, which `stop` reports.
        drop(self.sender.send(item));
    }

    /// Drains the queue, closes the files with `close` (JSON) and waits for the thread.
    ///
    /// # Errors
    /// [`RecordError::Disk`], [`RecordError::DiskFull`]: the take is over, the files are as far as they are durable.
    pub fn stop(self, close: String) -> (RecordResult<Files>, Vec<Counts>) {
        self.send(Item::Stop(close));
        self.end()
    }

    /// Drains the queue and leaves the files without a summary, as a crash would, for recovery.
    pub fn leave(self) -> (RecordResult<Files>, Vec<Counts>) {
        self.end()
    }

    fn end(self) -> (RecordResult<Files>, Vec<Counts>) {
        drop(self.sender);
        let result = self.thread.join().unwrap_or_else(|_| {
            let source = std::io::Error::other("the writer thread panicked");
            Err(RecordError::Disk { doing: "writing", path: self.folder, source })
        });
        (result, self.shared.counters.iter().map(Counters::read).collect())
    }
}
