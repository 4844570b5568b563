//! What a damaged MCAP file still holds: a walk from record to record that, where the chain breaks, looks for the next
//! place at which a chunk with a sound checksum, an attachment or a metadata record of ours begins.

use std::collections::BTreeMap;

use mcap::records::op;

use super::note::Hole;
use crate::error::RecordResult;
use crate::scan::{self, ChannelRecord, Chunk, ChunkEntry, ChunkHead, Fields, MAGIC, MAX_RECORD, RECORD_HEAD, Source};

/// How much is searched at a time.
const WINDOW: u64 = 1 << 20;

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// A chunk whose checksum agrees.
    Chunk,
    /// An attachment whose checksum agrees.
    Attachment,
    /// A metadata record.
    Metadata,
}

/// A record worth keeping.
#[derive(Debug, Clone, Copy)]
pub struct Piece {
    /// What it is.
    pub kind: PieceKind,
    /// Where it begins.
    pub offset: u64,
    /// Length of its body.
    pub length: u64,
}

/// What a file holds.
#[derive(Debug, Default)]
pub struct Survey {
    /// Records worth keeping, in file order.
    pub pieces: Vec<Piece>,
    /// What cannot be read.
    pub holes: Vec<Hole>,
    /// Chunks among the holes.
    pub chunks_bad: u64,
    /// Channels defined in whole chunks.
    pub channels: BTreeMap<u16, ChannelRecord>,
    /// Messages in whole chunks, by channel.
    pub counts: BTreeMap<u16, u64>,
    /// Data section, summary, footer and end magic follow one another up to the end of the file.
    pub finished: bool,
    metadata: BTreeMap<String, BTreeMap<String, String>>,
}

impl Survey {
    /// One entry of the last metadata record of that name.
    pub fn metadata(&self, name: &str, key: &str) -> Option<&str> {
        self.metadata.get(name)?.get(key).map(String::as_str)
    }
}

/// A record, looked at.
enum Seen {
    Keep(PieceKind),
    /// A chunk that is whole apart from the times in its header.
    KeepMistimed,
    Pass,
    /// Messages of the chunk before it.
    Index(u64),
    DataEnd,
    /// Its frame is sound, its content is not.
    BadChunk(ChunkHead, String),
    Broken(String),
}

/// Walks through `source`.
///
/// # Errors
/// [`crate::RecordError::Disk`] when the disk does not let it be read; whatever the bytes are, that is no error.
pub fn survey(source: &Source) -> RecordResult<Survey> {
    let mut walk = Walk { source, out: Survey::default(), sound: true };
    let mut offset = 0;
    if source.read(0, MAGIC.len() as u64)? == MAGIC {
        offset = MAGIC.len() as u64;
    } else if !source.is_empty() {
        offset = walk.hole(0, "the file does not begin as MCAP does".to_owned())?;
    }
    let mut open_hole = false;
    while offset < source.len() {
        let Some((opcode, length)) = source.record(offset)? else {
            offset = walk.hole(offset, "a record runs past the end of the file".to_owned())?;
            open_hole = false;
            continue;
        };
        let next = offset + RECORD_HEAD + length;
        match walk.look(offset, opcode, length)? {
            Seen::Keep(kind) => {
                walk.out.pieces.push(Piece { kind, offset, length });
                open_hole = false;
            }
            Seen::KeepMistimed => {
                walk.out.pieces.push(Piece { kind: PieceKind::Chunk, offset, length });
                walk.sound = false;
                open_hole = false;
            }
            Seen::Pass => {}
            Seen::Index(messages) => {
                if let Some(hole) = walk.out.holes.last_mut().filter(|_| open_hole) {
                    hole.messages = Some(hole.messages.unwrap_or(0) + messages);
                }
            }
            Seen::DataEnd => {
                walk.out.finished = walk.sound && tail_is_sound(source, next)?;
                return Ok(walk.out);
            }
            Seen::BadChunk(head, reason) => {
                walk.out.chunks_bad += 1;
                walk.note_hole(offset, next, reason, Some(&head))?;
                open_hole = true;
            }
            Seen::Broken(reason) => {
                offset = walk.hole(offset, reason)?;
                open_hole = false;
                continue;
            }
        }
        offset = next;
    }
    Ok(walk.out)
}

