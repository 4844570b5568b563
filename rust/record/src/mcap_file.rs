//! One MCAP file being written: append-only, digested inline, flushed to the disk on demand, and either finished with
//! a summary or left as it is.
//!
//! Chunks are built in memory and written whole (`disable_seeking`), so a file that is cut at any byte holds every
//! chunk before the cut intact, and the digests of the finished file are those of the bytes as they went out.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcap::records::{MessageHeader, Metadata};
use mcap::write::NoSeek;
use mcap::{Attachment, Compression, WriteOptions, Writer};

use crate::channels::Channel;
use crate::digest::{DigestWriter, FileDigest};
use crate::error::{RecordError, RecordResult};

/// Name that our files carry in their header.
pub const LIBRARY: &str = concat!("firsthand-edge/", env!("CARGO_PKG_VERSION"));

/// Gathers the small writes of record framing; chunks are larger and pass through.
const BUFFER_BYTES: usize = 64 << 10;

/// The file itself. After `shut` it takes nothing more, whatever the layers above still hold.
struct Tap {
    file: Arc<File>,
    shut: Arc<AtomicBool>,
}

impl Write for Tap {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.shut.load(Ordering::Acquire) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        (&*self.file).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

type Sink = BufWriter<DigestWriter<Tap>>;

/// An MCAP file open for appending.
pub struct McapFile {
    path: PathBuf,
    file: Arc<File>,
    shut: Arc<AtomicBool>,
    writer: Writer<NoSeek<Sink>>,
}

impl McapFile {
    /// Creates `path`, which must not exist.
    ///
    /// # Errors
    /// [`RecordError::Disk`] or [`RecordError::DiskFull`].
    pub fn create(
        path: &Path,
        profile: &str,
        chunk_bytes: u64,
        compression: Option<Compression>,
    ) -> RecordResult<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(|e| RecordError::io("creating", path, e))?;
        let file = Arc::new(file);
        let shut = Arc::new(AtomicBool::new(false));
        let tap = Tap { file: Arc::clone(&file), shut: Arc::clone(&shut) };
        let writer = WriteOptions::new()
            .profile(profile)
            .library(LIBRARY)
            .chunk_size(Some(chunk_bytes))
            .compression(compression)
            // The writer thread compresses by itself: threads of its own would take cores from the rig.
            .compression_threads(0)
            .disable_seeking(true)
            .create(NoSeek::new(BufWriter::with_capacity(BUFFER_BYTES, DigestWriter::new(tap))))
            .map_err(|e| RecordError::mcap("writing", path, e))?;
        Ok(Self { path: path.to_path_buf(), file, shut, writer })
    }

    /// Adds a channel and its schema with their own ids; again is harmless.
    ///
    /// # Errors
    /// [`RecordError::Disk`] when another channel has that id, or the disk refuses.
    pub fn add_channel(&mut self, channel: &Channel) -> RecordResult<()> {
        let mut schema_id = 0;
        if let Some((id, schema)) = &channel.schema {
            schema_id = self
                .writer
                .add_schema_with_id(*id, &schema.name, &schema.encoding, &schema.data)
                .map_err(|e| RecordError::mcap("writing", &self.path, e))?;
        }
        self.writer
            .add_channel_with_id(channel.id, schema_id, &channel.topic, &channel.message_encoding, &channel.metadata)
            .map_err(|e| RecordError::mcap("writing", &self.path, e))?;
        Ok(())
    }

    /// Writes one message to a channel that was added.
    ///
    /// # Errors
    /// [`RecordError::Invalid`] when a time is 0: readers take 0 for "no time", and chunk bounds go wrong.
    /// [`RecordError::Disk`], [`RecordError::DiskFull`].
    pub fn message(&mut self, header: &MessageHeader, data: &[u8]) -> RecordResult<()> {
        if header.log_time == 0 || header.publish_time == 0 {
            return Err(RecordError::Invalid(format!(
                "message {} of channel {} has log time {} and publish time {}; both must be above 0",
                header.sequence, header.channel_id, header.log_time, header.publish_time
            )));
        }
        self.writer.write_to_known_channel(header, data).map_err(|e| RecordError::mcap("writing", &self.path, e))
    }

