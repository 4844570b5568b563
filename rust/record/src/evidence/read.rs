//! Reading `evidence.mcap` back, from bytes that nobody vouches for: no panic, and memory in proportion to the file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use mcap::records::op;

use super::column::Column;
use super::layout;
use crate::error::{RecordError, RecordResult};
use crate::recover::HOLE_PREFIX;
use crate::scan::{self, ChannelRecord, Chunk, ChunkEntry, Fields, MAGIC, RECORD_HEAD, Source};

/// Everything that the evidence of one take says.
#[derive(Debug, Default)]
pub struct Evidence {
    /// JSON of the take.
    pub take: String,
    /// JSON list of devices.
    pub devices: String,
    /// JSON of the end, None when the take was not closed.
    pub close: Option<String>,
    /// JSON of the recovery note, None when the take was not recovered.
    pub recovery: Option<String>,
    /// Documents by name.
    pub attachments: BTreeMap<String, Vec<u8>>,
    /// JSON objects in order.
    pub events: Vec<String>,
    /// Columns of [`layout::EDGE_COLUMNS`].
    pub edges: Table,
    /// Columns of [`layout::TICK_COLUMNS`].
    pub ticks: Table,
    /// Columns of [`layout::SAMPLE_COLUMNS`] by stream.
    pub samples: BTreeMap<String, Table>,
}

/// Named columns of equal length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    names: Vec<String>,
    columns: Vec<Column>,
}

impl Table {
    fn new(names: Vec<String>) -> Self {
        Self { columns: vec![Column::default(); names.len()], names }
    }

    /// Columns with their names, in the order of the file.
    pub fn into_columns(self) -> impl Iterator<Item = (String, Column)> {
        self.names.into_iter().zip(self.columns)
    }
}

/// From this length on, a thread of its own reads and decompresses ahead.
const AHEAD_FROM_BYTES: u64 = 8 << 20;
/// Parts that may wait, of which each is a chunk at most.
const PARTS_AHEAD: usize = 2;

/// Decompressed bytes that are believed of a file of `len` bytes. Real evidence shrinks by a few tens, that of a
/// simulation without any jitter by some hundreds.
fn decompressed_limit(len: u64) -> u64 {
    (1 << 30) + len.saturating_mul(1024)
}

/// Reads the evidence of a take that was closed or recovered.
///
/// `progress` is told the bytes read and the bytes of the file, chunk after chunk, and says whether to go on; None when it
/// says no.
///
/// # Errors
/// [`RecordError::Unreadable`] when it is truncated, foreign or damaged anywhere; [`RecordError::Disk`].
pub fn read_evidence(path: &Path, progress: &mut dyn FnMut(u64, u64) -> bool) -> RecordResult<Option<Evidence>> {
    let source = Source::open(path)?;
    let unreadable = |what: String| RecordError::unreadable(path, what);
    if source.read(0, 8)? != MAGIC {
        return Err(unreadable("it does not begin as MCAP does; recover the episode or restore the file".to_owned()));
    }
    let mut reader = Reader::new(decompressed_limit(source.len()));
    let parts = Parts { source: &source, offset: Some(MAGIC.len() as u64) };
    let end = if source.len() < AHEAD_FROM_BYTES {
        reader.take_in(&source, parts, progress)?
    } else {
        let (sender, receiver) = mpsc::sync_channel(PARTS_AHEAD);
        thread::scope(|scope| {
            // Ends with the file, or when nobody listens any more.
            scope.spawn(move || parts.map(|part| sender.send(part)).all(|sent| sent.is_ok()));
            reader.take_in(&source, receiver, progress)
        })?
    };
    let Some(end) = end else { return Ok(None) };
    let messages = stated_messages(&source, end)?.ok_or_else(|| torn(&source, end))?;
    if messages != reader.messages {
        return Err(unreadable(format!("its summary counts {messages} messages and it holds {}", reader.messages)));
    }
    if reader.take.is_none() || reader.devices.is_none() {
        return Err(unreadable("it holds no take or no devices; it is not the evidence of an episode".to_owned()));
    }
    Ok(Some(reader.finish()))
}

fn torn(source: &Source, offset: u64) -> RecordError {
    let total = source.len();
    let what = format!("it breaks off or is damaged at byte {offset} of {total}; recover the episode first");
    RecordError::unreadable(source.path(), what)
}

/// What a record of the file says, its chunks decompressed and checked.
enum Part {
    Chunk(u64, Result<Chunk, String>),
    Attachment(String, Vec<u8>),
    Metadata((String, BTreeMap<String, String>)),
    Other,
    /// The content ends, and is what its checksum says; the summary begins here.
    End(u64),
}

