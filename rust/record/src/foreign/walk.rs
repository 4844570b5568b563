//! From record to record through a file, and through each chunk.

use lz4_flex::frame::FrameDecoder;
use mcap::records::op;
use zstd::stream::read::Decoder;
use zstd::zstd_safe::DCtx;

use super::gather::{Gather, signed};
use super::window::{FileAt, Part, Source, Window};
use super::{Fault, Found, Wanted};
use crate::header::{Place, WHOLE};
use crate::scan::{self, Fields, MAGIC, RECORD_HEAD, Statistics};

const HEAD: usize = RECORD_HEAD as usize;
/// Channel, sequence and the two times before a message's data.
const MESSAGE_HEAD: usize = 22;
/// Start, end, size, checksum, an empty name of a compression, and size of a chunk before its content.
const CHUNK_HEAD: usize = 40;
/// Footer with its head, and the magic behind it.
const TAIL: u64 = RECORD_HEAD + 20 + 8;
const DATA_END: u64 = RECORD_HEAD + 4;
/// Longest record that is held at once: definitions, and messages whose stamp may be anywhere.
const MAX_HELD: u64 = 1 << 26;
/// Bytes of a longer message that are searched for its stamp.
const SEARCHED: usize = 1 << 16;
const ENTRY: usize = 16;
const LONGEST_NAME: usize = 64;

/// Reads a whole file.
pub(super) fn walk(file: FileAt<'_>, wanted: Wanted) -> Result<Found, Fault> {
    let mut walker = Walker::new(file, wanted, wanted == Wanted::Log)?;
    match walker.whole() {
        // What describes it may be in a chunk that was passed over, in a file whose summary does not repeat it.
        Err(Fault::Undescribed(_)) if walker.found.chunks_indexed > 0 => {
            walker = Walker::new(walker.window.into_source(), wanted, false)?;
            walker.whole()?;
        }
        done => done?,
    }
    walker.found.topics = walker.gather.into_topics();
    Ok(walker.found)
}

/// What the end of a file says.
struct Ends {
    summary_start: u64,
    /// Where the bytes end that the checksum of the summary covers.
    summary_end: u64,
    summary_crc: u32,
    /// Checksum of the data section; None where no end of it is in its place.
    data_crc: Option<u32>,
}

impl Ends {
    fn read(file: &FileAt<'_>) -> Result<Self, Fault> {
        let broken = || Fault::damaged("it does not end as an MCAP does");
        let start = file.len().checked_sub(TAIL).ok_or_else(broken)?;
        let tail = file.peek_at(start, usize::try_from(TAIL).unwrap_or(0))?;
        let mut fields = Fields::new(&tail);
        let (Some(op::FOOTER), Some(20)) = (fields.u8(), fields.u64()) else { return Err(broken()) };
        let (Some(summary_start), Some(_), Some(summary_crc)) = (fields.u64(), fields.u64(), fields.u32()) else {
            return Err(broken());
        };
        if fields.rest() != MAGIC {
            return Err(broken());
        }
        let data_ends = if summary_start == 0 { start } else { summary_start };
        if data_ends > start {
            return Err(Fault::damaged("its footer names a summary that is not there"));
        }
        let end = match data_ends.checked_sub(DATA_END) {
            Some(at) => file.peek_at(at, usize::try_from(DATA_END).unwrap_or(0))?,
            None => Vec::new(),
        };
        let mut fields = Fields::new(&end);
        let stated = (fields.u8() == Some(op::DATA_END) && fields.u64() == Some(4)).then(|| fields.u32()).flatten();
        Ok(Self { summary_start, summary_end: start + RECORD_HEAD + 16, summary_crc, data_crc: stated })
    }
}

struct Walker<'a> {
    window: Window<FileAt<'a>>,
    gather: Gather,
    ends: Ends,
    by_index: bool,
    buffer: Vec<u8>,
    /// One for all chunks: making it costs as much as a small chunk.
    zstd: DCtx<'static>,
    found: Found,
}

