//! The thread: takes items in, flushes by the clock, closes the files or leaves them.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Batch, Files, Item, Shared, TakeSpec};
use crate::channels::streams;
use crate::counts::Counters;
use crate::device::ABSENT;
use crate::episode::{self, EpisodeWriter, Sample};
use crate::error::{RecordError, RecordResult};
use crate::evidence::{self, EvidenceWriter};
use crate::mcap_file::sync_folder;

pub(super) struct WriterThread {
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
    /// A thread for the files of a take that has just begun.
    pub(super) fn new(
        receiver: Receiver<Item>,
        shared: Arc<Shared>,
        episode: EpisodeWriter,
        evidence: EvidenceWriter,
        spec: &TakeSpec<'_>,
    ) -> Self {
        let names: Vec<String> = streams(spec.devices).map(|(_, stream)| stream.name.clone()).collect();
        Self {
            receiver,
            shared,
            episode,
            evidence,
            flush: spec.flush,
            dirty: false,
            repeats: vec![(ABSENT, 0); names.len()],
            names,
            folder: spec.folder.to_path_buf(),
        }
    }

    /// Writes until the take ends, and closes the files as it ended.
    pub(super) fn run(mut self) -> RecordResult<Files> {
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
