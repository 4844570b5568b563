//! One thread that owns both files of a take, behind a queue bounded in bytes.
//!
//! The thread flushes at least every `flush_ns`: episode first, evidence second, so evidence never claims bytes that
//! are not on the disk. What does not fit into the queue is counted `lost_queue`. When the disk refuses, the thread
//! leaves the files as far as they are durable, counts everything that is not `lost_disk`, and ends when the take does:
//! at the end `received = durable + lost_queue + lost_disk` for every stream.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::channels::streams;
use crate::device::{ABSENT, DeviceInfo};
use crate::digest::FileDigest;
use crate::episode::{self, EpisodeWriter, Sample};
use crate::error::{RecordError, RecordResult};
use crate::evidence::{self, Attachment, EvidenceWriter, Row};
use crate::mcap_file::sync_folder;

/// Digests of the files of a take, by name.
pub type Files = BTreeMap<&'static str, FileDigest>;

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
        let names: Vec<String> = streams(devices).map(|(_, stream)| stream.name.clone()).collect();
        let shared = Arc::new(Shared {
            queued: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            failure: Mutex::new(String::new()),
            counters: std::iter::repeat_with(Counters::default).take(names.len()).collect(),
            gate: Mutex::new(()),
            drained: Condvar::new(),
        });
        let (sender, receiver) = channel();
        let writer = WriterThread {
            receiver,
            shared: Arc::clone(&shared),
            episode,
            evidence,
            flush: spec.flush,
            dirty: false,
            repeats: vec![(ABSENT, 0); names.len()],
            names,
            folder: folder.to_path_buf(),
        };
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

struct WriterThread {
    receiver: Receiver<Item>,
    shared: Arc<Shared>,
    episode: EpisodeWriter,
    evidence: EvidenceWriter,
    flush: Duration,
    dirty: bool,
    names: Vec<String>,
    /// Per stream: digest of the last payload and how often in a row it came.
    repeats: Vec<(i64, u64)>,
    folder: PathBuf,
}

enum Ended {
    Stop(String),
    Left,
}

impl WriterThread {
    fn run(mut self) -> RecordResult<Files> {
        let ended = match self.record() {
            Ok(ended) => ended,
            Err(error) => return self.fail(error),
        };
        let Ended::Stop(close) = ended else {
            self.episode.leave();
            self.evidence.leave();
            return Ok(Files::new());
        };
        let written: Vec<u64> = self.shared.counters.iter().map(|c| c.written.load(Relaxed)).collect();
        let closed = close_files(self.episode, self.evidence, &close, &self.folder);
        for (counter, written) in self.shared.counters.iter().zip(written) {
            match &closed {
                Ok(_) => counter.durable.store(written, Relaxed),
                Err(_) => {
                    counter.lost_disk.fetch_add(written - counter.durable.load(Relaxed), Relaxed);
                }
            }
        }
        closed
    }

    /// Writes what comes until the take ends.
    fn record(&mut self) -> RecordResult<Ended> {
        let mut flushed = Instant::now();
        loop {
            match self.receiver.recv_timeout(self.flush.saturating_sub(flushed.elapsed())) {
                Ok(Item::Stop(close)) => return Ok(Ended::Stop(close)),
                Ok(item) => {
                    let bytes = item.bytes();
                    let taken = self.take_in(item);
                    self.release(bytes);
                    taken?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.sync()?;
                    return Ok(Ended::Left);
                }
            }
            if flushed.elapsed() >= self.flush {
                self.sync()?;
                flushed = Instant::now();
            }
        }
    }

    fn release(&self, bytes: u64) {
        self.shared.queued.fetch_sub(bytes, Relaxed);
        self.shared.drained.notify_all();
    }

    fn take_in(&mut self, item: Item) -> RecordResult<()> {
        self.dirty = true;
        match item {
            Item::Batch(batch) => return self.batch(batch),
            Item::Rows { stream, rows } => rows.iter().for_each(|row| self.evidence.row(stream, row)),
            Item::Edges(edges) => edges.iter().for_each(|[index, time]| self.evidence.edge(*index, *time)),
            Item::Ticks(ticks) => {
                ticks.iter().for_each(|[tick, reference, residual]| self.evidence.tick(*tick, *reference, *residual));
            }
            Item::Event(json) => self.evidence.event(json),
            Item::Stop(_) => {}
        }
        Ok(())
    }

