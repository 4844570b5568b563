//! What the recorder process calls for every message: parse, number, map, watch, publish, record.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;

use crate::channels::streams;
use crate::clocks::{DeviceClock, Receipt, StampRule};
use crate::counts::{Counters, Counts};
use crate::device::{ABSENT, DeviceInfo, parse_devices};
use crate::error::{RecordError, RecordResult};
use crate::evidence::{Attachment, LOST, OF_TAKE, Row, WARMUP};
use crate::live::Publisher;
use crate::watch::{Plan, Watch};
use crate::wire::{self, WireRecord};
use crate::writer::{Batch, Files, Item, Room, TakeSpec, TakeWriter};

/// Longest flush interval, so that nothing on its way to the disk gets older than 1 s.
const FLUSH_MAX_NS: i64 = 1_000_000_000;
const FLUSH_MIN_NS: i64 = 1_000_000;
/// A sequence this far below the highest is a late sample; further, the device began to count anew.
const LATE_SEQUENCE: i64 = 64;
/// Room on the live page for the JSON of the take.
const TAKE_TEXT_ROOM: usize = 16 << 10;

/// One message of a worker.
#[derive(Debug, Clone, Copy)]
pub struct WireMessage<'a> {
    /// Stream.
    pub stream: &'a str,
    /// Start of the worker.
    pub incarnation: i64,
    /// Arming.
    pub epoch: i64,
    /// See [`wire::END`].
    pub flags: i64,
    /// Number of records.
    pub count: i64,
    /// The records.
    pub records: &'a [u8],
    /// Payload and metadata bytes.
    pub payload: &'a [u8],
}

/// How a take is to be recorded.
#[derive(Debug, Clone)]
pub struct TakeOptions<'a> {
    /// Folder, there and empty.
    pub folder: &'a Path,
    /// Arming whose samples belong to it.
    pub epoch: i64,
    /// JSON of the take.
    pub take: &'a str,
    /// Verbatim documents for the evidence.
    pub attachments: Vec<Attachment>,
    /// Longest time between two flushes, 1 ms to 1 s.
    pub flush_ns: i64,
    /// Bound of the queue to the writer.
    pub queue_bytes: u64,
}

/// How a take ended.
#[derive(Debug)]
pub struct TakeEnd {
    /// Digests of the files; the error when the disk refused, after which they are as far as they are durable.
    pub files: RecordResult<Files>,
    /// Counts by stream.
    pub counts: BTreeMap<String, Counts>,
    /// Malformed messages since the recorder started.
    pub malformed: u64,
}

struct StreamIntake {
    name: String,
    device: usize,
    rule: StampRule,
    ended: bool,
    /// Incarnation and highest sequence of the take.
    highest: Option<(i64, i64)>,
}

struct Take {
    epoch: i64,
    writer: TakeWriter,
}

/// The recorder's core. One caller at a time.
pub struct Intake {
    devices_json: String,
    devices: Vec<DeviceInfo>,
    clocks: Vec<DeviceClock>,
    streams: Vec<StreamIntake>,
    by_name: BTreeMap<String, usize>,
    watch: Watch,
    page: Publisher,
    received: i64,
    malformed: u64,
    now_ns: i64,
    take: Option<Take>,
    last_counts: Vec<Counts>,
    disk: String,
    ticks: Vec<[i64; 3]>,
}

impl Intake {
    /// Prepares for the devices (JSON list of `DeviceInfo.to_json()`) and the plan (JSON, see [`Plan`]) and makes the
    /// live page.
    ///
    /// # Errors
    /// [`RecordError::Invalid`] for devices or a plan that do not make sense; [`RecordError::Disk`] for the page.
    pub fn new(devices_json: &str, plan: &str, live: &Path) -> RecordResult<Self> {
        let devices = parse_devices(devices_json)?;
        let mut watch = Watch::new(Plan::parse(plan)?, &devices)?;
        let clocks = devices.iter().map(DeviceClock::new).collect::<RecordResult<Vec<_>>>()?;
        let mut intakes = Vec::new();
        for (device, info) in devices.iter().enumerate() {
            for stream in &info.streams {
                let rule = StampRule { stream: intakes.len(), point: stream.stamp_point, offset_ns: stream.offset_ns };
                intakes.push(StreamIntake { name: stream.name.clone(), device, rule, ended: false, highest: None });
            }
        }
        let by_name = streams(&devices).enumerate().map(|(number, (_, s))| (s.name.clone(), number)).collect();
        let room = watch.page_room() + TAKE_TEXT_ROOM;
        let page = Publisher::create(live, room, watch.page(&[], &[], 0, String::new()))?;
        Ok(Self {
            devices_json: devices_json.to_owned(),
            devices,
            clocks,
            streams: intakes,
            by_name,
            watch,
            page,
            received: 0,
            malformed: 0,
            now_ns: 0,
            take: None,
            last_counts: Vec::new(),
            disk: String::new(),
            ticks: Vec::new(),
        })
    }

