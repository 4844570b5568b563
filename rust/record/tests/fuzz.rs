//! Arbitrary bytes as recordings and as messages of workers: no panic, no overflow, no memory beyond what they account
//! for.
//!
//! Recordings are real ones with bytes changed, cut out, put in and moved, or made up with every checksum right, so that
//! what is behind the checksums is tried too. Debug builds check every addition. `FUZZ_ROUNDS` says how many inputs are
//! tried, `FUZZ_SEED` which comes first: a failure names its seed, and `FUZZ_ROUNDS=1 FUZZ_SEED=n` runs it alone.

#![allow(clippy::unwrap_used, reason = "helpers of a test, which fails where its input cannot be made")]

#[path = "../../sync/tests/chance/mod.rs"]
mod chance;
mod mcap_bytes;

use std::fs;
use std::path::Path;

use bytes::Bytes;
use chance::Random;
use firsthand_record::device::parse_devices;
use firsthand_record::episode::{EpisodeWriter, Sample};
use firsthand_record::evidence::read::read_evidence;
use firsthand_record::evidence::{Attachment, EvidenceWriter, Row, layout};
use firsthand_record::intake::{Intake, TakeOptions, WireMessage};
use firsthand_record::live::read_page;
use firsthand_record::recover::recover;
use firsthand_record::{RecordError, RecordResult};
use mcap_bytes::File;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Bytes that any call may need whatever its input: buffers of writers and readers.
const CONSTANT: usize = 24 << 20;
/// Bytes that a call may need for each byte of its input, after decompression.
const FACTOR: usize = 40;

const DEVICES: &str = r#"[
    {"name": "cam", "domain": 1, "counter": {"bits": 32, "tick_num": 1000, "tick_den": 1}, "min_delay_bound_ns": 1000,
     "streams": [{"name": "head", "media": "record", "stamp_point": "start", "has_trigger_index": true},
                 {"name": "wrist", "media": "picture/png", "stamp_point": "middle", "reorder_bound": 2}]},
    {"name": "imu", "domain": 1, "counter": {"bits": 64, "tick_num": 1, "tick_den": 1}, "identity_map": true,
     "streams": [{"name": "imu", "media": "imu", "stamp_point": "instant"}]}]"#;
const PLAN: &str = r#"{"reference": "head", "period_ns": 16666667, "ceiling_ns": 2000000, "latency_ns": 50000000,
    "streams": [{"name": "head", "kind": "triggered", "period_ns": 16666667},
                {"name": "wrist", "kind": "triggered", "period_ns": 16666667, "decimate": 2, "phase": 1},
                {"name": "imu", "kind": "sampled", "period_ns": 1000000}]}"#;
const STREAMS: [&str; 4] = ["head", "wrist", "imu", "nobody"];

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// What a call gives, after it has needed no more memory than its input of so many bytes accounts for.
fn bounded<T>(bytes: usize, call: impl FnOnce() -> T) -> T {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let out = call();
    let needed = MEMORY.peak_usage().saturating_sub(before);
    assert!(needed <= CONSTANT + FACTOR * bytes, "{needed} bytes of memory for {bytes} bytes of input");
    out
}

/// Where no disk slows a test down, if there is such a place.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// One sample on the wire.
fn wire_record(random: &mut Random, number: i64, payload: u32, metadata: u32) -> Vec<u8> {
    let mut fields = [number, number, 1000 + number * 16_667, 5_000_000 + number * 16_666_667, 4_000_000];
    if random.one_in(12) {
        let at = random.below(5) as usize;
        fields[at] = random.odd();
    }
    let mut out: Vec<u8> = fields.iter().flat_map(|v| v.to_le_bytes()).collect();
    out.extend_from_slice(&payload.to_le_bytes());
    out.extend_from_slice(&metadata.to_le_bytes());
    out.extend_from_slice(&[random.among(&[1, 1, 1, 1, 0, 3, 9]), 0, 0, 0, 0, 0, 0, 0]);
    out
}

/// Sends one message, whose bytes may have been damaged under way.
fn send(random: &mut Random, intake: &mut Intake, number: i64) -> RecordResult<()> {
    let count = random.below(4);
    let lengths: Vec<(u32, u32)> = (0..count).map(|_| (random.below(60) as u32, random.below(3) as u32)).collect();
    let mut records: Vec<u8> = Vec::new();
    for (at, &(payload, metadata)) in lengths.iter().enumerate() {
        records.extend(wire_record(random, number + at as i64, payload, metadata));
    }
    let total: u32 = lengths.iter().map(|(payload, metadata)| payload + metadata).sum();
    let mut payload: Vec<u8> = (0..total).map(|_| random.bits() as u8).collect();
    let mut stated = count;
    match random.below(20) {
        0 => mutate(random, &mut records),
        1 => mutate(random, &mut payload),
        2 => stated = random.odd(),
        _ => {}
    }
    intake.push(&WireMessage {
        stream: random.among(&STREAMS),
        incarnation: random.among(&[0, 0, 0, 1, random.0 as i64]),
        epoch: random.among(&[1, 1, 1, 0, 2]),
        flags: random.among(&[0, 0, 0, 1, -1]),
        count: stated,
        records: &records,
        payload: &payload,
    })
}

