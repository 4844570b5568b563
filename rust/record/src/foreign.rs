//! Anybody's MCAP as columns of stamps, at the speed of its decompression: <https://mcap.dev/spec>.
//!
//! The file is read from its first byte to its last in blocks, chunks are decompressed in blocks, and of a message no
//! more is looked at than its stamp takes; so memory is eight bytes a stamp and a few blocks, whatever a length says.
//! Every checksum is compared and every message counted against the summary. For log times, a chunk that message indexes
//! follow is passed over unread: the walk from record to record still finds every chunk, so an index in the summary that
//! lost one hides nothing.

mod gather;
mod walk;
mod window;

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{RecordError, RecordResult};

pub use gather::Topic;

/// Which times of a message are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The stamp in the message; the log times of topics whose messages carry none.
    Header,
    /// The log time, when the recorder took the message in.
    Log,
    /// The publish time, when it was sent.
    Publish,
}

/// What a file holds.
#[derive(Debug)]
pub struct Found {
    /// Topics with at least one message.
    pub topics: Vec<Topic>,
    /// Chunks whose messages were told by their indexes; neither their content nor its checksum was looked at.
    pub chunks_indexed: u64,
    /// Chunks that were read.
    pub chunks_read: u64,
    /// Whether the summary counts the messages, and so whether their number was compared.
    pub counted: bool,
}

/// Why there are no stamps.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// The file cannot be opened or read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Not a whole MCAP.
    #[error("{path} is truncated or damaged ({what}); recover it with an MCAP tool and audit the result", path = path.display())]
    Damaged {
        /// The file concerned.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The caller's progress function said so.
    #[error("reading was stopped")]
    Stopped,
}

/// Reads the stamps of every topic.
///
/// # Arguments
/// `progress` is told the bytes passed and the bytes of the file, block after block, and says whether to go on.
///
/// # Errors
/// [`ForeignError`]; a file that is damaged anywhere gives no stamps at all.
pub fn read_stamps(
    path: &Path,
    wanted: Wanted,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Found, ForeignError> {
    let file = window::FileAt::open(path, progress)?;
    walk::walk(file, wanted).map_err(|fault| match fault {
        Fault::Io(source) => RecordError::io("reading", path, source).into(),
        Fault::Damaged(what) => ForeignError::Damaged { path: path.to_path_buf(), what },
        Fault::Undescribed(id) => ForeignError::Damaged {
            path: path.to_path_buf(),
            what: format!("a message of channel {id}, which it does not describe"),
        },
        Fault::Stopped => ForeignError::Stopped,
    })
}

/// What ends a walk.
#[derive(Debug)]
enum Fault {
    Io(io::Error),
    Damaged(String),
    /// A message of a channel that is not described, or whose schema is not.
    Undescribed(u16),
    Stopped,
}

impl Fault {
    fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }
}

impl From<io::Error> for Fault {
    /// An error of the operating system is the disk's; whatever a decompressor says is damage.
    fn from(error: io::Error) -> Self {
        if error.get_ref().is_some_and(|inner| inner.is::<window::Stop>()) {
            Self::Stopped
        } else if error.raw_os_error().is_some() {
            Self::Io(error)
        } else {
            Self::Damaged(format!("it does not decompress: {error}"))
        }
    }
}

/// Opens a file for [`read_stamps`].
fn open(path: &Path) -> RecordResult<(std::fs::File, u64)> {
    let opened = std::fs::File::open(path).and_then(|file| Ok((file.metadata()?, file)));
    match opened {
        Ok((about, file)) if about.is_file() => Ok((file, about.len())),
        Ok(_) => Err(RecordError::unreadable(path, "it is not a file; give the file itself")),
        Err(source) => Err(RecordError::io("opening", path, source)),
    }
}
