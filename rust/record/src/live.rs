//! The live page: what the recorder sees right now, for any process to read.
//!
//! A small file, written in place by positioned writes; no memory is shared and nobody waits for anybody.
//!
//! ```text
//! 0      magic "FHLIVE1\n", slot size as u64; zeros up to byte 4096
//! 4096   slot 0
//! 4096 + slot size   slot 1
//! slot:  sequence u64, length u64, CRC-64/NVME u64 (of sequence, length and text), text (JSON of `Page`, UTF-8)
//! ```
//!
//! Integers are little-endian. The writer fills the slots in turn; a reader takes the whole slot of the higher
//! sequence. A write that is cut short, by a kill in the middle of it too, leaves a slot whose checksum disagrees and
//! the other slot as it was, so there is always a page to read.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::device::ABSENT;
use crate::error::{RecordError, RecordResult};
use crate::scan::Fields;

const MAGIC: &[u8; 8] = b"FHLIVE1\n";
const FIRST_SLOT: u64 = 4096;
const SLOT_HEAD: usize = 24;
/// Largest slot that a reader believes.
const MAX_SLOT: u64 = 16 << 20;
/// Attempts before a reader gives up on a page that changes under its hands each time.
const ATTEMPTS: u32 = 1000;

/// What is going on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// JSON of the take that runs or ran last; empty before the first.
    pub take: String,
    /// A take is running.
    pub recording: bool,
    /// Number of the last final tick, -1 before the first.
    pub tick: i64,
    /// Its residual, None where it has none.
    pub residual_ns: Option<i64>,
    /// Largest residual of the take.
    pub max_ns: Option<i64>,
    /// Largest residual of the last 60 final ticks.
    pub recent_max_ns: Option<i64>,
    /// Final ticks over the ceiling.
    pub over: u64,
    /// Samples that came after their tick was final.
    pub late: u64,
    /// Messages that were malformed, since the recorder started.
    pub malformed: u64,
    /// The disk refused; what arrives since then is lost. Empty while all is well.
    pub disk: String,
    /// Clock of the caller when the page was published.
    pub updated_ns: i64,
    /// Reference time of the last final tick, -2^63 before the first.
    pub final_ns: i64,
    /// By stream.
    pub streams: BTreeMap<String, StreamPage>,
}

/// One stream on the page; counts are those of the take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamPage {
    /// Samples that came.
    pub received: u64,
    /// Handed to the file.
    pub written: u64,
    /// Certainly on the disk.
    pub durable: u64,
    /// Lost because the queue was full.
    pub lost_queue: u64,
    /// Lost because the disk refused.
    pub lost_disk: u64,
    /// Samples that the device counted and that did not come.
    pub sequence_gaps: u64,
    /// Final ticks of the take at which a triggered stream was expected and had no sample.
    pub missing: u64,
    /// Steps of the device's clock since the take began, each of which split its map.
    pub splits: u64,
    /// Samples a second over the last second, in thousandths; of previews too.
    pub rate_mhz: i64,
    /// Last signed offset to the reference, None where the last final tick has no match.
    pub offset_ns: Option<i64>,
    /// Rig time of the last sample, -2^63 before the first.
    pub last_ns: i64,
    /// How many samples in a row carried the same payload: 1 is healthy, 0 before the first.
    pub frozen_run: u64,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            take: String::new(),
            recording: false,
            tick: -1,
            residual_ns: None,
            max_ns: None,
            recent_max_ns: None,
            over: 0,
            late: 0,
            malformed: 0,
            disk: String::new(),
            updated_ns: 0,
            final_ns: ABSENT,
            streams: BTreeMap::new(),
        }
    }
}

impl Default for StreamPage {
    fn default() -> Self {
        Self {
            received: 0,
            written: 0,
            durable: 0,
            lost_queue: 0,
            lost_disk: 0,
            sequence_gaps: 0,
            missing: 0,
            splits: 0,
            rate_mhz: 0,
            offset_ns: None,
            last_ns: ABSENT,
            frozen_run: 0,
        }
    }
}

/// The one writer of a page.
pub struct Publisher {
    path: PathBuf,
    file: File,
    slot_bytes: u64,
    sequence: u64,
    buffer: Vec<u8>,
}

