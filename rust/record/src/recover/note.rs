//! What recovery found, as both files and the manifest keep it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Version of the note.
pub const SCHEMA: &str = "firsthand.recovery/1";

/// A range of the old file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hole {
    /// First byte.
    pub start: u64,
    /// Byte after the last.
    pub end: u64,
    /// Why, as half a sentence.
    pub reason: String,
    /// Log time of the earliest message in it, where its header says so.
    pub first_ns: Option<u64>,
    /// Log time of the latest.
    pub last_ns: Option<u64>,
    /// Messages in it, where an index says so.
    pub messages: Option<u64>,
    /// All its bytes are zero, as a file system leaves them after a power cut.
    pub zeros: bool,
}

/// What was found of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileNote {
    /// The file was there.
    pub present: bool,
    /// It was whole, with its summary; nothing was lost.
    pub complete: bool,
    /// Messages kept, by topic.
    pub messages: BTreeMap<String, u64>,
    /// Chunks kept.
    pub chunks_kept: u64,
    /// Chunks that were damaged.
    pub chunks_bad: u64,
    /// Messages of whole chunks whose channel is not known any more; they are kept on `/orphans/<channel id>`.
    pub orphans: u64,
    /// Length before.
    pub bytes_in: u64,
    /// Length after; None where it is not known yet, in the note that the evidence itself holds.
    pub bytes_out: Option<u64>,
    /// What could not be read.
    pub holes: Vec<Hole>,
}

/// What was found of an episode, as it is written into the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// [`SCHEMA`].
    pub schema: String,
    /// The episode was not whole.
    pub torn: bool,
    /// By file name.
    pub found: BTreeMap<String, FileNote>,
    /// What an earlier recovery had found, before the episode was damaged again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<Note>>,
}

impl Note {
    /// As it is written into the evidence.
    pub fn to_json(&self) -> String {
        // Plain structs with text keys always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl FileNote {
    /// Of a file that is not there.
    pub fn absent() -> Self {
        Self {
            present: false,
            complete: false,
            messages: BTreeMap::new(),
            chunks_kept: 0,
            chunks_bad: 0,
            orphans: 0,
            bytes_in: 0,
            bytes_out: None,
            holes: Vec::new(),
        }
    }
}