    fn batch(&mut self, batch: Batch) -> RecordResult<()> {
        let Batch { stream, rows, lengths, payload: mut rest } = batch;
        let shared = Arc::clone(&self.shared);
        let Some(counters) = shared.counters.get(stream) else { return Ok(()) };
        let total = rows.len() as u64;
        for (done, (mut row, (payload, metadata))) in (0u64..).zip(rows.into_iter().zip(lengths)) {
            let payload = take(&mut rest, payload);
            let metadata = take(&mut rest, metadata);
            row.digest = payload_digest(&payload);
            let bytes = (payload.len() + metadata.len()) as u64;
            let sample = Sample {
                stream,
                sequence: row.sequence,
                capture_ns: row.rig_ns,
                arrival_ns: row.arrival_ns,
                payload,
                metadata,
            };
            let parsed = self.episode.write(&sample).inspect_err(|_| {
                counters.lost_disk.fetch_add(total - done, Relaxed);
            })?;
            if !parsed {
                self.unparsed(counters, stream, &sample);
            }
            counters.written.fetch_add(1, Relaxed);
            counters.bytes.fetch_add(bytes, Relaxed);
            if !sample.payload.is_empty() {
                self.note_repeat(counters, stream, row.digest);
            }
            self.evidence.row(stream, &row);
        }
        Ok(())
    }

    fn note_repeat(&mut self, counters: &Counters, stream: usize, digest: i64) {
        if let Some((last, run)) = self.repeats.get_mut(stream) {
            *run = if *last == digest && *run > 0 { *run + 1 } else { 1 };
            *last = digest;
            counters.frozen_run.store(*run, Relaxed);
        }
    }

    /// The first payload of a stream that is not what it should be is an event; the others are counted.
    fn unparsed(&mut self, counters: &Counters, stream: usize, sample: &Sample) {
        if counters.unparsed.fetch_add(1, Relaxed) == 0 {
            let event = serde_json::json!({
                "kind": "payload_unparsed",
                "stream": self.names.get(stream),
                "sequence": sample.sequence,
                "bytes": sample.payload.len(),
            });
            self.evidence.event(event.to_string());
        }
    }

    fn sync(&mut self) -> RecordResult<()> {
        if !self.dirty {
            return Ok(());
        }
        let written: Vec<u64> = self.shared.counters.iter().map(|c| c.written.load(Relaxed)).collect();
        self.episode.sync()?;
        self.evidence.sync()?;
        for (counter, written) in self.shared.counters.iter().zip(written) {
            counter.durable.store(written, Relaxed);
        }
        self.dirty = false;
        Ok(())
    }

    /// Ends in the named state: files left, everything not durable counted, queue drained until the take is over.
    fn fail(self, error: RecordError) -> RecordResult<Files> {
        *self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner) = error.to_string();
        self.shared.failed.store(true, Relaxed);
        self.episode.leave();
        self.evidence.leave();
        for counter in &self.shared.counters {
            counter.lost_disk.fetch_add(counter.written.load(Relaxed) - counter.durable.load(Relaxed), Relaxed);
        }
        while let Ok(item) = self.receiver.recv() {
            self.shared.queued.fetch_sub(item.bytes(), Relaxed);
            self.shared.drained.notify_all();
            match item {
                Item::Batch(batch) => {
                    if let Some(counter) = self.shared.counters.get(batch.stream) {
                        counter.lost_disk.fetch_add(batch.rows.len() as u64, Relaxed);
                    }
                }
                Item::Stop(_) => break,
                Item::Rows { .. } | Item::Edges(_) | Item::Ticks(_) | Item::Event(_) => {}
            }
        }
        Err(error)
    }
}

fn close_files(episode: EpisodeWriter, evidence: EvidenceWriter, close: &str, folder: &Path) -> RecordResult<Files> {
    let episode_digest = match episode.finish() {
        Ok(digest) => digest,
        Err(error) => {
            evidence.leave();
            return Err(error);
        }
    };
    let evidence_digest = evidence.finish(close)?;
    sync_folder(folder)?;
    Ok(Files::from([(episode::FILE, episode_digest), (evidence::FILE, evidence_digest)]))
}

/// The first 8 bytes of BLAKE3, little-endian.
pub fn payload_digest(payload: &[u8]) -> i64 {
    let hash = blake3::hash(payload);
    hash.as_bytes().first_chunk::<8>().map_or(ABSENT, |head| i64::from_le_bytes(*head))
}

/// Splits the next `n` bytes off; what is there if there are fewer.
fn take(bytes: &mut Bytes, n: u32) -> Bytes {
    let n = (n as usize).min(bytes.len());
    bytes.split_to(n)
}
