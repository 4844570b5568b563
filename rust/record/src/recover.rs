//! Recovery of an episode that was cut off or damaged: every chunk that is whole is kept, whatever lies before it.
//!
//! Each file is surveyed record by record ([`survey`]). A file that is whole stays as it is, to the byte. Another is
//! written anew as `<name>.recovering`, finished with a summary, synced, opened again by the public `mcap` crate and
//! compared message by message count ([`verify`]), and only then renamed over the old one; the folder is synced last.
//! Bytes that could not be read as records are kept in the new file as attachments `firsthand.hole/<offset>` (of the old
//! file), unless they are all zero: nothing that was recorded is thrown away.
//!
//! What was found is written into both files as metadata `firsthand.recovery` `{recovery: <JSON>}`, the evidence last,
//! so that recovery itself may be cut off at any instant and begun again.

pub mod note;
mod rewrite;
mod survey;
mod verify;

use std::collections::BTreeMap;
use std::path::Path;

use mcap::Compression;
use serde::Deserialize;

use crate::channels::{episode_channels, evidence_channels};
use crate::device::parse_devices;
use crate::digest::digest_file;
use crate::error::{RecordError, RecordResult};
use crate::scan::Source;
use crate::writer::Files;
use crate::{episode, evidence};
use note::{FileNote, Note, SCHEMA};
use rewrite::{Options, rewrite};
use survey::{PieceKind, Survey, survey};

/// Name of the metadata record.
const METADATA: &str = "firsthand.recovery";
/// Prefix of the attachments that hold what could not be read.
pub const HOLE_PREFIX: &str = "firsthand.hole/";
/// What recovery leaves behind.
#[derive(Debug)]
pub struct Recovery {
    /// What was found.
    pub note: Note,
    /// Digests of the files as they are now.
    pub files: Files,
}

/// Recovers the episode in `folder`, in place. Again is harmless and returns the first note.
///
/// # Errors
/// [`RecordError::Unreadable`] when neither file is there, or a file that was written anew does not stand up to the
/// public reader: the old files are then as they were. [`RecordError::Disk`], [`RecordError::DiskFull`].
pub fn recover(folder: &Path) -> RecordResult<Recovery> {
    let evidence_file = Looked::at(folder, evidence::FILE)?;
    let episode_file = Looked::at(folder, episode::FILE)?;
    if evidence_file.is_none() && episode_file.is_none() {
        return Err(RecordError::unreadable(folder, "neither episode.mcap nor evidence.mcap is there; check the path"));
    }
    let devices = evidence_file
        .as_ref()
        .and_then(|file| file.survey.metadata("firsthand.devices", "devices"))
        .and_then(|json| parse_devices(json).ok())
        .unwrap_or_default();

    let mut found = BTreeMap::new();
    let table = episode_channels(&devices).unwrap_or_default();
    let table = table.into_iter().flat_map(|c| [c.samples, c.metadata, c.unparsed]).collect();
    let options = Options { profile: episode::PROFILE, chunk_bytes: episode::CHUNK_BYTES, compression: None };
    let note = match &episode_file {
        None => FileNote::absent(),
        Some(file) => match file.earlier_note::<FileNote>() {
            // An earlier recovery was cut off between the two files: what it found is what counts.
            Some(earlier) if file.whole => FileNote { bytes_out: Some(file.source.len()), ..earlier },
            _ if file.whole => file.note(),
            _ => rewrite(folder, file, &options, table, |note| serde_json::to_string(note).unwrap_or_default())?,
        },
    };
    found.insert(episode::FILE.to_owned(), note);

    let options = Options {
        profile: evidence::PROFILE,
        chunk_bytes: evidence::CHUNK_BYTES,
        compression: Some(Compression::Zstd),
    };
    let earlier = evidence_file.as_ref().and_then(Looked::earlier_note::<Note>);
    let with = |own: &FileNote| {
        let mut found = found.clone();
        found.insert(evidence::FILE.to_owned(), own.clone());
        let torn = found.values().any(|f| !f.complete);
        Note { schema: SCHEMA.to_owned(), torn, found, before: earlier.clone().map(Box::new) }
    };
    let note = match (&evidence_file, &earlier) {
        (None, _) => with(&FileNote::absent()),
        (Some(file), Some(earlier)) if file.whole && earlier.found.get(episode::FILE) == found.get(episode::FILE) => {
            let mut note = earlier.clone();
            if let Some(own) = note.found.get_mut(evidence::FILE) {
                own.bytes_out = Some(file.source.len());
            }
            note
        }
        (Some(file), None) if file.whole && !with(&file.note()).torn => with(&file.note()),
        (Some(file), _) => {
            let text = |own: &FileNote| with(own).to_json();
            with(&rewrite(folder, file, &options, evidence_channels(&devices), text)?)
        }
    };
    let mut files = Files::new();
    for (name, looked) in [(episode::FILE, &episode_file), (evidence::FILE, &evidence_file)] {
        if looked.is_some() {
            files.insert(name, digest_file(&folder.join(name))?);
        }
    }
    Ok(Recovery { note, files })
}

/// One file, surveyed.
struct Looked {
    name: &'static str,
    source: Source,
    survey: Survey,
    whole: bool,
}

impl Looked {
    fn at(folder: &Path, name: &'static str) -> RecordResult<Option<Self>> {
        let path = folder.join(name);
        if !path.try_exists().map_err(|e| RecordError::io("opening", &path, e))? {
            return Ok(None);
        }
        let source = Source::open(&path)?;
        let survey = survey(&source)?;
        // The public reader sees only what has passed the survey: it is not made for arbitrary bytes.
        let whole = survey.finished && survey.holes.is_empty() && verify::verify(&path, &survey.counts).is_ok();
        Ok(Some(Self { name, source, survey, whole }))
    }

    fn note(&self) -> FileNote {
        let mut messages = BTreeMap::new();
        for (id, count) in &self.survey.counts {
            if let Some(channel) = self.survey.channels.get(id) {
                *messages.entry(channel.topic.clone()).or_default() += count;
            }
        }
        FileNote {
            present: true,
            complete: self.whole,
            messages,
            chunks_kept: self.survey.pieces.iter().filter(|p| p.kind == PieceKind::Chunk).count() as u64,
            chunks_bad: self.survey.chunks_bad,
            orphans: 0,
            bytes_in: self.source.len(),
            bytes_out: Some(self.source.len()),
            holes: self.survey.holes.clone(),
        }
    }

    fn earlier_note<T: for<'a> Deserialize<'a>>(&self) -> Option<T> {
        serde_json::from_str(self.survey.metadata(METADATA, "recovery")?).ok()
    }
}