    /// Takes one message in.
    ///
    /// # Errors
    /// [`RecordError::Invalid`] for a malformed message or an unknown stream; it is counted and nothing else happens.
    pub fn push(&mut self, message: &WireMessage<'_>) -> RecordResult<()> {
        let Some(&number) = self.by_name.get(message.stream) else {
            self.malformed += 1;
            return Err(RecordError::Invalid(format!(
                "a message of stream {:?} came, which no device has; check the worker's stream names",
                message.stream
            )));
        };
        let records = wire::parse(message.stream, message.count, message.records, message.payload)
            .inspect_err(|_| self.malformed += 1)?;
        self.watch.received(number, records.len() as u64);
        let of_take = self.take.as_ref().is_some_and(|take| take.epoch == message.epoch);
        if of_take {
            self.record(number, message, &records);
            self.finish_ticks();
        } else if !records.is_empty() {
            let receipt = Receipt { incarnation: message.incarnation, epoch: message.epoch, warmup: WARMUP };
            let rows = self.map(number, receipt, &records);
            match &self.take {
                // It teaches the maps of the take, so the evidence must hold it.
                Some(take) => take.writer.send(Item::Rows { stream: number, rows }),
                None => {
                    if let Some(clock) = self.clock_of(number) {
                        clock.forget_old_maps();
                    }
                }
            }
        }
        if of_take
            && message.flags & wire::END != 0
            && let Some(stream) = self.streams.get_mut(number)
        {
            stream.ended = true;
        }
        Ok(())
    }

    /// Says what time it is: ticks become final by it, rates are taken over it, the page carries it.
    pub fn advance(&mut self, now_ns: i64) {
        self.now_ns = now_ns;
        self.watch.clock(now_ns);
        self.watch.finish_ticks(now_ns, &mut self.ticks);
        self.hand_over_ticks();
        self.publish();
    }

    /// Whether the clock map of each device is settled.
    pub fn settled(&self) -> BTreeMap<String, bool> {
        self.devices.iter().zip(&self.clocks).map(|(d, clock)| (d.name.clone(), clock.settled())).collect()
    }

    /// Starts a take: fresh clock maps, both files with everything known on the disk, the writer thread.
    ///
    /// # Errors
    /// [`RecordError::Invalid`] when a take runs already, the folder is not empty, or an argument is out of range;
    /// [`RecordError::Disk`], [`RecordError::DiskFull`].
    pub fn start_take(&mut self, options: &TakeOptions<'_>) -> RecordResult<()> {
        if self.take.is_some() {
            return Err(RecordError::Invalid("a take is running; stop it before the next".to_owned()));
        }
        if !(FLUSH_MIN_NS..=FLUSH_MAX_NS).contains(&options.flush_ns) {
            return Err(RecordError::Invalid(format!(
                "flush_ns is {}; it must be from 1 ms to 1 s, because nothing may be unsafe for longer",
                options.flush_ns
            )));
        }
        check_json("take", options.take)?;
        check_empty(options.folder)?;
        let writer = TakeWriter::start(&TakeSpec {
            folder: options.folder,
            take: options.take,
            devices_json: &self.devices_json,
            devices: &self.devices,
            attachments: &options.attachments,
            start_ns: self.now_ns,
            flush: Duration::from_nanos(options.flush_ns.unsigned_abs()),
            queue_bytes: options.queue_bytes,
            lossless: self.watch.lossless(),
        })?;
        self.watch.start_take(options.take)?;
        for stream in &mut self.streams {
            stream.ended = false;
            stream.highest = None;
        }
        for clock in &mut self.clocks {
            let mut by_stream: BTreeMap<usize, Vec<Row>> = BTreeMap::new();
            for (stream, row) in clock.start_take() {
                by_stream.entry(stream).or_default().push(row);
            }
            for (stream, rows) in by_stream {
                writer.send(Item::Rows { stream, rows });
            }
        }
        self.disk.clear();
        self.take = Some(Take { epoch: options.epoch, writer });
        self.publish();
        Ok(())
    }

