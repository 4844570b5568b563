//! The one error of this crate: what was being done, with which file, and what to do next.

use std::io;
use std::path::{Path, PathBuf};

/// Result of this crate.
pub type RecordResult<T> = Result<T, RecordError>;

/// What can go wrong with a recording on disk. The Python skin maps each variant to one class.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// No room on the disk, no quota left, or the file may not grow further.
    #[error("{doing} {path} failed, the disk has no room ({source}); free space and record again", path = path.display())]
    DiskFull {
        /// The step that failed, as a gerund.
        doing: &'static str,
        /// The file concerned.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The disk refuses: read-only, input/output error, no such folder.
    #[error("{doing} {path} failed ({source}); check the disk and its mount", path = path.display())]
    Disk {
        /// The step that failed, as a gerund.
        doing: &'static str,
        /// The file concerned.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A recording is truncated, foreign or damaged beyond what a reader can take.
    #[error("{path} cannot be read as a recording: {what}", path = path.display())]
    Unreadable {
        /// The file concerned.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// The caller's arguments do not make sense.
    #[error("{0}")]
    Invalid(String),
}

impl RecordError {
    /// Classes an I/O error: no room (ENOSPC, EDQUOT, and EFBIG of a size limit) or any other refusal.
    pub fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let path = path.to_path_buf();
        match source.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::DiskFull { doing, path, source },
            _ => Self::Disk { doing, path, source },
        }
    }

    /// Classes an error of the MCAP library while a file of ours is written.
    pub fn mcap(doing: &'static str, path: &Path, error: mcap::McapError) -> Self {
        match error {
            mcap::McapError::Io(source) => Self::io(doing, path, source),
            // Only what is copied from elsewhere can be at odds with itself.
            conflict @ (mcap::McapError::ConflictingChannels(_) | mcap::McapError::ConflictingSchemas(_)) => {
                Self::unreadable(
                    path,
                    format!("two definitions in it have one number ({conflict}); keep it for inspection"),
                )
            }
            other => Self::Disk { doing, path: path.to_path_buf(), source: io::Error::other(other.to_string()) },
        }
    }

    /// A recording that cannot be read, with the reason.
    pub fn unreadable(path: &Path, what: impl Into<String>) -> Self {
        Self::Unreadable { path: path.to_path_buf(), what: what.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_no_room_are_told_from_other_refusals() {
        // Linux: ENOSPC 28, EDQUOT 122, EFBIG 27; EIO 5, EROFS 30.
        for errno in [28, 122, 27] {
            let error = RecordError::io("writing", Path::new("x"), io::Error::from_raw_os_error(errno));
            assert!(matches!(error, RecordError::DiskFull { .. }), "{errno}");
        }
        for errno in [5, 30] {
            let error = RecordError::io("writing", Path::new("x"), io::Error::from_raw_os_error(errno));
            assert!(matches!(error, RecordError::Disk { .. }), "{errno}");
        }
    }

    #[test]
    fn an_io_error_inside_the_mcap_library_keeps_its_class() {
        let inner = mcap::McapError::Io(io::Error::from_raw_os_error(28));
        assert!(matches!(RecordError::mcap("writing", Path::new("x"), inner), RecordError::DiskFull { .. }));
    }
}
