//! Reading MCAP records out of bytes that nobody vouches for.
//!
//! The public `mcap` crate reads good files and stops at the first bad byte; recovery must go on, and reading evidence
//! must neither panic nor allocate without bound on arbitrary bytes. So framing is parsed here, every length checked
//! against what is there: <https://mcap.dev/spec>. Nothing longer than [`MAX_RECORD`] is believed.

mod source;

use std::collections::BTreeMap;
use std::io::Read;

use mcap::records::op;

pub use source::Source;

/// The eight bytes at both ends of an MCAP file.
pub const MAGIC: &[u8; 8] = b"\x89MCAP0\r\n";
/// Opcode and length of a record.
pub const RECORD_HEAD: u64 = 9;
/// Longest record that is believed: far above any chunk or attachment that we write.
pub const MAX_RECORD: u64 = 1 << 30;
/// Largest chunk that is decompressed.
const MAX_DECOMPRESSED: u64 = 1 << 28;

/// Checked reading of little-endian fields; None once the bytes run out.
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Reads from `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    /// One byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[b]| b)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Bytes after their 32-bit length.
    pub fn prefixed(&mut self) -> Option<&'a [u8]> {
        let n = usize::try_from(self.u32()?).ok()?;
        self.bytes(n)
    }

    /// UTF-8 text after its 32-bit length.
    pub fn text(&mut self) -> Option<String> {
        String::from_utf8(self.prefixed()?.to_vec()).ok()
    }

    /// A map of text to text after its length in bytes.
    pub fn map(&mut self) -> Option<BTreeMap<String, String>> {
        let mut inner = Fields(self.prefixed()?);
        let mut out = BTreeMap::new();
        while !inner.is_empty() {
            out.insert(inner.text()?, inner.text()?);
        }
        Some(out)
    }

    /// Nothing left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Everything left.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// A channel record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelRecord {
    /// Id.
    pub id: u16,
    /// Schema, 0 for none.
    pub schema_id: u16,
    /// Topic.
    pub topic: String,
    /// Encoding of its messages.
    pub message_encoding: String,
    /// Key-value metadata.
    pub metadata: BTreeMap<String, String>,
}

/// A schema record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaRecord {
    /// Id, not 0.
    pub id: u16,
    /// Name.
    pub name: String,
    /// Encoding of the data.
    pub encoding: String,
    /// Schema text.
    pub data: Vec<u8>,
}

/// A message record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageRecord<'a> {
    /// Channel.
    pub channel_id: u16,
    /// Sequence.
    pub sequence: u32,
    /// Log time, ns.
    pub log_time: u64,
    /// Publish time, ns.
    pub publish_time: u64,
    /// Payload.
    pub data: &'a [u8],
}

/// What a chunk holds.
#[derive(Debug)]
pub enum ChunkEntry<'a> {
    /// Definition of a schema.
    Schema(SchemaRecord),
    /// Definition of a channel.
    Channel(ChannelRecord),
    /// A message.
    Message(MessageRecord<'a>),
}

/// The head of a chunk record.
#[derive(Debug, Clone)]
pub struct ChunkHead {
    /// Earliest log time, 0 for none.
    pub start_ns: u64,
    /// Latest log time, 0 for none.
    pub end_ns: u64,
    uncompressed_size: u64,
    uncompressed_crc: u32,
    compression: String,
    compressed_size: u64,
}

impl ChunkHead {
    /// Reads the head and tells how many bytes it took.
    fn read(bytes: &[u8]) -> Option<(Self, u64)> {
        let mut fields = Fields::new(bytes);
        let start_ns = fields.u64()?;
        let end_ns = fields.u64()?;
        let uncompressed_size = fields.u64()?;
        let uncompressed_crc = fields.u32()?;
        let compression = fields.text()?;
        let compressed_size = fields.u64()?;
        let taken = (bytes.len() - fields.rest().len()) as u64;
        Some((Self { start_ns, end_ns, uncompressed_size, uncompressed_crc, compression, compressed_size }, taken))
    }

    /// Reads the head of a record of `length` bytes, of which `bytes` are the first, if its sizes agree.
    pub fn plausible(bytes: &[u8], length: u64) -> Option<Self> {
        let (head, taken) = Self::read(bytes)?;
        let sound = matches!(head.compression.as_str(), "" | "zstd")
            && taken.checked_add(head.compressed_size) == Some(length)
            && head.start_ns <= head.end_ns
            && (!head.compression.is_empty() || head.uncompressed_size == head.compressed_size);
        sound.then_some(head)
    }

    /// Reads the head of a chunk that broke off before its end, as far as it can be believed.
    pub fn begun(bytes: &[u8]) -> Option<Self> {
        let (head, _) = Self::read(bytes)?;
        (matches!(head.compression.as_str(), "" | "zstd") && head.start_ns <= head.end_ns).then_some(head)
    }
}

/// A chunk whose checksum agreed, decompressed.
pub struct Chunk {
    records: Vec<u8>,
}

impl Chunk {
    /// Takes a whole chunk record apart and checks it.
    ///
    /// # Errors
    /// What is wrong with it, as half a sentence.
    pub fn decode(mut body: Vec<u8>) -> Result<Self, String> {
        let length = body.len() as u64;
        let head = ChunkHead::plausible(&body, length).ok_or("its header is damaged")?;
        let taken = usize::try_from(length - head.compressed_size).map_err(|_| "its header is damaged")?;
        let records = if head.compression.is_empty() {
            body.drain(..taken);
            body
        } else {
            decompress(body.get(taken..).unwrap_or_default(), head.uncompressed_size)?
        };
        if records.len() as u64 != head.uncompressed_size {
            return Err(format!("it holds {} bytes instead of {}", records.len(), head.uncompressed_size));
        }
        if head.uncompressed_crc != 0 && crc32fast::hash(&records) != head.uncompressed_crc {
            return Err("its checksum does not agree".to_owned());
        }
        Ok(Self { records })
    }

    /// Decompressed size in bytes.
    pub fn bytes(&self) -> u64 {
        self.records.len() as u64
    }

    /// Its records in order; the first one that is malformed ends them with an error.
    pub fn entries(&self) -> impl Iterator<Item = Result<ChunkEntry<'_>, String>> {
        let mut fields = Fields::new(&self.records);
        let mut failed = false;
        std::iter::from_fn(move || {
            while !fields.is_empty() && !failed {
                match entry(&mut fields) {
                    Some(Some(entry)) => return Some(Ok(entry)),
                    Some(None) => {}
                    None => {
                        failed = true;
                        return Some(Err("a record in it is malformed".to_owned()));
                    }
                }
            }
            None
        })
    }
}

fn decompress(data: &[u8], size: u64) -> Result<Vec<u8>, String> {
    if size > MAX_DECOMPRESSED {
        return Err(format!("it claims {size} bytes, more than the {MAX_DECOMPRESSED} that are believed"));
    }
    // What is claimed is believed as far as a megabyte, and as far as anything compresses in earnest.
    let believed = size.min((data.len() as u64).saturating_mul(256)).max(1 << 20).min(size);
    let mut out = Vec::with_capacity(usize::try_from(believed).unwrap_or(0).saturating_add(1));
    zstd::stream::read::Decoder::new(data)
        .and_then(|decoder| decoder.take(size + 1).read_to_end(&mut out))
        .map_err(|e| format!("it does not decompress ({e})"))?;
    Ok(out)
}

/// The next entry of a chunk: None when malformed, Some(None) when it is of no interest.
fn entry<'a>(fields: &mut Fields<'a>) -> Option<Option<ChunkEntry<'a>>> {
    let opcode = fields.u8()?;
    let length = usize::try_from(fields.u64()?).ok()?;
    let body = fields.bytes(length)?;
    Some(match opcode {
        op::SCHEMA => Some(ChunkEntry::Schema(schema(body)?)),
        op::CHANNEL => Some(ChunkEntry::Channel(channel(body)?)),
        op::MESSAGE => Some(ChunkEntry::Message(message(body)?)),
        // Nothing else that the format knows belongs into a chunk; from 0x80 on, records are whose they are.
        0x80.. => None,
        _ => return None,
    })
}

/// Parses the body of a schema record.
pub fn schema(body: &[u8]) -> Option<SchemaRecord> {
    let mut fields = Fields::new(body);
    let record = SchemaRecord {
        id: fields.u16()?,
        name: fields.text()?,
        encoding: fields.text()?,
        data: fields.prefixed()?.to_vec(),
    };
    (record.id != 0).then_some(record)
}

/// Parses the body of a channel record.
pub fn channel(body: &[u8]) -> Option<ChannelRecord> {
    let mut fields = Fields::new(body);
    Some(ChannelRecord {
        id: fields.u16()?,
        schema_id: fields.u16()?,
        topic: fields.text()?,
        message_encoding: fields.text()?,
        metadata: fields.map()?,
    })
}

fn message(body: &[u8]) -> Option<MessageRecord<'_>> {
    let mut fields = Fields::new(body);
    Some(MessageRecord {
        channel_id: fields.u16()?,
        sequence: fields.u32()?,
        log_time: fields.u64()?,
        publish_time: fields.u64()?,
        data: fields.rest(),
    })
}

/// An attachment whose checksum agreed.
#[derive(Debug, Clone)]
pub struct AttachmentRecord {
    /// Log time, ns.
    pub log_time: u64,
    /// Name.
    pub name: String,
    /// Media type.
    pub media_type: String,
    /// Content.
    pub data: Vec<u8>,
}

/// Parses the body of an attachment record and checks its checksum.
pub fn attachment(body: &[u8]) -> Option<AttachmentRecord> {
    let (content, crc) = body.split_at_checked(body.len().checked_sub(4)?)?;
    let crc = u32::from_le_bytes(crc.try_into().ok()?);
    if crc != 0 && crc32fast::hash(content) != crc {
        return None;
    }
    let mut fields = Fields::new(content);
    let log_time = fields.u64()?;
    let _create_time = fields.u64()?;
    let name = fields.text()?;
    let media_type = fields.text()?;
    let length = usize::try_from(fields.u64()?).ok()?;
    let data = fields.bytes(length)?.to_vec();
    fields.is_empty().then_some(AttachmentRecord { log_time, name, media_type, data })
}

/// Parses the body of a metadata record.
pub fn metadata(body: &[u8]) -> Option<(String, BTreeMap<String, String>)> {
    let mut fields = Fields::new(body);
    let out = (fields.text()?, fields.map()?);
    fields.is_empty().then_some(out)
}

/// Parses the body of a message index: channel and number of messages.
pub fn message_index(body: &[u8]) -> Option<(u16, u64)> {
    let mut fields = Fields::new(body);
    let channel = fields.u16()?;
    let entries = fields.prefixed()?;
    (fields.is_empty() && entries.len() % 16 == 0).then_some((channel, (entries.len() / 16) as u64))
}

/// Statistics of a summary, as far as they are checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Messages.
    pub messages: u64,
    /// Earliest log time.
    pub start_ns: u64,
    /// Latest log time.
    pub end_ns: u64,
    /// Messages per channel.
    pub channels: BTreeMap<u16, u64>,
}

/// Parses the body of a statistics record.
pub fn statistics(body: &[u8]) -> Option<Statistics> {
    let mut fields = Fields::new(body);
    let messages = fields.u64()?;
    fields.bytes(2 + 4 + 4 + 4 + 4)?;
    let start_ns = fields.u64()?;
    let end_ns = fields.u64()?;
    let mut counts = Fields::new(fields.prefixed()?);
    let mut channels = BTreeMap::new();
    while !counts.is_empty() {
        channels.insert(counts.u16()?, counts.u64()?);
    }
    Some(Statistics { messages, start_ns, end_ns, channels })
}

/// Whether the body of a record of the summary is laid out as the format says: every length in it fits. The public
/// reader asks for memory by such lengths before it looks at what is there.
pub fn is_summary(opcode: u8, body: &[u8]) -> bool {
    let mut fields = Fields::new(body);
    let whole = match opcode {
        op::SCHEMA => return schema(body).is_some(),
        op::CHANNEL => return channel(body).is_some(),
        op::STATISTICS => return statistics(body).is_some(),
        op::CHUNK_INDEX => {
            let offsets = fields.bytes(4 * 8).and_then(|_| fields.prefixed());
            offsets.is_some_and(|offsets| offsets.len() % 10 == 0)
                && fields.u64().and_then(|_| fields.text()).and_then(|_| fields.bytes(2 * 8)).is_some()
        }
        op::ATTACHMENT_INDEX => fields.bytes(5 * 8).and_then(|_| fields.text()).and_then(|_| fields.text()).is_some(),
        op::METADATA_INDEX => fields.bytes(2 * 8).and_then(|_| fields.text()).is_some(),
        op::SUMMARY_OFFSET => fields.bytes(1 + 2 * 8).is_some(),
        _ => false,
    };
    whole && fields.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attachment_too_short_for_its_checksum_is_no_attachment() {
        for n in 0..40 {
            assert!(attachment(&vec![0xff; n]).is_none());
        }
    }

    #[test]
    fn a_chunk_that_claims_too_much_is_refused() {
        let mut body = Vec::new();
        body.extend_from_slice(&1u64.to_le_bytes());
        body.extend_from_slice(&1u64.to_le_bytes());
        body.extend_from_slice(&u64::MAX.to_le_bytes());
        body.extend_from_slice(&0u32.to_le_bytes());
        body.extend_from_slice(&4u32.to_le_bytes());
        body.extend_from_slice(b"zstd");
        let data = zstd::stream::encode_all(&[0u8; 1000][..], 1).unwrap();
        body.extend_from_slice(&(data.len() as u64).to_le_bytes());
        body.extend_from_slice(&data);
        assert!(Chunk::decode(body).err().unwrap().contains("more than"));
    }

    #[test]
    fn a_chunk_that_decompresses_to_more_than_it_says_is_refused() {
        let mut body = Vec::new();
        body.extend_from_slice(&[0; 16]);
        body.extend_from_slice(&10u64.to_le_bytes());
        body.extend_from_slice(&0u32.to_le_bytes());
        body.extend_from_slice(&4u32.to_le_bytes());
        body.extend_from_slice(b"zstd");
        let data = zstd::stream::encode_all(&[0u8; 1000][..], 1).unwrap();
        body.extend_from_slice(&(data.len() as u64).to_le_bytes());
        body.extend_from_slice(&data);
        assert!(Chunk::decode(body).err().unwrap().contains("11 bytes instead of 10"));
    }
}