struct Walk<'a> {
    source: &'a Source,
    out: Survey,
    sound: bool,
}

impl Walk<'_> {
    fn look(&mut self, offset: u64, opcode: u8, length: u64) -> RecordResult<Seen> {
        let body = || self.source.read(offset + RECORD_HEAD, length);
        Ok(match opcode {
            op::HEADER => {
                let body = body()?;
                let mut fields = Fields::new(&body);
                let sound = fields.text().is_some() && fields.text().is_some() && fields.is_empty();
                if sound { Seen::Pass } else { Seen::Broken("the header is damaged".to_owned()) }
            }
            op::CHUNK => self.chunk(body()?, length),
            op::MESSAGE_INDEX => match scan::message_index(&body()?) {
                Some((_, messages)) => Seen::Index(messages),
                None => Seen::Broken("a message index is damaged".to_owned()),
            },
            op::ATTACHMENT => match scan::attachment(&body()?) {
                Some(_) => Seen::Keep(PieceKind::Attachment),
                None => Seen::Broken("an attachment is damaged".to_owned()),
            },
            op::METADATA => match scan::metadata(&body()?) {
                Some((name, entries)) => {
                    self.out.metadata.insert(name, entries);
                    Seen::Keep(PieceKind::Metadata)
                }
                None => Seen::Broken("a metadata record is damaged".to_owned()),
            },
            op::DATA_END if length == 4 => Seen::DataEnd,
            _ => Seen::Broken(format!("there is no record that begins with byte {opcode:#04x}")),
        })
    }

    fn chunk(&mut self, body: Vec<u8>, length: u64) -> Seen {
        let Some(head) = ChunkHead::plausible(&body, length) else {
            return Seen::Broken("a chunk header is damaged".to_owned());
        };
        let chunk = match Chunk::decode(body) {
            Ok(chunk) => chunk,
            Err(reason) => return Seen::BadChunk(head, format!("a chunk is damaged, {reason}")),
        };
        match Contents::of(&chunk) {
            Err(reason) => Seen::BadChunk(head, format!("a chunk is damaged, {reason}")),
            Ok(contents) => {
                let mistimed = contents.bounds.is_some_and(|bounds| bounds != (head.start_ns, head.end_ns));
                for (id, count) in contents.counts {
                    *self.out.counts.entry(id).or_default() += count;
                }
                self.out.channels.extend(contents.channels);
                if mistimed { Seen::KeepMistimed } else { Seen::Keep(PieceKind::Chunk) }
            }
        }
    }

    /// Notes what lies between a broken place and the next sound one, and says where that is.
    fn hole(&mut self, start: u64, reason: String) -> RecordResult<u64> {
        let end = next_sound(self.source, start + 1)?.unwrap_or(self.source.len());
        // A chunk that broke off still says in its header which time it covers.
        let begun = self.source.read(start, RECORD_HEAD + 64)?;
        let head = match begun.split_first() {
            Some((&op::CHUNK, rest)) => rest.get(8..).and_then(ChunkHead::begun),
            _ => None,
        };
        if head.is_some() {
            self.out.chunks_bad += 1;
        }
        self.note_hole(start, end, reason, head.as_ref())?;
        Ok(end)
    }

    fn note_hole(&mut self, start: u64, end: u64, reason: String, head: Option<&ChunkHead>) -> RecordResult<()> {
        let known = head.filter(|head| head.start_ns > 0);
        let zeros = all_zero(self.source, start, end)?;
        self.out.holes.push(Hole {
            start,
            end,
            reason: if zeros { "all bytes are zero".to_owned() } else { reason },
            first_ns: known.map(|head| head.start_ns),
            last_ns: known.map(|head| head.end_ns),
            messages: None,
            zeros,
        });
        Ok(())
    }
}