/// A take of whatever comes: it must end in files that can be read.
fn take(random: &mut Random) -> RecordResult<()> {
    let home = folder();
    let mut intake = Intake::new(DEVICES, PLAN, &home.path().join("live"))?;
    let directory = home.path().join("take");
    fs::create_dir(&directory).unwrap();
    let messages = random.among(&[0, 3, 40, 200]);
    let mut number = 0;
    bounded(messages * 512, || {
        let mut accepted = 0;
        for at in 0..messages {
            if at == messages / 4 {
                intake.start_take(&TakeOptions {
                    folder: &directory,
                    epoch: 1,
                    take: "{}",
                    attachments: Vec::new(),
                    flush_ns: 1_000_000_000,
                    queue_bytes: random.among(&[1 << 20, 2000]),
                })?;
            }
            match send(random, &mut intake, number) {
                Ok(()) => accepted += 1,
                Err(error) => assert!(matches!(error, RecordError::Invalid(_)), "{error}"),
            }
            number += random.among(&[1, 1, 1, 2, 0, -1]);
            match random.below(30) {
                0 => intake.advance(random.odd()),
                1..10 => intake.advance(5_000_000 + number * 16_666_667),
                10 => drop(intake.edges(vec![[random.odd(), random.odd()]])),
                11 => drop(intake.event(random.among(&["{}", "[", "3", "{\"kind\":\"x\"}"]))),
                _ => {}
            }
        }
        assert!(messages < 40 || accepted > 0);
        drop(read_page(&home.path().join("live"))?);
        if messages > 0 { intake.stop_take("{}").map(drop) } else { Ok(()) }
    })?;
    if messages > 0 {
        let evidence = read_evidence(&directory.join("evidence.mcap"), &mut |_, _| true)?.unwrap();
        assert_eq!(evidence.samples.len(), 3);
        assert!(!recover(&directory)?.note.torn);
    }
    Ok(())
}

/// Changes, cuts out, puts in and moves some bytes.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(3) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len() as i64) as usize;
        let length = random.among(&[1, 4, 9, 100, 5000]).min(bytes.len() - at);
        match random.below(8) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes.truncate(at),
            2 => bytes[at..at + length].fill(random.among(&[0, 0xff, 6, 0x0f])),
            3 => drop(bytes.drain(at..at + length)),
            4 => {
                let again = bytes[at..at + length].to_vec();
                let to = random.below(bytes.len() as i64) as usize;
                drop(bytes.splice(to..to, again));
            }
            5 => {
                let length = length.min(8);
                bytes[at..at + length].copy_from_slice(&random.odd().to_le_bytes()[..length]);
            }
            6 => bytes.extend((0..length).map(|_| random.bits() as u8)),
            _ => bytes[at] = random.bits() as u8,
        }
    }
}

/// Evidence that nobody wrote, with every checksum right.
fn made_up(random: &mut Random) -> Vec<u8> {
    let names = [layout::SAMPLE_COLUMNS.join(","), layout::TICK_COLUMNS.join(","), "index,time_ns".into()];
    let mut file = File::new();
    file.metadata("firsthand.episode", &[("schema", "firsthand.evidence/1"), ("take", "{}")]);
    file.metadata("firsthand.devices", &[("devices", random.among(&["[]", DEVICES, "\u{fffd}"]))]);
    let mut messages = 0;
    for _ in 0..random.below(3) {
        let mut records = Vec::new();
        for _ in 0..random.below(8) {
            let id = random.below(4) as u16;
            if random.one_in(3) {
                let topic = random.among(&["edges", "ticks", "events", "samples/a", "samples/b", "samples/", "x"]);
                let columns = names[random.below(3) as usize].as_str();
                let columns = random.among(&[columns, columns, columns, "", ",,,,"]);
                records.extend(mcap_bytes::channel(id, topic, &[("layout", layout::NAME), ("columns", columns)]));
            } else {
                let rows = random.below(5) as usize;
                let words = rows * random.among(&[13, 2, 3, 1]);
                let mut data = (rows as u32).to_le_bytes().to_vec();
                data.extend((0..words).flat_map(|_| random.odd().to_le_bytes()));
                if random.one_in(8) {
                    mutate(random, &mut data);
                }
                records.extend(mcap_bytes::message(id, random.odd() as u64, &data));
                messages += 1;
            }
        }
        if random.one_in(8) {
            mutate(random, &mut records);
        }
        file.chunk(&records, random.one_in(2));
    }
    if random.one_in(20) {
        let zeros = vec![0; 3 << 20]; // a few hundred bytes that claim, and give, some megabytes
        file.chunk(&zeros, true);
    }
    file.finish(if random.one_in(20) { random.odd() as u64 } else { messages })
}

