//! `evidence.mcap`: what judging needs, and no picture.
//!
//! # Format, `firsthand.evidence/1`
//!
//! An MCAP file (<https://mcap.dev/spec>) with chunks compressed by zstd. Integers are little-endian, times are int64
//! nanoseconds, and -2^63 stands for "absent" in every column.
//!
//! - **Attachments** `spec.toml`, `rig.toml` and whatever else the take is bound to, verbatim.
//! - **Metadata** `firsthand.episode` `{schema: "firsthand.evidence/1", take: <JSON>}` and `firsthand.devices`
//!   `{devices: <JSON list of device descriptions>}` at the start, `firsthand.close` `{close: <JSON>}` at the end of a
//!   take that was closed, `firsthand.recovery` `{recovery: <JSON>}` in one that was recovered after a crash.
//! - **Channels** `samples/<stream>` (message encoding `x-firsthand-samples`), `edges` and `ticks`
//!   (`x-firsthand-columns`), without schema. The channel's metadata says `layout = delta-i64-le/1` and names the
//!   `columns`, joined by commas, in the order in which a message holds them.
//! - **Channel** `events` (message encoding `json`): one JSON object a message, with at least `kind`.
//!
//! A message of layout `delta-i64-le/1` is
//!
//! ```text
//! u32                rows
//! i64 x rows         first column:  first value, then the difference of each value to the one before it
//! i64 x rows         second column, the same way
//! ...
//! ```
//!
//! with differences modulo 2^64, nothing before, between or after. There is one message per channel and flush, so a
//! column of the take is the concatenation of the messages' columns in file order. Columns of a sample channel:
//!
//! | column | meaning |
//! |---|---|
//! | `received` | ordinal of receipt, one counter over all streams of the recorder; clocks are mapped in this order |
//! | `incarnation` | how often the device's worker was started; each start has its own unwrapping and map |
//! | `epoch` | number of the arming |
//! | `warmup` | 0: a sample of the take, its bytes are in the episode; 1: received outside of the take (warm-up, preview), here because it taught the clock map; 2: received in the take and lost to back-pressure, here for the same reason |
//! | `sequence`, `trigger_index`, `device_ticks`, `exposure_ns` | as the device said |
//! | `arrival_ns` | CLOCK_MONOTONIC of the host |
//! | `domain` | clock domain of `device_ticks`: 0 ptp, 1 device, 2 monotonic, 3 utc |
//! | `size` | bytes of the payload |
//! | `digest` | first 8 bytes of BLAKE3 of the payload as little-endian int64; absent where `warmup` is not 0 |
//! | `rig_ns` | rig time of mid-exposure as mapped live; absent where the sample has no stamp, or one of a domain that is not its device's |
//!
//! `edges` has `index, time_ns`; `ticks` has `tick, reference_ns, residual_ns`: what the live monitor called final.
//!
//! `evidence.mcap` is synced after `episode.mcap` at every flush, so it never claims bytes that are not on the disk.

pub mod column;
pub mod layout;
pub mod read;

use std::path::Path;

use mcap::Compression;
use mcap::records::MessageHeader;

use crate::channels::evidence_channels;
use crate::device::DeviceInfo;
use crate::digest::FileDigest;
use crate::error::RecordResult;
use crate::mcap_file::McapFile;

/// Name of the file within an episode's folder.
pub const FILE: &str = "evidence.mcap";
/// MCAP profile of the file.
pub const PROFILE: &str = "firsthand.evidence";
/// The format above.
pub const SCHEMA: &str = "firsthand.evidence/1";
/// Uncompressed size at which a chunk ends.
pub const CHUNK_BYTES: u64 = 1 << 20;
/// Rows of one message, so that a message stays far below any reader's limit.
const ROWS_PER_MESSAGE: usize = 1 << 16;
/// Channel numbers before the first sample channel, see [`evidence_channels`].
const EDGES_ID: u16 = 1;
const TICKS_ID: u16 = 2;
const EVENTS_ID: u16 = 3;
const FIRST_SAMPLES_ID: u16 = 4;

/// A verbatim document that the evidence holds.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// Name, such as `spec.toml`.
    pub name: String,
    /// Media type.
    pub media_type: String,
    /// Content.
    pub data: Vec<u8>,
}

/// One row of a sample channel, see the table above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the table of the module says it")]
pub struct Row {
    pub received: i64,
    pub incarnation: i64,
    pub epoch: i64,
    pub warmup: i64,
    pub sequence: i64,
    pub trigger_index: i64,
    pub device_ticks: i64,
    pub arrival_ns: i64,
    pub exposure_ns: i64,
    pub domain: i64,
    pub size: i64,
    pub digest: i64,
    pub rig_ns: i64,
}

/// `Row::warmup` of a sample of the take.
pub const OF_TAKE: i64 = 0;
/// `Row::warmup` of a sample received outside of the take.
pub const WARMUP: i64 = 1;
/// `Row::warmup` of a sample of the take that was lost to back-pressure.
pub const LOST: i64 = 2;

impl Row {
    /// The values in the order of [`layout::SAMPLE_COLUMNS`].
    fn columns(&self) -> [i64; layout::SAMPLE_COLUMNS.len()] {
        [
            self.received,
            self.incarnation,
            self.epoch,
            self.warmup,
            self.sequence,
            self.trigger_index,
            self.device_ticks,
            self.arrival_ns,
            self.exposure_ns,
            self.domain,
            self.size,
            self.digest,
            self.rig_ns,
        ]
    }
}