/// What a whole chunk holds.
struct Contents {
    channels: BTreeMap<u16, ChannelRecord>,
    counts: BTreeMap<u16, u64>,
    bounds: Option<(u64, u64)>,
}

impl Contents {
    fn of(chunk: &Chunk) -> Result<Self, String> {
        let mut out = Self { channels: BTreeMap::new(), counts: BTreeMap::new(), bounds: None };
        for entry in chunk.entries() {
            match entry? {
                ChunkEntry::Schema(_) => {}
                ChunkEntry::Channel(channel) => drop(out.channels.insert(channel.id, channel)),
                ChunkEntry::Message(message) => {
                    if message.log_time == 0 || message.publish_time == 0 {
                        return Err("a message in it has the time 0".to_owned());
                    }
                    *out.counts.entry(message.channel_id).or_default() += 1;
                    let (first, last) = out.bounds.unwrap_or((message.log_time, message.log_time));
                    out.bounds = Some((first.min(message.log_time), last.max(message.log_time)));
                }
            }
        }
        Ok(out)
    }
}

/// Summary records, footer and end magic, up to the end of the file.
fn tail_is_sound(source: &Source, mut offset: u64) -> RecordResult<bool> {
    loop {
        let Some((opcode, length)) = source.record(offset)? else { return Ok(false) };
        let next = offset + RECORD_HEAD + length;
        if opcode == op::FOOTER {
            return Ok(length == 20 && source.read(next, 9)? == MAGIC);
        }
        if !scan::is_summary(opcode, &source.read(offset + RECORD_HEAD, length)?) {
            return Ok(false);
        }
        offset = next;
    }
}

fn all_zero(source: &Source, mut offset: u64, end: u64) -> RecordResult<bool> {
    while offset < end {
        let bytes = source.read(offset, WINDOW.min(end - offset))?;
        if bytes.is_empty() || bytes.iter().any(|b| *b != 0) {
            return Ok(false);
        }
        offset += bytes.len() as u64;
    }
    Ok(true)
}

/// The first offset from `from` on at which a record begins that proves itself.
fn next_sound(source: &Source, from: u64) -> RecordResult<Option<u64>> {
    let mut start = from;
    while start + RECORD_HEAD <= source.len() {
        let window = source.read(start, WINDOW + RECORD_HEAD)?;
        for (at, head) in (start..).zip(window.windows(9)) {
            let mut fields = Fields::new(head);
            let Some((opcode, length)) = fields.u8().zip(fields.u64()) else { continue };
            if length <= source.len() - at - RECORD_HEAD && length <= MAX_RECORD && proves(source, at, opcode, length)?
            {
                return Ok(Some(at));
            }
        }
        start += WINDOW;
    }
    Ok(None)
}

fn proves(source: &Source, at: u64, opcode: u8, length: u64) -> RecordResult<bool> {
    let body = at + RECORD_HEAD;
    Ok(match opcode {
        op::CHUNK => {
            let head = source.read(body, length.min(64))?;
            ChunkHead::plausible(&head, length).is_some() && Chunk::decode(source.read(body, length)?).is_ok()
        }
        op::ATTACHMENT => {
            length >= 40 && scan::attachment(&source.read(body, length)?).is_some_and(|a| !a.name.is_empty())
        }
        op::METADATA => {
            // No checksum: only records of ours are believed.
            let head = source.read(body, 14)?;
            head.get(4..) == Some(&b"firsthand."[..]) && scan::metadata(&source.read(body, length)?).is_some()
        }
        op::DATA_END => length == 4 && tail_is_sound(source, body + 4)?,
        _ => false,
    })
}
