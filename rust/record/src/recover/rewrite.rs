//! Writing a damaged file anew, and proving the result before it takes the old one's place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use bytes::Bytes;
use mcap::Compression;

use super::note::{FileNote, Hole};
use super::survey::{Piece, PieceKind};
use super::{HOLE_PREFIX, Looked, METADATA, verify};
use crate::channels::{Channel, RECORD_SCHEMA_ID};
use crate::error::{RecordError, RecordResult};
use crate::mcap_file::{McapFile, sync_folder};
use crate::scan::{self, Chunk, ChunkEntry, RECORD_HEAD, SchemaRecord, Source};
use crate::schema::{SchemaText, encode_record, record_schema};

/// Longest piece of a hole in one attachment.
const HOLE_BYTES: u64 = 16 << 20;

/// How a file is written.
pub struct Options {
    /// MCAP profile.
    pub profile: &'static str,
    /// Size at which a chunk ends.
    pub chunk_bytes: u64,
    /// Compression of chunks.
    pub compression: Option<Compression>,
}

/// Writes the file anew, proves it and puts it in the place of the old one.
///
/// # Errors
/// [`RecordError::Unreadable`] when the new file does not read back, [`RecordError::Disk`], [`RecordError::DiskFull`]; the
/// old file is then as it was.
pub fn rewrite(
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
            return Err(match error {
                RecordError::Unreadable { what, .. } => RecordError::unreadable(&path, what),
                other => other,
            });
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
        orphaned: BTreeSet::new(),
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
    orphaned: BTreeSet<u16>,
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
                let id = message.channel_id;
                if !self.topics.contains_key(&id) {
                    match self.table.get(&id).cloned() {
                        Some(channel) => self.add(&channel)?,
                        None => {
                            self.add(&orphans(id))?;
                            self.orphaned.insert(id);
                        }
                    }
                }
                let header = mcap::records::MessageHeader {
                    channel_id: id,
                    sequence: message.sequence,
                    log_time: message.log_time,
                    publish_time: message.publish_time,
                };
                if self.orphaned.contains(&id) {
                    let mut wrapped = Vec::new();
                    encode_record(None, &Bytes::copy_from_slice(message.data), &Bytes::new(), &mut wrapped);
                    self.orphans += 1;
                    self.file.message(&header, &wrapped)?;
                } else {
                    self.file.message(&header, message.data)?;
                }
                *self.counts.entry(id).or_default() += 1;
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

/// A channel for messages whose own channel is not known any more: each is kept as the bytes of a `firsthand.Record`,
/// which every reader can open, for somebody who knows what they were.
fn orphans(id: u16) -> Channel {
    Channel {
        id,
        topic: format!("/orphans/{id}"),
        message_encoding: "protobuf".to_owned(),
        schema: Some((RECORD_SCHEMA_ID, record_schema())),
        metadata: BTreeMap::new(),
        always: false,
    }
}
