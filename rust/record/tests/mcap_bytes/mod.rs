//! MCAP files put together record by record, with every checksum right, whatever is in them (<https://mcap.dev/spec>).

use mcap::records::op;

const MAGIC: &[u8; 8] = b"\x89MCAP0\r\n";

/// A file up to the end of its data section.
pub struct File {
    bytes: Vec<u8>,
}

/// A length and that many bytes.
pub fn text(value: &[u8]) -> Vec<u8> {
    [&(value.len() as u32).to_le_bytes()[..], value].concat()
}

/// A record.
pub fn record(opcode: u8, body: &[u8]) -> Vec<u8> {
    [&[opcode][..], &(body.len() as u64).to_le_bytes(), body].concat()
}

/// Keys and values.
pub fn map(entries: &[(&str, &str)]) -> Vec<u8> {
    let pairs: Vec<u8> = entries.iter().flat_map(|(k, v)| [text(k.as_bytes()), text(v.as_bytes())].concat()).collect();
    text(&pairs)
}

/// A channel without schema.
pub fn channel(id: u16, topic: &str, metadata: &[(&str, &str)]) -> Vec<u8> {
    let parts = [&id.to_le_bytes()[..], &[0, 0], &text(topic.as_bytes()), &text(b"x"), &map(metadata)];
    record(op::CHANNEL, &parts.concat())
}

/// A message.
pub fn message(channel: u16, time: u64, data: &[u8]) -> Vec<u8> {
    let times = [time.to_le_bytes(), time.to_le_bytes()].concat();
    record(op::MESSAGE, &[&channel.to_le_bytes()[..], &[1, 0, 0, 0], &times, data].concat())
}

impl File {
    /// Begins with a header.
    pub fn new() -> Self {
        Self { bytes: [&MAGIC[..], &record(op::HEADER, &[text(b"firsthand.evidence"), text(b"")].concat())].concat() }
    }

    /// Any record.
    pub fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
    }

    /// A metadata record.
    pub fn metadata(&mut self, name: &str, entries: &[(&str, &str)]) {
        self.push(&record(op::METADATA, &[text(name.as_bytes()), map(entries)].concat()));
    }

    /// A chunk that holds `records`.
    pub fn chunk(&mut self, records: &[u8], compressed: bool) {
        let (name, data) = match compressed {
            true => (&b"zstd"[..], zstd::stream::encode_all(records, 1).unwrap()),
            false => (&b""[..], records.to_vec()),
        };
        let mut body = [1_u64, 2].map(u64::to_le_bytes).concat();
        body.extend_from_slice(&(records.len() as u64).to_le_bytes());
        body.extend_from_slice(&crc32fast::hash(records).to_le_bytes());
        body.extend_from_slice(&text(name));
        body.extend_from_slice(&(data.len() as u64).to_le_bytes());
        body.extend_from_slice(&data);
        self.push(&record(op::CHUNK, &body));
    }

    /// The file with a summary that counts so many messages.
    pub fn finish(mut self, messages: u64) -> Vec<u8> {
        let crc = crc32fast::hash(&self.bytes);
        self.push(&record(op::DATA_END, &crc.to_le_bytes()));
        let start = self.bytes.len();
        let mut statistics = messages.to_le_bytes().to_vec();
        statistics.extend_from_slice(&[0; 2 + 4 + 4 + 4 + 4 + 8 + 8 + 4]);
        self.push(&record(op::STATISTICS, &statistics));
        let footer: Vec<u8> = [(start as u64).to_le_bytes(), 0_u64.to_le_bytes()].concat();
        let head = [&[op::FOOTER][..], &20_u64.to_le_bytes(), &footer].concat();
        self.push(&head);
        let crc = crc32fast::hash(&self.bytes[start..]);
        self.push(&crc.to_le_bytes());
        self.push(MAGIC);
        self.bytes
    }
}
