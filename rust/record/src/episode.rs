//! `episode.mcap`: footage and everything else recorded, in schemas that any MCAP reader opens.
//!
//! One channel per stream, topic `/<stream>`; see [`crate::channels`] and [`crate::schema`]. Publish time is the
//! capture time (rig time of mid-exposure), log time the arrival (capture where the arrival is absent); MCAP's
//! sequence is the device's, modulo 2^32. A sample without a stamp takes the publish time of the latest earlier
//! message and leaves the timestamp out of its message. Chunks are not compressed: pictures are already, and raw
//! bytes must not wait for a compressor.

use std::path::Path;

use bytes::Bytes;
use mcap::records::MessageHeader;

use crate::channels::{StreamChannels, episode_channels, streams};
use crate::device::{ABSENT, DeviceInfo};
use crate::digest::FileDigest;
use crate::error::RecordResult;
use crate::mcap_file::McapFile;
use crate::schema::{Media, encode_record};

/// Name of the file within an episode's folder.
pub const FILE: &str = "episode.mcap";
/// MCAP profile of the file.
pub const PROFILE: &str = "firsthand.episode";
/// Uncompressed size at which a chunk ends.
pub const CHUNK_BYTES: u64 = 4 << 20;

/// What the episode keeps of one sample.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Number of the stream, in the order of [`streams`].
    pub stream: usize,
    /// As the device counts, or [`ABSENT`].
    pub sequence: i64,
    /// Rig time of mid-exposure, or [`ABSENT`].
    pub capture_ns: i64,
    /// Host arrival, or [`ABSENT`].
    pub arrival_ns: i64,
    /// Payload.
    pub payload: Bytes,
    /// The device's own metadata, may be empty.
    pub metadata: Bytes,
}

struct StreamWriter {
    name: String,
    media: Media,
    channels: StreamChannels,
}

/// Writer of `episode.mcap`.
pub struct EpisodeWriter {
    file: McapFile,
    streams: Vec<StreamWriter>,
    last_publish: u64,
    last_log: u64,
    scratch: Vec<u8>,
}

impl EpisodeWriter {
    /// Creates the file in `folder`, with its channels already on the disk.
    ///
    /// `start_ns` stands in for stamps and arrivals until the first message has some.
    ///
    /// # Errors
    /// [`crate::RecordError::Disk`], [`crate::RecordError::DiskFull`], [`crate::RecordError::Invalid`].
    pub fn create(folder: &Path, devices: &[DeviceInfo], start_ns: i64) -> RecordResult<Self> {
        let mut file = McapFile::create(&folder.join(FILE), PROFILE, CHUNK_BYTES, None)?;
        let mut writers = Vec::new();
        for ((_, stream), channels) in streams(devices).zip(episode_channels(devices)?) {
            file.add_channel(&channels.samples)?;
            writers.push(StreamWriter { name: stream.name.clone(), media: Media::parse(&stream.media)?, channels });
        }
        file.sync()?;
        let start = positive(start_ns).unwrap_or(1);
        Ok(Self { file, streams: writers, last_publish: start, last_log: start, scratch: Vec::new() })
    }

    /// Writes one sample. Returns false when its payload was not what the stream's media name promises, so that it
    /// went to `/<stream>/unparsed`.
    ///
    /// # Errors
    /// [`crate::RecordError::Disk`], [`crate::RecordError::DiskFull`].
    pub fn write(&mut self, sample: &Sample) -> RecordResult<bool> {
        let Some(stream) = self.streams.get(sample.stream) else { return Ok(false) };
        let capture = positive(sample.capture_ns);
        let publish_time = capture.unwrap_or(self.last_publish);
        let log_time = positive(sample.arrival_ns).or(capture).unwrap_or(self.last_log);
        self.last_publish = publish_time;
        self.last_log = log_time;

        let stamp = (sample.capture_ns != ABSENT).then_some(sample.capture_ns);
        let header =
            |channel_id| MessageHeader { channel_id, sequence: sequence(sample.sequence), log_time, publish_time };
        let mut parsed = true;
        // Metadata without payload or stamp, as a configuration record is, is no picture and no measurement.
        if stamp.is_some() || !sample.payload.is_empty() || sample.metadata.is_empty() {
            self.scratch.clear();
            parsed = stream.media.encode(&stream.name, stamp, &sample.payload, &mut self.scratch);
            let mut channel = &stream.channels.samples;
            if !parsed {
                encode_record(stamp, &sample.payload, &Bytes::new(), &mut self.scratch);
                channel = &stream.channels.unparsed;
                self.file.add_channel(channel)?;
            }
            self.file.message(&header(channel.id), &self.scratch)?;
        }
        if !sample.metadata.is_empty() {
            let channel = &stream.channels.metadata;
            self.scratch.clear();
            encode_record(stamp, &Bytes::new(), &sample.metadata, &mut self.scratch);
            self.file.add_channel(channel)?;
            self.file.message(&header(channel.id), &self.scratch)?;
        }
        Ok(parsed)
    }

    /// Finishes the chunk and returns when everything is on the disk.
    ///
    /// # Errors
    /// [`crate::RecordError::Disk`], [`crate::RecordError::DiskFull`].
    pub fn sync(&mut self) -> RecordResult<()> {
        self.file.sync()
    }

    /// Writes the summary, syncs and gives the digests.
    ///
    /// # Errors
    /// [`crate::RecordError::Disk`], [`crate::RecordError::DiskFull`].
    pub fn finish(self) -> RecordResult<FileDigest> {
        self.file.finish()
    }

    /// Leaves the file without a summary, for recovery.
    pub fn leave(self) {
        self.file.leave();
    }
}

/// A time that MCAP can hold: above 0.
fn positive(time_ns: i64) -> Option<u64> {
    u64::try_from(time_ns).ok().filter(|t| *t > 0)
}

/// MCAP's sequence is 32 bits; 0 means that there is none.
fn sequence(sequence: i64) -> u32 {
    if sequence == ABSENT { 0 } else { sequence as u32 }
}