    /// Takes trigger edges in: index and time of each.
    ///
    /// # Errors
    /// [`RecordError::Invalid`] when no take runs.
    pub fn edges(&mut self, edges: Vec<[i64; 2]>) -> RecordResult<()> {
        let take = running(self.take.as_ref())?;
        for [_, time_ns] in &edges {
            self.watch.edge(*time_ns);
        }
        take.writer.send(Item::Edges(edges));
        self.finish_ticks();
        Ok(())
    }

    /// Writes an event, a JSON object, to the evidence.
    ///
    /// # Errors
    /// [`RecordError::Invalid`] when no take runs, or it is no JSON object.
    pub fn event(&mut self, json: &str) -> RecordResult<()> {
        let take = running(self.take.as_ref())?;
        if !matches!(check_json("event", json)?, serde_json::Value::Object(_)) {
            return Err(RecordError::Invalid(format!("event is {json:.60}, which is not a JSON object")));
        }
        take.writer.send(Item::Event(json.to_owned()));
        Ok(())
    }

    /// Per stream: has its end marker of the take's epoch arrived?
    pub fn ended(&self) -> BTreeMap<String, bool> {
        self.streams.iter().map(|s| (s.name.clone(), s.ended)).collect()
    }

    /// Ends the take: drains the queue, writes `close` (JSON), closes and syncs both files.
    ///
    /// # Errors
    /// [`RecordError::Invalid`] when no take runs or `close` is no JSON: then nothing has changed. Errors of the disk
    /// are in the [`TakeEnd`], because the take is over either way.
    pub fn stop_take(&mut self, close: &str) -> RecordResult<TakeEnd> {
        check_json("close", close)?;
        self.end_take(|writer| writer.stop(close.to_owned()))
    }

    /// Ends the take as a crash would: what was received is on the disk, the files have no summary and need recovery.
    /// None when no take runs; errors of the disk are in the [`TakeEnd`].
    pub fn abort_take(&mut self) -> Option<TakeEnd> {
        self.end_take(TakeWriter::leave).ok()
    }

    fn end_take(
        &mut self,
        end: impl FnOnce(TakeWriter) -> (RecordResult<Files>, Vec<Counts>),
    ) -> RecordResult<TakeEnd> {
        running(self.take.as_ref())?;
        self.watch.stop_take(&mut self.ticks);
        self.hand_over_ticks();
        let Some(take) = self.take.take() else {
            return Err(RecordError::Invalid("no take is running; start one first".to_owned()));
        };
        let (files, counts) = end(take.writer);
        if let Err(error) = &files {
            self.disk = error.to_string();
        }
        let by_name = self.streams.iter().map(|s| s.name.clone()).zip(counts.iter().copied()).collect();
        self.last_counts = counts;
        self.publish();
        Ok(TakeEnd { files, counts: by_name, malformed: self.malformed })
    }

    fn clock_of(&mut self, stream: usize) -> Option<&mut DeviceClock> {
        let device = self.streams.get(stream)?.device;
        self.clocks.get_mut(device)
    }

    fn map(&mut self, stream: usize, receipt: Receipt, records: &[WireRecord]) -> Vec<Row> {
        let first = self.received;
        self.received = first.saturating_add(i64::try_from(records.len()).unwrap_or(i64::MAX));
        let Some(rule) = self.streams.get(stream).map(|s| s.rule) else { return Vec::new() };
        let Some(clock) = self.clock_of(stream) else { return Vec::new() };
        (first..).zip(records).map(|(received, record)| clock.map(rule, receipt, received, record)).collect()
    }