impl<'a> Walker<'a> {
    /// At the beginning of a file. `by_index`: leaves out chunks that message indexes follow.
    fn new(file: FileAt<'a>, wanted: Wanted, by_index: bool) -> Result<Self, Fault> {
        let ends = Ends::read(&file)?;
        Ok(Self {
            gather: Gather::new(wanted, file.len()),
            // The checksum of the data section is taken where one is stated, and where nothing is left out.
            window: if by_index { Window::skipping(file) } else { Window::new(file, ends.data_crc != Some(0)) },
            ends,
            by_index,
            buffer: Vec::new(),
            zstd: DCtx::create(),
            found: Found { topics: Vec::new(), chunks_indexed: 0, chunks_read: 0, counted: false },
        })
    }

    fn whole(&mut self) -> Result<(), Fault> {
        if self.by_index {
            self.definitions()?;
        }
        self.run()
    }

    /// Takes in what the summary defines, before anything else is read.
    fn definitions(&mut self) -> Result<(), Fault> {
        if self.ends.summary_start != 0 {
            self.window.go_to(self.ends.summary_start);
            loop {
                let (opcode, length) = self.record()?;
                match opcode {
                    op::SCHEMA | op::CHANNEL => define(&mut self.window, &mut self.gather, opcode, length)?,
                    op::FOOTER => break,
                    _ => self.pass(length)?,
                }
            }
        }
        self.window.go_to(0);
        Ok(())
    }

    fn run(&mut self) -> Result<(), Fault> {
        if self.window.peek(MAGIC.len())?.get(..MAGIC.len()) != Some(MAGIC) {
            return Err(Fault::damaged("it does not begin as an MCAP does"));
        }
        self.window.consume(MAGIC.len());
        let mut counted: Option<Statistics> = None;
        loop {
            let crc = self.crc_at_data_end()?;
            let offset = self.window.passed();
            let (opcode, length) = self.record()?;
            match opcode {
                op::SCHEMA | op::CHANNEL => define(&mut self.window, &mut self.gather, opcode, length)?,
                op::MESSAGE => message(&mut self.window, &mut self.gather, length)?,
                op::CHUNK => self.chunk(offset, length)?,
                op::ATTACHMENT => self.attachment(length)?,
                op::DATA_END => self.data_end(length, crc)?,
                op::STATISTICS => {
                    let body = self.held(length)?;
                    let stated =
                        scan::statistics(&body).ok_or_else(|| Fault::damaged("its statistics are malformed"))?;
                    self.gather.compare(&stated)?;
                    counted = Some(stated);
                }
                op::FOOTER => break,
                0 => return Err(Fault::damaged(format!("no record begins at byte {offset}"))),
                _ => self.pass(length)?,
            }
        }
        self.found.counted = counted.is_some();
        let offset = self.window.passed() - RECORD_HEAD;
        let end = self.window.source().len() - TAIL;
        if offset != end {
            return Err(Fault::damaged(format!("a footer at byte {offset} ends it before its last byte")));
        }
        self.summary()
    }

    /// Opcode and length of the next record, which fits into the file.
    fn record(&mut self) -> Result<(u8, u64), Fault> {
        let at = self.window.passed();
        let room = self.window.source().len().saturating_sub(at).saturating_sub(RECORD_HEAD);
        match head(self.window.peek(HEAD)?) {
            Some((opcode, length)) if length <= room => {
                self.window.consume(HEAD);
                Ok((opcode, length))
            }
            _ => Err(Fault::damaged(format!("it breaks off at byte {at}"))),
        }
    }

    fn pass(&mut self, length: u64) -> Result<(), Fault> {
        if self.window.skip(length)? { Ok(()) } else { Err(shrunk()) }
    }

    /// A record that is held at once.
    fn held(&mut self, length: u64) -> Result<Vec<u8>, Fault> {
        let body = held(&mut self.window, length)?.to_vec();
        self.window.consume(body.len());
        Ok(body)
    }

    /// The checksum of the data section, where its end is next.
    fn crc_at_data_end(&mut self) -> Result<Option<u32>, Fault> {
        let ends = self.window.peek(1)?.first() == Some(&op::DATA_END);
        Ok(if ends { self.window.crc() } else { None })
    }

    fn data_end(&mut self, length: u64, crc: Option<u32>) -> Result<(), Fault> {
        let stated =
            Fields::new(&self.held(length)?).u32().ok_or_else(|| Fault::damaged("its data end is malformed"))?;
        match crc {
            Some(crc) if stated != 0 && crc != stated => Err(differs("its data section", stated, crc)),
            None if stated != 0 && !self.by_index => {
                Err(Fault::damaged("its data section ends elsewhere than its footer says"))
            }
            _ => Ok(()),
        }
    }