impl Publisher {
    /// Makes the page at `path` anew, replacing one that is there, and publishes `page`. Texts of later pages may
    /// grow up to `room` bytes.
    ///
    /// # Errors
    /// [`RecordError::Disk`], [`RecordError::DiskFull`].
    pub fn create(path: &Path, room: usize, page: &Page) -> RecordResult<Self> {
        let slot_bytes = ((room + SLOT_HEAD) as u64).next_multiple_of(4096).min(MAX_SLOT);
        let fresh = path.with_extension("fresh");
        let failed = |e| RecordError::io("creating", path, e);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&fresh).map_err(failed)?;
        let head: Vec<u8> = MAGIC.iter().copied().chain(slot_bytes.to_le_bytes()).collect();
        file.write_all_at(&head, 0).map_err(failed)?;
        file.set_len(FIRST_SLOT + 2 * slot_bytes).map_err(failed)?;
        let mut publisher = Self { path: path.to_path_buf(), file, slot_bytes, sequence: 0, buffer: Vec::new() };
        publisher.publish(page)?;
        // No fsync: the page says what is, and after a power cut nothing is.
        std::fs::rename(&fresh, path).map_err(failed)?;
        Ok(publisher)
    }

    /// Publishes a page.
    ///
    /// # Errors
    /// [`RecordError::Disk`], [`RecordError::DiskFull`]; the page before stays readable.
    pub fn publish(&mut self, page: &Page) -> RecordResult<()> {
        let failed = |e| RecordError::io("publishing", &self.path, e);
        self.buffer.clear();
        self.buffer.resize(SLOT_HEAD, 0);
        serde_json::to_writer(&mut self.buffer, page).map_err(|e| failed(e.into()))?;
        if self.buffer.len() as u64 > self.slot_bytes {
            // Only the take's own text can be that long; everything else was reckoned with.
            let short = Page { take: String::new(), ..page.clone() };
            self.buffer.truncate(SLOT_HEAD);
            serde_json::to_writer(&mut self.buffer, &short).map_err(|e| failed(e.into()))?;
        }
        self.sequence += 1;
        let text = self.buffer.split_off(SLOT_HEAD);
        self.buffer.clear();
        self.buffer.extend_from_slice(&self.sequence.to_le_bytes());
        self.buffer.extend_from_slice(&(text.len() as u64).to_le_bytes());
        self.buffer.extend_from_slice(&checksum(self.sequence, &text).to_le_bytes());
        self.buffer.extend_from_slice(&text);
        let offset = FIRST_SLOT + (self.sequence % 2) * self.slot_bytes;
        self.file.write_all_at(&self.buffer, offset).map_err(failed)
    }
}

/// Reads the newest whole page of `path`. The file is opened anew each time, so a recorder that was restarted is
/// followed.
///
/// # Errors
/// [`RecordError::Unreadable`] when there is no page.
pub fn read_page(path: &Path) -> RecordResult<Page> {
    let unreadable = |what: &str| RecordError::unreadable(path, format!("{what}; is the recorder running?"));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(unreadable("there is no live page")),
        Err(e) => return Err(RecordError::io("opening", path, e)),
    };
    let mut head = [0u8; 16];
    file.read_exact_at(&mut head, 0).map_err(|_| unreadable("it is too short for a live page"))?;
    let mut fields = Fields::new(&head);
    let magic = fields.bytes(8);
    let slot_bytes = fields.u64().unwrap_or(0);
    if magic != Some(MAGIC) || !(SLOT_HEAD as u64..=MAX_SLOT).contains(&slot_bytes) {
        return Err(unreadable("it is not a live page"));
    }
    for _ in 0..ATTEMPTS {
        if let Some(text) = newest(&file, slot_bytes) {
            return serde_json::from_slice(&text).map_err(|_| unreadable("its text is not that of this version"));
        }
        std::thread::yield_now();
    }
    Err(unreadable("no page in it is whole"))
}