/// Writer of `evidence.mcap`: gathers rows and writes them at `sync`.
pub struct EvidenceWriter {
    file: McapFile,
    samples: Vec<Vec<[i64; 13]>>,
    edges: Vec<[i64; 2]>,
    ticks: Vec<[i64; 3]>,
    events: Vec<String>,
    messages: u32,
    time: u64,
    scratch: Vec<u8>,
}

impl EvidenceWriter {
    /// Creates the file in `folder` with everything that is known at the start, synced.
    ///
    /// `start_ns` is the log time of attachments and of messages until a sample says better.
    ///
    /// # Errors
    /// [`crate::RecordError::Disk`], [`crate::RecordError::DiskFull`].
    pub fn create(
        folder: &Path,
        take: &str,
        devices_json: &str,
        devices: &[DeviceInfo],
        attachments: &[Attachment],
        start_ns: i64,
    ) -> RecordResult<Self> {
        let mut file = McapFile::create(&folder.join(FILE), PROFILE, CHUNK_BYTES, Some(Compression::Zstd))?;
        let time = u64::try_from(start_ns).unwrap_or(0).max(1);
        file.metadata("firsthand.episode", &[("schema", SCHEMA), ("take", take)])?;
        file.metadata("firsthand.devices", &[("devices", devices_json)])?;
        for attachment in attachments {
            file.attach(&attachment.name, &attachment.media_type, time, &attachment.data)?;
        }
        let channels = evidence_channels(devices);
        for channel in &channels {
            file.add_channel(channel)?;
        }
        file.sync()?;
        Ok(Self {
            file,
            samples: vec![Vec::new(); channels.len().saturating_sub(usize::from(FIRST_SAMPLES_ID) - 1)],
            edges: Vec::new(),
            ticks: Vec::new(),
            events: Vec::new(),
            messages: 0,
            time,
            scratch: Vec::new(),
        })
    }

    /// Takes in a row of stream number `stream`.
    pub fn row(&mut self, stream: usize, row: &Row) {
        for time in [row.arrival_ns, row.rig_ns] {
            self.time = self.time.max(u64::try_from(time).unwrap_or(0));
        }
        if let Some(rows) = self.samples.get_mut(stream) {
            rows.push(row.columns());
        }
    }

    /// Takes in a trigger edge.
    pub fn edge(&mut self, index: i64, time_ns: i64) {
        self.edges.push([index, time_ns]);
    }

    /// Takes in a final tick of the live monitor.
    pub fn tick(&mut self, tick: i64, reference_ns: i64, residual_ns: i64) {
        self.ticks.push([tick, reference_ns, residual_ns]);
    }

    /// Takes in an event, a JSON object.
    pub fn event(&mut self, json: String) {
        self.events.push(json);
    }

    /// Whether anything waits for `sync`.
    pub fn has_pending(&self) -> bool {
        !(self.edges.is_empty() && self.ticks.is_empty() && self.events.is_empty())
            || self.samples.iter().any(|rows| !rows.is_empty())
    }

    /// Writes what was taken in and returns when it is on the disk.
    ///
    /// # Errors
    /// [`crate::RecordError::Disk`], [`crate::RecordError::DiskFull`].
    pub fn sync(&mut self) -> RecordResult<()> {
        self.write_pending()?;
        self.file.sync()
    }

    /// Writes the end of a closed take, the summary, syncs and gives the digests.
    ///
    /// # Errors
    /// [`crate::RecordError::Disk`], [`crate::RecordError::DiskFull`].
    pub fn finish(mut self, close: &str) -> RecordResult<FileDigest> {
        self.write_pending()?;
        self.file.metadata("firsthand.close", &[("close", close)])?;
        self.file.finish()
    }

    /// Leaves the file without a summary, for recovery.
    pub fn leave(self) {
        self.file.leave();
    }

    fn write_pending(&mut self) -> RecordResult<()> {
        let samples = std::mem::take(&mut self.samples);
        for (rows, id) in samples.iter().zip(FIRST_SAMPLES_ID..) {
            self.write_rows(id, rows)?;
        }
        self.samples = samples;
        self.samples.iter_mut().for_each(Vec::clear);
        let edges = std::mem::take(&mut self.edges);
        self.write_rows(EDGES_ID, &edges)?;
        let ticks = std::mem::take(&mut self.ticks);
        self.write_rows(TICKS_ID, &ticks)?;
        for event in std::mem::take(&mut self.events) {
            self.write(EVENTS_ID, event.as_bytes())?;
        }
        Ok(())
    }

    fn write_rows<const N: usize>(&mut self, channel_id: u16, rows: &[[i64; N]]) -> RecordResult<()> {
        for rows in rows.chunks(ROWS_PER_MESSAGE) {
            let mut data = std::mem::take(&mut self.scratch);
            data.clear();
            layout::encode(rows, &mut data);
            self.write(channel_id, &data)?;
            self.scratch = data;
        }
        Ok(())
    }

    fn write(&mut self, channel_id: u16, data: &[u8]) -> RecordResult<()> {
        self.messages = self.messages.wrapping_add(1);
        let header =
            MessageHeader { channel_id, sequence: self.messages, log_time: self.time, publish_time: self.time };
        self.file.message(&header, data)
    }
}