/// The file, record by record up to the summary; nothing after an error.
struct Parts<'a> {
    source: &'a Source,
    /// Of the next record; None after the last.
    offset: Option<u64>,
}

impl Iterator for Parts<'_> {
    type Item = RecordResult<Part>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.offset.take()?;
        Some(self.read(offset))
    }
}

impl Parts<'_> {
    fn read(&mut self, offset: u64) -> RecordResult<Part> {
        let source = self.source;
        let torn = || torn(source, offset);
        let (opcode, length) = source.record(offset)?.ok_or_else(torn)?;
        let next = offset + RECORD_HEAD + length;
        let body = || source.read(offset + RECORD_HEAD, length);
        let part = match opcode {
            op::CHUNK => Part::Chunk(offset, Chunk::decode(body()?)),
            op::ATTACHMENT => {
                let attachment = scan::attachment(&body()?).ok_or_else(torn)?;
                Part::Attachment(attachment.name, attachment.data)
            }
            op::METADATA => Part::Metadata(scan::metadata(&body()?).ok_or_else(torn)?),
            op::HEADER | op::MESSAGE_INDEX => Part::Other,
            op::DATA_END => {
                let stated = Fields::new(&body()?).u32().ok_or_else(torn)?;
                let unreadable = |what: &str| Err(RecordError::unreadable(source.path(), what.to_owned()));
                if stated == 0 {
                    return unreadable("it states no checksum of its content; it is not the evidence of an episode");
                }
                if checksum(source, 0, offset)? != stated {
                    return unreadable("its content is not what its checksum says; restore the file");
                }
                return Ok(Part::End(next));
            }
            _ => return Err(torn()),
        };
        self.offset = Some(next);
        Ok(part)
    }
}

/// Number of messages according to the summary after `offset`; None when summary, footer or end magic are damaged.
fn stated_messages(source: &Source, mut offset: u64) -> RecordResult<Option<u64>> {
    let start = offset;
    let mut messages = None;
    loop {
        let Some((opcode, length)) = source.record(offset)? else { return Ok(None) };
        match opcode {
            op::STATISTICS => {
                messages = scan::statistics(&source.read(offset + RECORD_HEAD, length)?).map(|s| s.messages);
            }
            op::FOOTER => {
                let end = source.read(offset + RECORD_HEAD + length, 16)?;
                let whole = end == MAGIC && summary_is_whole(source, start, offset, length)?;
                return Ok(messages.filter(|_| whole));
            }
            _ => {}
        }
        offset += RECORD_HEAD + length;
    }
}

/// Whether the footer at `footer` names the summary that begins at `start`, and its checksum is that of the bytes
/// before it.
fn summary_is_whole(source: &Source, start: u64, footer: u64, length: u64) -> RecordResult<bool> {
    let body = source.read(footer + RECORD_HEAD, length)?;
    let mut fields = Fields::new(&body);
    let (Some(named), Some(_), Some(stated)) = (fields.u64(), fields.u64(), fields.u32()) else { return Ok(false) };
    Ok(named == start && checksum(source, start, footer + RECORD_HEAD + 16)? == stated)
}

/// CRC-32 of the bytes from `from` up to `to`, as MCAP takes it.
fn checksum(source: &Source, from: u64, to: u64) -> RecordResult<u32> {
    let mut hasher = crc32fast::Hasher::new();
    let mut at = from;
    while at < to {
        let block = source.read(at, (to - at).min(1 << 20))?;
        if block.is_empty() {
            break;
        }
        hasher.update(&block);
        at += block.len() as u64;
    }
    Ok(hasher.finalize())
}

enum Target {
    Edges,
    Ticks,
    Events,
    Samples(String),
    Other,
}

struct Reader {
    out: Evidence,
    take: Option<String>,
    devices: Option<String>,
    channels: BTreeMap<u16, Target>,
    messages: u64,
    room: u64,
}

impl Reader {
    fn new(room: u64) -> Self {
        let names = |columns: &[&str]| columns.iter().map(|c| (*c).to_owned()).collect();
        let out = Evidence {
            edges: Table::new(names(&layout::EDGE_COLUMNS)),
            ticks: Table::new(names(&layout::TICK_COLUMNS)),
            ..Evidence::default()
        };
        Self { out, take: None, devices: None, channels: BTreeMap::new(), messages: 0, room }
    }

    fn finish(mut self) -> Evidence {
        self.out.take = self.take.unwrap_or_default();
        self.out.devices = self.devices.unwrap_or_default();
        self.out
    }