    /// Compares the checksum of an attachment, which is its last field.
    fn attachment(&mut self, length: u64) -> Result<(), Fault> {
        let mut left = length.checked_sub(4).ok_or_else(|| Fault::damaged("an attachment in it is malformed"))?;
        if self.by_index {
            return self.pass(length);
        }
        let mut hasher = crc32fast::Hasher::new();
        while left > 0 {
            let there = self.window.peek(1)?;
            let limit = usize::try_from(left).unwrap_or(usize::MAX);
            let part = there.get(..limit).unwrap_or(there);
            if part.is_empty() {
                return Err(shrunk());
            }
            hasher.update(part);
            let taken = part.len();
            self.window.consume(taken);
            left -= taken as u64;
        }
        let stated = Fields::new(&self.held(4)?).u32().unwrap_or_default();
        let crc = hasher.finalize();
        if stated != 0 && crc != stated { Err(differs("an attachment", stated, crc)) } else { Ok(()) }
    }

    /// Compares the checksum of the summary.
    fn summary(&mut self) -> Result<(), Fault> {
        let Ends { summary_start, summary_end, summary_crc, .. } = self.ends;
        if summary_start == 0 || summary_crc == 0 {
            return Ok(());
        }
        let mut hasher = crc32fast::Hasher::new();
        let mut at = summary_start;
        while at < summary_end {
            let n = usize::try_from(summary_end - at).unwrap_or(usize::MAX).min(1 << 18);
            let block = self.window.source().peek_at(at, n)?;
            if block.is_empty() {
                break;
            }
            hasher.update(&block);
            at += block.len() as u64;
        }
        let crc = hasher.finalize();
        if crc == summary_crc { Ok(()) } else { Err(differs("its summary", summary_crc, crc)) }
    }

    fn chunk(&mut self, offset: u64, length: u64) -> Result<(), Fault> {
        let head = ChunkHead::next(&mut self.window, length)?
            .ok_or_else(|| Fault::damaged(format!("the chunk at byte {offset} has a damaged header")))?;
        if self.by_index && head.uncompressed_size > 0 {
            let content = self.window.passed();
            self.pass(head.compressed_size)?;
            if self.indexes()? {
                self.found.chunks_indexed += 1;
                return Ok(());
            }
            self.window.go_to(content);
        }
        self.found.chunks_read += 1;
        self.content(&head).map_err(|fault| match fault {
            Fault::Damaged(what) => Fault::Damaged(format!("the chunk at byte {offset}: {what}")),
            other => other,
        })
    }

    /// Reads what a chunk holds.
    fn content(&mut self, head: &ChunkHead) -> Result<(), Fault> {
        let end = self.window.passed().saturating_add(head.compressed_size);
        let buffer = std::mem::take(&mut self.buffer);
        let part = Part::new(&mut self.window, head.compressed_size);
        let hashing = head.uncompressed_crc != 0;
        let gather = &mut self.gather;
        self.buffer = match head.compression.as_str() {
            "" => records(Window::over(part, hashing, buffer), gather, head)?,
            "zstd" => {
                records(Window::over(Decoder::with_context(part, &mut self.zstd), hashing, buffer), gather, head)?
            }
            "lz4" => records(Window::over(FrameDecoder::new(part), hashing, buffer), gather, head)?,
            other => return Err(Fault::damaged(format!("it is compressed as `{other}`, which is not known here"))),
        };
        // An LZ4 frame may be followed by its own checksum and end mark, which the decoder leaves.
        if self.window.passed() <= end {
            let left = end - self.window.passed();
            self.pass(left)
        } else {
            Err(Fault::damaged("it is longer than its head says"))
        }
    }

