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

mod survey;
mod verify;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mcap::Compression;
use serde::{Deserialize, Serialize};

use crate::channels::{Channel, episode_channels, evidence_channels};
use crate::device::parse_devices;
use crate::digest::digest_file;
use crate::error::{RecordError, RecordResult};
use crate::mcap_file::{McapFile, sync_folder};
use crate::scan::{self, Chunk, ChunkEntry, RECORD_HEAD, SchemaRecord, Source};
use crate::schema::SchemaText;
use crate::writer::Files;
use crate::{episode, evidence};
use survey::{Piece, PieceKind, Survey, survey};

/// Name of the metadata record.
const METADATA: &str = "firsthand.recovery";
/// Prefix of the attachments that hold what could not be read.
pub const HOLE_PREFIX: &str = "firsthand.hole/";
/// Longest piece of a hole in one attachment.
const HOLE_BYTES: u64 = 16 << 20;
/// Version of the note.
const SCHEMA: &str = "firsthand.recovery/1";

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
    /// Messages of whole chunks whose channel is not known any more.
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
}

/// What recovery leaves behind.
#[derive(Debug)]
pub struct Recovery {
    /// What was found.
    pub note: Note,
    /// Digests of the files as they are now.
    pub files: Files,
}

impl Note {
    /// As it is written into the evidence.
    pub fn to_json(&self) -> String {
        // Plain structs with text keys always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }
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
    let with = |own: &FileNote| {
        let mut found = found.clone();
        found.insert(evidence::FILE.to_owned(), own.clone());
        Note { schema: SCHEMA.to_owned(), torn: found.values().any(|f| !f.complete), found }
    };
    let note = match &evidence_file {
        None => with(&FileNote::absent()),
        Some(file) => match file.earlier_note::<Note>() {
            Some(mut earlier) if file.whole => {
                if let Some(own) = earlier.found.get_mut(evidence::FILE) {
                    own.bytes_out = Some(file.source.len());
                }
                earlier
            }
            _ if file.whole && !with(&file.note()).torn => with(&file.note()),
            _ => {
                let text = |own: &FileNote| with(own).to_json();
                with(&rewrite(folder, file, &options, evidence_channels(&devices), text)?)
            }
        },
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

impl FileNote {
    fn absent() -> Self {
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

struct Options {
    profile: &'static str,
    chunk_bytes: u64,
    compression: Option<Compression>,
}

/// Writes the file anew, proves it and puts it in the place of the old one.
fn rewrite(
    folder: &Path,
    looked: &Looked,
    options: &Options,
    table: Vec<Channel>,
    text: impl Fn(&FileNote) -> String,
) -> RecordResult<FileNote> {
    let path = folder.join(looked.name);
    let fresh = folder.join(format!("{}.recovering", looked.name));
    match fs::remove_file(&fresh) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(RecordError::io("removing", &fresh, e)),
        _ => {}
    }
    let written = write_anew(&fresh, looked, options, table, &text);
    let (note, counts) = match written {
        Ok(done) => done,
        Err(error) => {
            // What is half written is of no use; the old file is as it was.
            drop(fs::remove_file(&fresh));
            return Err(error);
        }
    };
    if let Err(what) = verify::verify(&fresh, &counts) {
        drop(fs::remove_file(&fresh));
        let what = format!(
            "what was recovered of it does not read back, {what}; the file is as it was, keep it for inspection"
        );
        return Err(RecordError::unreadable(&path, what));
    }
    fs::rename(&fresh, &path).map_err(|e| RecordError::io("replacing", &path, e))?;
    sync_folder(folder)?;
    Ok(note)
}

fn write_anew(
    fresh: &Path,
    looked: &Looked,
    options: &Options,
    table: Vec<Channel>,
    text: &impl Fn(&FileNote) -> String,
) -> RecordResult<(FileNote, BTreeMap<u16, u64>)> {
    let file = McapFile::create(fresh, options.profile, options.chunk_bytes, options.compression)?;
    let mut copy = Copy {
        file,
        schemas: BTreeMap::new(),
        table: table.into_iter().map(|channel| (channel.id, channel)).collect(),
        topics: BTreeMap::new(),
        counts: BTreeMap::new(),
        orphans: 0,
    };
    for piece in &looked.survey.pieces {
        copy.piece(&looked.source, piece)?;
    }
    for hole in looked.survey.holes.iter().filter(|hole| !hole.zeros) {
        copy.hole(&looked.source, hole)?;
    }
    let mut note = FileNote { orphans: copy.orphans, bytes_out: None, messages: BTreeMap::new(), ..looked.note() };
    for (id, count) in &copy.counts {
        if let Some(topic) = copy.topics.get(id) {
            *note.messages.entry(topic.clone()).or_default() += count;
        }
    }
    copy.file.metadata(METADATA, &[("recovery", &text(&note))])?;
    note.bytes_out = Some(copy.file.finish()?.bytes);
    Ok((note, copy.counts))
}

/// Copies pieces from the old file to the new one.
struct Copy {
    file: McapFile,
    schemas: BTreeMap<u16, SchemaRecord>,
    /// Channels as this version numbers them, for chunks whose definitions were lost.
    table: BTreeMap<u16, Channel>,
    topics: BTreeMap<u16, String>,
    counts: BTreeMap<u16, u64>,
    orphans: u64,
}

impl Copy {
    fn piece(&mut self, source: &Source, piece: &Piece) -> RecordResult<()> {
        let changed =
            || RecordError::unreadable(source.path(), "it changed while it was recovered; stop whoever writes it");
        let body = source.read(piece.offset + RECORD_HEAD, piece.length)?;
        match piece.kind {
            PieceKind::Chunk => {
                let chunk = Chunk::decode(body).map_err(|_| changed())?;
                for entry in chunk.entries() {
                    self.entry(entry.map_err(|_| changed())?)?;
                }
            }
            PieceKind::Attachment => {
                let a = scan::attachment(&body).ok_or_else(changed)?;
                self.file.attach(&a.name, &a.media_type, a.log_time, &a.data)?;
            }
            PieceKind::Metadata => {
                let (name, entries) = scan::metadata(&body).ok_or_else(changed)?;
                if name != METADATA {
                    let entries: Vec<(&str, &str)> = entries.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
                    self.file.metadata(&name, &entries)?;
                }
            }
        }
        Ok(())
    }

    fn entry(&mut self, entry: ChunkEntry<'_>) -> RecordResult<()> {
        match entry {
            ChunkEntry::Schema(schema) => drop(self.schemas.insert(schema.id, schema)),
            ChunkEntry::Channel(record) => {
                let schema = self.schemas.get(&record.schema_id).map(|schema| {
                    let text = SchemaText {
                        name: schema.name.clone(),
                        encoding: schema.encoding.clone(),
                        data: schema.data.clone(),
                    };
                    (schema.id, text)
                });
                self.add(&Channel {
                    id: record.id,
                    topic: record.topic,
                    message_encoding: record.message_encoding,
                    schema,
                    metadata: record.metadata,
                    always: false,
                })?;
            }
            ChunkEntry::Message(message) => {
                if !self.topics.contains_key(&message.channel_id) {
                    match self.table.get(&message.channel_id).cloned() {
                        Some(channel) => self.add(&channel)?,
                        None => {
                            self.orphans += 1;
                            return Ok(());
                        }
                    }
                }
                let header = mcap::records::MessageHeader {
                    channel_id: message.channel_id,
                    sequence: message.sequence,
                    log_time: message.log_time,
                    publish_time: message.publish_time,
                };
                self.file.message(&header, message.data)?;
                *self.counts.entry(message.channel_id).or_default() += 1;
            }
        }
        Ok(())
    }

    fn add(&mut self, channel: &Channel) -> RecordResult<()> {
        self.file.add_channel(channel)?;
        self.topics.insert(channel.id, channel.topic.clone());
        Ok(())
    }

    fn hole(&mut self, source: &Source, hole: &Hole) -> RecordResult<()> {
        let mut offset = hole.start;
        while offset < hole.end {
            let bytes = source.read(offset, HOLE_BYTES.min(hole.end - offset))?;
            if bytes.is_empty() {
                break;
            }
            let time = hole.first_ns.unwrap_or(1).max(1);
            self.file.attach(&format!("{HOLE_PREFIX}{offset}"), "application/octet-stream", time, &bytes)?;
            offset += bytes.len() as u64;
        }
        Ok(())
    }
}