/// The two files of a small take as the writers write it, flushed every tenth sample; the same bytes every time.
fn real_take() -> [Vec<u8>; 2] {
    let home = folder();
    let devices = parse_devices(DEVICES).unwrap();
    let spec = Attachment { name: "spec.toml".into(), media_type: "application/toml".into(), data: vec![b'x'; 500] };
    let mut evidence = EvidenceWriter::create(home.path(), "{}", DEVICES, &devices, &[spec], 1).unwrap();
    let mut episode = EpisodeWriter::create(home.path(), &devices, 1).unwrap();
    for number in 0..60 {
        for stream in 0..3 {
            let (sequence, time) = (number, 5_000_000 + number * 16_666_667);
            let payload = Bytes::from(vec![number as u8; 20]);
            let (capture_ns, arrival_ns, metadata) = (time, time + 1_000_000, Bytes::from_static(b"m"));
            episode.write(&Sample { stream, sequence, capture_ns, arrival_ns, payload, metadata }).unwrap();
            evidence.row(stream, &Row { sequence, arrival_ns, rig_ns: time, size: 20, ..Row::default() });
        }
        evidence.tick(number, 5_000_000 + number * 16_666_667, 0);
        if number % 10 == 9 {
            evidence.event("{\"kind\": \"note\"}".into());
            episode.sync().unwrap();
            evidence.sync().unwrap();
        }
    }
    episode.finish().unwrap();
    evidence.finish("{}").unwrap();
    ["episode.mcap", "evidence.mcap"].map(|name| fs::read(home.path().join(name)).unwrap())
}

/// Reads and recovers an episode of those bytes. Whether it could be read as it was.
fn read_and_recover(home: &Path, files: [Option<&[u8]>; 2]) -> RecordResult<bool> {
    for (name, bytes) in ["episode.mcap", "evidence.mcap"].iter().zip(files) {
        let path = home.join(name);
        match bytes {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => drop(fs::remove_file(&path)),
        }
    }
    let given: usize = files.iter().flatten().map(|bytes| bytes.len()).sum();
    // Chunks of zeros decompress to megabytes; a rewritten file is decompressed and held chunk by chunk.
    let whole = bounded(given + (3 << 20), || read_evidence(&home.join("evidence.mcap"), &mut |_, _| true).is_ok());
    let first = bounded(given + (3 << 20), || recover(home))?;
    // What was recovered is whole, and recovering it again finds the same.
    let second = recover(home)?;
    assert_eq!(first.files.keys().collect::<Vec<_>>(), second.files.keys().collect::<Vec<_>>());
    assert_eq!(first.note.to_json(), second.note.to_json());
    Ok(whole)
}

fn recordings(random: &mut Random, real: &[Vec<u8>; 2], home: &Path) -> RecordResult<bool> {
    let [mut episode, mut evidence] = real.clone();
    match random.below(4) {
        0 => evidence = made_up(random),
        1 => mutate(random, &mut episode),
        2 => evidence = (0..random.below(3000)).map(|_| random.bits() as u8).collect(),
        _ => mutate(random, &mut evidence),
    }
    let episode = (!random.one_in(10)).then_some(episode.as_slice());
    read_and_recover(home, [episode, Some(&evidence)])
}

/// Descriptions and pages that are not what they should be are refused with a sentence.
fn texts(random: &mut Random, home: &Path) {
    let mut devices = DEVICES.as_bytes().to_vec();
    let mut plan = PLAN.as_bytes().to_vec();
    let changed = if random.one_in(2) { &mut devices } else { &mut plan };
    mutate(random, changed);
    let (devices, plan) = (String::from_utf8_lossy(&devices), String::from_utf8_lossy(&plan));
    let path = home.join("live");
    let made = bounded(devices.len() + plan.len(), || Intake::new(&devices, &plan, &path).map(drop));
    assert!(made.is_err() || parse_devices(&devices).is_ok());
    let mut page = fs::read(&path).unwrap_or_default();
    mutate(random, &mut page);
    fs::write(&path, &page).unwrap();
    if let Err(error) = bounded(page.len(), || read_page(&path)) {
        assert!(matches!(error, RecordError::Unreadable { .. }), "{error}");
    }
}

/// One test, so that nobody else asks for memory meanwhile.
#[test]
fn arbitrary_bytes_as_recordings() {
    let (first, rounds) = (setting("FUZZ_SEED", 1), setting("FUZZ_ROUNDS", 300));
    let (real, home) = (real_take(), folder());
    let (mut whole, mut refused) = (0, 0);
    for seed in first..first + rounds {
        let outcome = std::panic::catch_unwind(|| {
            take(&mut Random(seed)).unwrap();
            texts(&mut Random(seed), home.path());
            recordings(&mut Random(seed), &real, home.path())
        });
        match outcome {
            Ok(Ok(readable)) => whole += u64::from(readable),
            Ok(Err(error)) => {
                refused += 1;
                assert!(matches!(error, RecordError::Unreadable { .. }), "input {seed}: {error}");
            }
            Err(_) => panic!("input {seed}: FUZZ_ROUNDS=1 FUZZ_SEED={seed} runs it alone"),
        }
    }
    // Inputs that are all alike try nothing: some can be read as they are, most can be recovered.
    assert!(rounds < 100 || (whole * 20 > rounds && refused * 2 < rounds), "{whole} whole, {refused} refused");
}
