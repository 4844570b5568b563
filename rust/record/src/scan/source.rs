//! A file of unknown content.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{Fields, MAX_RECORD, RECORD_HEAD};
use crate::error::{RecordError, RecordResult};

/// A file of unknown content, read by position.
pub struct Source {
    path: PathBuf,
    file: File,
    len: u64,
}

impl Source {
    /// Opens `path`.
    ///
    /// # Errors
    /// [`RecordError::Disk`]; [`RecordError::Unreadable`] when it is not there.
    pub fn open(path: &Path) -> RecordResult<Self> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        match opened {
            Ok((about, file)) if about.is_file() => Ok(Self { path: path.to_path_buf(), file, len: about.len() }),
            Ok(_) => Err(RecordError::unreadable(path, "it is not a file; give the file itself")),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(RecordError::unreadable(path, "it is not there; check the path"))
            }
            Err(e) => Err(RecordError::io("opening", path, e)),
        }
    }

    /// Length in bytes when it was opened.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// No byte at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Up to `n` bytes at `offset`; fewer at the end of the file.
    ///
    /// # Errors
    /// [`RecordError::Disk`].
    pub fn read(&self, offset: u64, n: u64) -> RecordResult<Vec<u8>> {
        let n = n.min(self.len.saturating_sub(offset)).min(MAX_RECORD);
        let mut buffer = vec![0; usize::try_from(n).unwrap_or(0)];
        match self.file.read_exact_at(&mut buffer, offset) {
            Ok(()) => Ok(buffer),
            // The file shrank under our hands.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(Vec::new()),
            Err(e) => Err(RecordError::io("reading", &self.path, e)),
        }
    }

    /// Opcode and body length of the record at `offset`, if it fits into the file.
    ///
    /// # Errors
    /// [`RecordError::Disk`].
    pub fn record(&self, offset: u64) -> RecordResult<Option<(u8, u64)>> {
        let head = self.read(offset, RECORD_HEAD)?;
        let mut fields = Fields::new(&head);
        let Some((opcode, length)) = fields.u8().zip(fields.u64()) else { return Ok(None) };
        let room = self.len.saturating_sub(offset).saturating_sub(RECORD_HEAD);
        Ok((length <= room && length <= MAX_RECORD).then_some((opcode, length)))
    }
}