    /// Takes the log times of a chunk from the indexes that follow it; false where there is none, or one of a channel
    /// that the summary does not define.
    fn indexes(&mut self) -> Result<bool, Fault> {
        let first = self.window.passed();
        let mut topics: Vec<usize> = Vec::new();
        let mut records = 0;
        while self.window.peek(1)?.first() == Some(&op::MESSAGE_INDEX) {
            let (_, length) = self.record()?;
            let Some(id) = Fields::new(self.window.peek(2)?).u16() else { return Err(malformed()) };
            if !self.gather.knows(id) {
                return Ok(false);
            }
            topics.push(self.gather.indexed(id, 0)?);
            self.pass(length)?;
            records += 1;
        }
        self.window.go_to(first);
        topics.sort_unstable();
        // Topics of several channels: their messages lie mixed, and each index tells of one channel.
        let shared: Vec<usize> = topics.windows(2).filter(|w| w.first() == w.last()).flatten().copied().collect();
        let mut mixed: Vec<(usize, u64, i64)> = Vec::new();
        for _ in 0..records {
            self.index(&shared, &mut mixed)?;
        }
        mixed.sort_by_key(|(topic, offset, _)| (*topic, *offset));
        for (topic, _, time) in mixed {
            self.gather.append(topic, std::iter::once(time));
        }
        Ok(records > 0)
    }

    /// Appends the times of the next index in the order in which their messages lie in the chunk, or puts them among
    /// `mixed`.
    fn index(&mut self, shared: &[usize], mixed: &mut Vec<(usize, u64, i64)>) -> Result<(), Fault> {
        let (_, length) = self.record()?;
        let end = self.window.passed().saturating_add(length);
        let mut fields = Fields::new(self.window.peek(6)?);
        let (Some(id), Some(bytes)) = (fields.u16(), fields.u32()) else { return Err(malformed()) };
        let bytes = u64::from(bytes);
        if bytes + 6 > length || bytes % ENTRY as u64 != 0 {
            return Err(malformed());
        }
        self.window.consume(6);
        let begin = self.window.passed();
        let topic = self.gather.indexed(id, bytes / ENTRY as u64)?;
        if shared.contains(&topic) {
            self.entries(bytes, |offset, time| mixed.push((topic, offset, time)))?;
        } else {
            let mut last = None;
            let mut in_order = true;
            let mut times = self.gather.take(topic);
            let before = times.len();
            let read = self.entries(bytes, |offset, time| {
                in_order &= last.is_none_or(|last| last < offset);
                last = Some(offset);
                times.push(time);
            });
            read?;
            if !in_order {
                let mut sorted = Vec::new();
                self.window.go_to(begin);
                self.entries(bytes, |offset, time| sorted.push((offset, time)))?;
                sorted.sort_by_key(|(offset, _)| *offset);
                times.truncate(before);
                times.extend(sorted.into_iter().map(|(_, time)| time));
            }
            self.gather.put(topic, times);
        }
        let left = end.saturating_sub(self.window.passed());
        self.pass(left)
    }

    /// Offset within the chunk and log time of each entry of an index of `bytes` bytes.
    fn entries(&mut self, mut bytes: u64, mut take: impl FnMut(u64, i64)) -> Result<(), Fault> {
        while bytes > 0 {
            let there = self.window.peek(ENTRY)?;
            let limit = usize::try_from(bytes).unwrap_or(usize::MAX);
            let (entries, _) = there.get(..limit).unwrap_or(there).as_chunks::<ENTRY>();
            if entries.is_empty() {
                return Err(shrunk());
            }
            for entry in entries {
                let mut fields = Fields::new(entry);
                let (time, offset) = (fields.u64().unwrap_or_default(), fields.u64().unwrap_or_default());
                take(offset, signed(time));
            }
            let taken = entries.len() * ENTRY;
            self.window.consume(taken);
            bytes -= taken as u64;
        }
        Ok(())
    }
}

/// The head of a chunk record.
struct ChunkHead {
    uncompressed_size: u64,
    uncompressed_crc: u32,
    compression: String,
    compressed_size: u64,
}

impl ChunkHead {
    /// Passes the head of a record of `length` bytes; None when its sizes do not agree.
    fn next(window: &mut Window<FileAt<'_>>, length: u64) -> Result<Option<Self>, Fault> {
        let there = window.peek(CHUNK_HEAD + LONGEST_NAME)?;
        let mut fields = Fields::new(there);
        let mut read = || {
            fields.bytes(16)?;
            Some(Self {
                uncompressed_size: fields.u64()?,
                uncompressed_crc: fields.u32()?,
                compression: fields.text().filter(|name| name.len() <= LONGEST_NAME)?,
                compressed_size: fields.u64()?,
            })
        };
        let Some(head) = read() else { return Ok(None) };
        let taken = CHUNK_HEAD + head.compression.len();
        window.consume(taken);
        Ok((Some(length) == head.compressed_size.checked_add(taken as u64)).then_some(head))
    }
}