/// Text of the newer slot. None when neither is whole, or when the writer came round while they were read.
fn newest(file: &File, slot_bytes: u64) -> Option<Vec<u8>> {
    let read = |slot: u64| read_slot(file, FIRST_SLOT + slot * slot_bytes, slot_bytes);
    let (alone, number) = match (read(0), read(1)) {
        (Some(a), Some(b)) => return Some(if a.0 > b.0 { a.1 } else { b.1 }),
        (Some(a), None) => (a, 0),
        (None, Some(b)) => (b, 1),
        (None, None) => return None,
    };
    // The other slot is being written, or was when the writer died. If this one has not changed since, it is the
    // newest whole page; else the writer has come round and what we hold may be older than what was seen before.
    (read(number)?.0 == alone.0).then_some(alone.1)
}

fn read_slot(file: &File, offset: u64, slot_bytes: u64) -> Option<(u64, Vec<u8>)> {
    let mut head = [0u8; SLOT_HEAD];
    file.read_exact_at(&mut head, offset).ok()?;
    let mut fields = Fields::new(&head);
    let (sequence, length, expected) = (fields.u64()?, fields.u64()?, fields.u64()?);
    if sequence == 0 || length > slot_bytes - SLOT_HEAD as u64 {
        return None;
    }
    let mut text = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut text, offset + SLOT_HEAD as u64).ok()?;
    (checksum(sequence, &text) == expected).then_some((sequence, text))
}

fn checksum(sequence: u64, text: &[u8]) -> u64 {
    let mut crc = crc64fast_nvme::Digest::new();
    crc.write(&sequence.to_le_bytes());
    crc.write(&(text.len() as u64).to_le_bytes());
    crc.write(text);
    crc.sum64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(tick: i64) -> Page {
        Page {
            tick,
            updated_ns: tick * 3,
            streams: BTreeMap::from([("head".into(), StreamPage::default())]),
            ..Page::default()
        }
    }

    #[test]
    fn the_newest_page_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("live");
        let mut publisher = Publisher::create(&path, 10_000, &page(0)).unwrap();
        for tick in 1..20 {
            publisher.publish(&page(tick)).unwrap();
            assert_eq!(read_page(&path).unwrap(), page(tick));
        }
    }

    #[test]
    fn a_write_that_was_cut_at_any_byte_leaves_the_page_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("live");
        let mut publisher = Publisher::create(&path, 2000, &page(0)).unwrap();
        publisher.publish(&page(1)).unwrap();
        let before = std::fs::read(&path).unwrap();
        publisher.publish(&page(2)).unwrap();
        let after = std::fs::read(&path).unwrap();
        let changed: Vec<usize> = (0..before.len()).filter(|i| before[*i] != after[*i]).collect();
        for cut in changed[0]..=*changed.last().unwrap() {
            let mut torn = after[..cut].to_vec();
            torn.extend_from_slice(&before[cut..]);
            std::fs::write(&path, &torn).unwrap();
            assert_eq!(read_page(&path).unwrap(), page(1), "cut at {cut}");
        }
    }

    #[test]
    fn a_page_read_while_it_is_written_is_always_whole_and_never_older() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("live");
        let mut publisher = Publisher::create(&path, 2000, &page(0)).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut last = -1;
                while last < 3000 {
                    let read = read_page(&path).unwrap();
                    assert_eq!(read, page(read.tick));
                    assert!(read.tick >= last);
                    last = read.tick;
                }
            }
        });
        for tick in 1..=3000 {
            publisher.publish(&page(tick)).unwrap();
        }
        reader.join().unwrap();
    }

    #[test]
    fn a_take_text_without_bounds_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("live");
        let mut publisher = Publisher::create(&path, 2000, &page(0)).unwrap();
        publisher.publish(&Page { take: "x".repeat(10_000), ..page(1) }).unwrap();
        assert_eq!(read_page(&path).unwrap(), page(1));
    }

    #[test]
    fn what_is_no_page_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("live");
        assert!(read_page(&path).unwrap_err().to_string().contains("no live page"));
        for bytes in
            [&b""[..], &[0; 100], b"FHLIVE1\n\xff\xff\xff\xff\xff\xff\xff\xff", b"FHLIVE1\n\x00\x10\0\0\0\0\0\0"]
        {
            std::fs::write(&path, bytes).unwrap();
            assert!(matches!(read_page(&path), Err(RecordError::Unreadable { .. })));
        }
    }
}