    /// Writes an attachment.
    ///
    /// # Errors
    /// [`RecordError::Disk`], [`RecordError::DiskFull`].
    pub fn attach(&mut self, name: &str, media_type: &str, time_ns: u64, data: &[u8]) -> RecordResult<()> {
        let attachment = Attachment {
            log_time: time_ns,
            create_time: time_ns,
            name: name.to_owned(),
            media_type: media_type.to_owned(),
            data: data.into(),
        };
        self.writer.attach(&attachment).map_err(|e| RecordError::mcap("writing", &self.path, e))
    }

    /// Writes a metadata record with one entry.
    ///
    /// # Errors
    /// [`RecordError::Disk`], [`RecordError::DiskFull`].
    pub fn metadata(&mut self, name: &str, entries: &[(&str, &str)]) -> RecordResult<()> {
        let metadata = entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        self.writer
            .write_metadata(&Metadata { name: name.to_owned(), metadata })
            .map_err(|e| RecordError::mcap("writing", &self.path, e))
    }

    /// Finishes the chunk and returns when everything is on the disk (fdatasync).
    ///
    /// # Errors
    /// [`RecordError::Disk`], [`RecordError::DiskFull`].
    pub fn sync(&mut self) -> RecordResult<()> {
        self.writer.flush().map_err(|e| RecordError::mcap("writing", &self.path, e))?;
        self.file.sync_data().map_err(|e| RecordError::io("syncing", &self.path, e))
    }

    /// Writes summary and footer, syncs, and gives the digests of the whole file.
    ///
    /// # Errors
    /// [`RecordError::Disk`], [`RecordError::DiskFull`]; the file is then left as far as it is.
    pub fn finish(mut self) -> RecordResult<FileDigest> {
        let finished = self.writer.finish().map_err(|e| RecordError::mcap("closing", &self.path, e));
        let path = self.path.clone();
        let file = Arc::clone(&self.file);
        if finished.is_err() {
            self.shut.store(true, Ordering::Release);
        }
        finished?;
        let mut sink = self.writer.into_inner().into_inner();
        sink.flush().map_err(|e| RecordError::io("closing", &path, e))?;
        file.sync_all().map_err(|e| RecordError::io("syncing", &path, e))?;
        Ok(sink.get_ref().digest())
    }

    /// Leaves the file as it is: what the layers above still hold never reaches the disk.
    pub fn leave(self) {
        self.shut.store(true, Ordering::Release);
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// fsyncs a folder, so that names created or renamed in it survive a power cut.
///
/// # Errors
/// [`RecordError::Disk`].
pub fn sync_folder(folder: &Path) -> RecordResult<()> {
    File::open(folder).and_then(|d| d.sync_all()).map_err(|e| RecordError::io("syncing", folder, e))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn channel() -> Channel {
        Channel {
            id: 1,
            topic: "/a".into(),
            message_encoding: "json".into(),
            schema: None,
            metadata: BTreeMap::new(),
            always: true,
        }
    }

    fn header(time: u64) -> MessageHeader {
        MessageHeader { channel_id: 1, sequence: 0, log_time: time, publish_time: time }
    }

    #[test]
    fn the_inline_digest_is_that_of_the_finished_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.mcap");
        let mut file = McapFile::create(&path, "p", 1 << 20, Some(Compression::Zstd)).unwrap();
        file.add_channel(&channel()).unwrap();
        file.attach("spec.toml", "application/toml", 1, b"x = 1").unwrap();
        for i in 1..1000u64 {
            file.message(&header(i), &i.to_le_bytes()).unwrap();
            if i % 300 == 0 {
                file.sync().unwrap();
            }
        }
        let digest = file.finish().unwrap();
        assert_eq!(digest, crate::digest::digest_file(&path).unwrap());
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(mcap::MessageStream::new(&bytes).unwrap().map(Result::unwrap).count(), 999);
    }

    #[test]
    fn time_zero_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = McapFile::create(&dir.path().join("a.mcap"), "p", 1 << 20, None).unwrap();
        file.add_channel(&channel()).unwrap();
        assert!(matches!(file.message(&header(0), b"x"), Err(RecordError::Invalid(_))));
    }

    #[test]
    fn a_file_that_is_left_keeps_only_what_was_synced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.mcap");
        let mut file = McapFile::create(&path, "p", 1 << 20, None).unwrap();
        file.add_channel(&channel()).unwrap();
        file.message(&header(1), b"kept").unwrap();
        file.sync().unwrap();
        let durable = std::fs::metadata(&path).unwrap().len();
        file.message(&header(2), b"gone").unwrap();
        file.leave();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), durable);
    }
}