    /// A message of the running take.
    fn record(&mut self, number: usize, message: &WireMessage<'_>, records: &[WireRecord]) {
        let Some(take) = &self.take else { return };
        if records.is_empty() {
            return;
        }
        let samples = records.len() as u64;
        let room = take.writer.room(message.payload.len(), records.len());
        if let (Some(counters), Some(stream)) = (take.writer.counters(number), self.streams.get_mut(number)) {
            counters.received.fetch_add(samples, Relaxed);
            match room {
                Room::Batch => {}
                Room::Rows | Room::Nothing => drop(counters.lost_queue.fetch_add(samples, Relaxed)),
                Room::Failed => drop(counters.lost_disk.fetch_add(samples, Relaxed)),
            }
            for record in records {
                count_gap(counters, &mut stream.highest, message.incarnation, record.sequence);
            }
        }
        if room == Room::Nothing {
            // Not even its row finds room, so the maps must not learn from it either.
            return;
        }
        let warmup = if room == Room::Rows { LOST } else { OF_TAKE };
        let receipt = Receipt { incarnation: message.incarnation, epoch: message.epoch, warmup };
        let rows = self.map(number, receipt, records);
        if room != Room::Rows {
            for row in rows.iter().filter(|row| row.rig_ns != ABSENT) {
                self.watch.sample(number, row.rig_ns, row.trigger_index, row.incarnation);
            }
        }
        let Some(take) = &self.take else { return };
        match room {
            Room::Batch => take.writer.send(Item::Batch(Batch {
                stream: number,
                rows,
                lengths: records.iter().map(|r| (r.payload_len, r.metadata_len)).collect(),
                payload: Bytes::copy_from_slice(message.payload),
            })),
            Room::Rows => take.writer.send(Item::Rows { stream: number, rows }),
            Room::Nothing | Room::Failed => {}
        }
    }

    /// Ticks that the samples themselves made final.
    fn finish_ticks(&mut self) {
        self.watch.finish_ticks(ABSENT, &mut self.ticks);
        if !self.ticks.is_empty() {
            self.hand_over_ticks();
            self.publish();
        }
    }

    fn hand_over_ticks(&mut self) {
        let ticks = std::mem::take(&mut self.ticks);
        if let Some(take) = self.take.as_ref().filter(|_| !ticks.is_empty()) {
            take.writer.send(Item::Ticks(ticks));
        }
    }

    /// A page that cannot be written must not cost a sample: its readers see that `updated_ns` stands still.
    fn publish(&mut self) {
        if let Some(take) = &self.take {
            self.last_counts = take.writer.counts();
            self.disk = take.writer.failure();
        }
        let splits: Vec<u64> = match self.take {
            Some(_) => self.streams.iter().map(|s| self.clocks.get(s.device).map_or(0, DeviceClock::splits)).collect(),
            None => Vec::new(), // between takes a device may be replaced, and nothing rests on its steps
        };
        let page = self.watch.page(&self.last_counts, &splits, self.malformed, self.disk.clone());
        drop(self.page.publish(page));
    }
}

fn running(take: Option<&Take>) -> RecordResult<&Take> {
    take.ok_or_else(|| RecordError::Invalid("no take is running; start one first".to_owned()))
}

fn check_json(what: &str, json: &str) -> RecordResult<serde_json::Value> {
    serde_json::from_str(json).map_err(|e| RecordError::Invalid(format!("{what} is not JSON: {e}")))
}

fn check_empty(folder: &Path) -> RecordResult<()> {
    let mut entries = std::fs::read_dir(folder).map_err(|e| RecordError::io("opening", folder, e))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => {
            Err(RecordError::Invalid(format!("{} is not empty; a take needs a folder of its own", folder.display())))
        }
    }
}

/// Counts what the device counted and did not deliver; a late sample closes its own gap again.
fn count_gap(counters: &Counters, highest: &mut Option<(i64, i64)>, incarnation: i64, sequence: i64) {
    if sequence == ABSENT {
        return;
    }
    match *highest {
        Some((same, top)) if same == incarnation && sequence > top => {
            let gap = sequence.abs_diff(top) - 1;
            counters.sequence_gaps.fetch_add(gap, Relaxed);
            *highest = Some((incarnation, sequence));
        }
        Some((same, top)) if same == incarnation && top.saturating_sub(sequence) <= LATE_SEQUENCE => {
            let late = u64::from(sequence != top);
            let open = counters.sequence_gaps.load(Relaxed);
            counters.sequence_gaps.store(open.saturating_sub(late), Relaxed);
        }
        // The worker or the device began anew.
        _ => *highest = Some((incarnation, sequence)),
    }
}