    /// Takes in the parts of the file; where the summary begins, or None when progress says no.
    fn take_in(
        &mut self,
        source: &Source,
        parts: impl IntoIterator<Item = RecordResult<Part>>,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> RecordResult<Option<u64>> {
        for part in parts {
            match part? {
                Part::Chunk(offset, chunk) => {
                    if !progress(offset, source.len()) {
                        return Ok(None);
                    }
                    chunk.and_then(|chunk| self.chunk(&chunk)).map_err(|what| {
                        let what =
                            format!("the chunk at byte {offset} cannot be used, {what}; recover the episode first");
                        RecordError::unreadable(source.path(), what)
                    })?;
                }
                // What recovery could not read is kept in the file, and says nothing to who judges.
                Part::Attachment(name, data) if !name.starts_with(HOLE_PREFIX) => {
                    self.out.attachments.insert(name, data);
                }
                Part::Metadata(metadata) => self.metadata(metadata),
                Part::Attachment(..) | Part::Other => {}
                Part::End(next) => return Ok(Some(next)),
            }
        }
        Err(torn(source, source.len())) // a reader ahead that ended without a word
    }

    fn metadata(&mut self, (name, mut entries): (String, BTreeMap<String, String>)) {
        match name.as_str() {
            "firsthand.episode" => self.take = entries.remove("take"),
            "firsthand.devices" => self.devices = entries.remove("devices"),
            "firsthand.close" => self.out.close = entries.remove("close"),
            "firsthand.recovery" => self.out.recovery = entries.remove("recovery"),
            _ => {}
        }
    }

    fn chunk(&mut self, chunk: &Chunk) -> Result<(), String> {
        self.room = self.room.checked_sub(chunk.bytes()).ok_or("the file decompresses to more than is believed")?;
        for entry in chunk.entries() {
            match entry? {
                ChunkEntry::Schema(_) => {}
                ChunkEntry::Channel(channel) => self.channel(&channel)?,
                ChunkEntry::Message(message) => {
                    self.messages += 1;
                    self.message(message.channel_id, message.data)?;
                }
            }
        }
        Ok(())
    }

    fn channel(&mut self, channel: &ChannelRecord) -> Result<(), String> {
        let names: Vec<String> =
            channel.metadata.get("columns").map(|c| c.split(',').map(str::to_owned).collect()).unwrap_or_default();
        let expect = |expected: &[&str]| {
            let layout_known = channel.metadata.get("layout").is_some_and(|l| l == layout::NAME);
            let complete = expected.iter().all(|name| names.iter().any(|n| n == name));
            if layout_known && complete {
                Ok(())
            } else {
                Err(format!(
                    "channel {:?} lacks columns that this version reads, or is laid out otherwise",
                    channel.topic
                ))
            }
        };
        let target = match channel.topic.as_str() {
            layout::EDGES => {
                expect(&layout::EDGE_COLUMNS)?;
                self.out.edges = keep(&self.out.edges, names);
                Target::Edges
            }
            layout::TICKS => {
                expect(&layout::TICK_COLUMNS)?;
                self.out.ticks = keep(&self.out.ticks, names);
                Target::Ticks
            }
            layout::EVENTS => Target::Events,
            topic => match topic.strip_prefix(layout::SAMPLES) {
                Some(stream) => {
                    expect(&layout::SAMPLE_COLUMNS)?;
                    self.out.samples.entry(stream.to_owned()).or_insert_with(|| Table::new(names));
                    Target::Samples(stream.to_owned())
                }
                None => Target::Other,
            },
        };
        self.channels.insert(channel.id, target);
        Ok(())
    }

    fn message(&mut self, channel_id: u16, data: &[u8]) -> Result<(), String> {
        let table = match self.channels.get(&channel_id) {
            None => return Err(format!("a message belongs to channel {channel_id}, which is not defined")),
            Some(Target::Other) => return Ok(()),
            Some(Target::Events) => {
                let text = String::from_utf8(data.to_vec()).map_err(|_| "an event is not UTF-8")?;
                self.out.events.push(text);
                return Ok(());
            }
            Some(Target::Edges) => &mut self.out.edges,
            Some(Target::Ticks) => &mut self.out.ticks,
            Some(Target::Samples(stream)) => self.out.samples.get_mut(stream).ok_or("a sample channel has no table")?,
        };
        layout::decode(data, &mut table.columns)
    }
}

/// The table that is there when its columns are the same, else a new one.
fn keep(table: &Table, names: Vec<String>) -> Table {
    if table.names == names { table.clone() } else { Table::new(names) }
}