/// Reads the records of a chunk and gives the buffer back.
fn records<S: Source>(mut window: Window<S>, gather: &mut Gather, chunk: &ChunkHead) -> Result<Vec<u8>, Fault> {
    loop {
        let there = window.peek(HEAD)?;
        if there.is_empty() {
            break;
        }
        let read = head(there);
        let left = chunk.uncompressed_size.saturating_sub(window.passed()).saturating_sub(RECORD_HEAD);
        let Some((opcode, length)) = read.filter(|(_, length)| *length <= left) else {
            return Err(Fault::damaged(format!("a record breaks off at byte {} of its content", window.passed())));
        };
        window.consume(HEAD);
        match opcode {
            op::MESSAGE => message(&mut window, gather, length)?,
            op::SCHEMA | op::CHANNEL => define(&mut window, gather, opcode, length)?,
            _ if window.skip(length)? => {}
            _ => return Err(shrunk()),
        }
    }
    if window.passed() != chunk.uncompressed_size {
        let what = format!("it holds {} bytes instead of {}", window.passed(), chunk.uncompressed_size);
        return Err(Fault::damaged(what));
    }
    match window.crc() {
        Some(crc) if crc != chunk.uncompressed_crc => Err(differs("its content", chunk.uncompressed_crc, crc)),
        _ => Ok(window.into_buffer()),
    }
}

/// Takes in the message that is next.
#[inline]
fn message<S: Source>(window: &mut Window<S>, gather: &mut Gather, length: u64) -> Result<(), Fault> {
    let Some(size) = length.checked_sub(MESSAGE_HEAD as u64) else {
        return Err(Fault::damaged("a message is shorter than its head"));
    };
    let mut fields = Fields::new(window.peek(MESSAGE_HEAD)?);
    let mut read = || {
        let id = fields.u16()?;
        fields.u32()?;
        Some((id, fields.u64()?, fields.u64()?))
    };
    let (id, log, publish) = read().ok_or_else(shrunk)?;
    let (topic, place) = gather.message(id)?;
    let looked_at = match place.map_or(0, Place::needs) {
        WHOLE if size > MAX_HELD => SEARCHED,
        needs => usize::try_from(size).unwrap_or(usize::MAX).min(needs),
    };
    let there = window.peek(MESSAGE_HEAD + looked_at)?;
    let data = there.get(MESSAGE_HEAD..MESSAGE_HEAD + looked_at).ok_or_else(shrunk)?;
    gather.times(topic, place, (log, publish), data, size == looked_at as u64);
    if window.skip(length)? { Ok(()) } else { Err(shrunk()) }
}

/// Takes in the schema or the channel that is next.
fn define<S: Source>(window: &mut Window<S>, gather: &mut Gather, opcode: u8, length: u64) -> Result<(), Fault> {
    let body = held(window, length)?;
    let taken = body.len();
    if opcode == op::SCHEMA {
        gather.schema(body)?
    } else {
        gather.channel(body)?
    }
    window.consume(taken);
    Ok(())
}

/// The body of a record that is held at once.
fn held<S: Source>(window: &mut Window<S>, length: u64) -> Result<&[u8], Fault> {
    let n = usize::try_from(length.min(MAX_HELD + 1)).unwrap_or(usize::MAX);
    if length > MAX_HELD {
        return Err(Fault::damaged(format!(
            "a record claims {length} bytes, more than the {MAX_HELD} that are believed"
        )));
    }
    window.peek(n)?.get(..n).ok_or_else(shrunk)
}

/// Opcode and length of a record.
#[inline]
fn head(bytes: &[u8]) -> Option<(u8, u64)> {
    let mut fields = Fields::new(bytes);
    Some((fields.u8()?, fields.u64()?))
}

fn shrunk() -> Fault {
    Fault::damaged("it ends within a record")
}

fn malformed() -> Fault {
    Fault::damaged("a message index in it is malformed")
}

fn differs(what: &str, stated: u32, crc: u32) -> Fault {
    Fault::damaged(format!("the crc of {what} is {crc:08x} and should be {stated:08x}"))
}
