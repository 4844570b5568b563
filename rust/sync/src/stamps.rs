//! A stream's stamps against themselves: unwrapped device stamps, before mapping, in arrival order (sync.md section 5).
//!
//! Findings only; what is too much of them is for the rules. Where the document leaves a choice:
//!
//! - P is the nominal period given, else the median step. T of `stamp.jump` is the ticks' period, else P.
//! - A step is compared with both `dseq * P` and the step of arrivals where both are known. Where one of them or both
//!   are not, a forward step beyond `silence_max` is a jump unless the one that is known explains it; whether another
//!   stream shares the silence is for the caller.
//! - A step that is put down to a wrap or to TAI and UTC is not a jump as well.
//! - Samples without a stamp are passed over; positions are those of the columns as they were given.

use std::borrow::Cow;

use crate::error::SyncError;
use crate::order::{ABSENT, order};
use crate::ticks::median_step;

/// Steps that are listed; all are counted.
const LISTED: usize = 16;
/// A step by so much off a whole number of seconds is one of TAI and UTC.
const TAI_UTC_WITHIN_NS: i128 = 50_000_000;
const SECOND_NS: i128 = 1_000_000_000;
/// Without a sequence, a counter is told from a late sample only if it lasts for so many periods.
const WRAP_PERIODS: i128 = 64;

/// Counters that devices are known to stamp with: their range in ns, and what they are.
const COUNTERS: [(i128, &str); 9] = [
    // Microseconds in 32 bits: librealsense issue 7922, and any `micros()`.
    ((1 << 32) * 1_000, "2^32 us"),
    // Nanoseconds in 32 bits: the nanosecond half of a timespec taken for the whole, cycle counters at 1 GHz.
    (1 << 32, "2^32 ns"),
    // Milliseconds in 32 and 16 bits: `millis()`, RTOS ticks.
    ((1 << 32) * 1_000_000, "2^32 ms"),
    ((1 << 16) * 1_000_000, "2^16 ms"),
    // InvenSense ICM-426xx FIFO timestamp: 16 bits of 1 us, or of 16 us with TMST_RES set.
    ((1 << 16) * 1_000, "2^16 us"),
    ((1 << 16) * 16_000, "2^16 * 16 us"),
    // Bosch BMI160 and BMI270 sensortime: 24 bits of 39.0625 us.
    ((1 << 24) * 390_625 / 10, "2^24 * 39.0625 us"),
    // DualSense sensor timestamp: 32 bits of a third of a us (Linux, drivers/hid/hid-playstation.c).
    ((1 << 32) * 1_000 / 3, "2^32 * 1/3 us"),
    // RTP video clock, RFC 3551: 32 bits of 90 kHz.
    ((1 << 32) * 100_000 / 9, "2^32 / 90 kHz"),
];

/// Frame counters in place of times: their range in periods. GigE Vision 1.x block ids have 16 bits and skip 0.
const IDS: [(i128, &str); 3] =
    [(1 << 16, "2^16 frame periods"), ((1 << 16) - 1, "2^16 - 1 frame periods"), (1 << 32, "2^32 frame periods")];

/// What a step that is not as it should be is put down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// Time jumped: neither samples that were counted nor time that went by on the host explain it.
    Jump,
    /// A counter went round and was not unwrapped.
    Wrap,
    /// The offset between TAI and UTC, or a part of it, came or went.
    TaiUtc,
}

impl StepKind {
    /// The word for it in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Jump => "jump",
            Self::Wrap => "wrap",
            Self::TaiUtc => "tai_utc",
        }
    }
}

/// A step between two neighbouring samples that is not as it should be. Times in ns, wide because stamps may lie at
/// either end of int64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StampStep {
    /// Position of the later sample.
    pub index: usize,
    /// The later stamp less the earlier.
    pub step_ns: i128,
    /// `dseq * P`, else the step of arrivals; None where neither is known.
    pub expected_ns: Option<i128>,
    /// What it is put down to.
    pub kind: StepKind,
    /// What else is known of it.
    pub detail: String,
}

/// Findings on one stream. Times in ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StampScan {
    /// Samples with a stamp.
    pub samples: usize,
    /// Distinct stamps.
    pub distinct: usize,
    /// Samples below the running maximum.
    pub backwards: usize,
    /// Position of the first of them.
    pub first_backwards: Option<usize>,
    /// How far below it the lowest one lies.
    pub largest_backwards_ns: u64,
    /// The most samples with higher stamps that any sample arrived after.
    pub late_by: usize,
    /// Further samples of an equal stamp.
    pub duplicate: usize,
    /// The median step between distinct stamps in order.
    pub median_step_ns: Option<i64>,
    /// The longest step between distinct stamps in order.
    pub longest_silence_ns: u64,
    /// Position of the sample that ended it, the earliest on ties.
    pub longest_silence_index: Option<usize>,
    /// The greatest common divisor of the steps between distinct stamps; 0 when there are none.
    pub steps_gcd_ns: u64,
    /// The earliest 16 steps of all three kinds.
    pub steps: Vec<StampStep>,
    /// Steps that are jumps.
    pub jump_count: usize,
    /// Steps that are wraps.
    pub wrap_count: usize,
    /// Steps of TAI and UTC.
    pub tai_utc_count: usize,
    /// Samples that the device counted and that are not here.
    pub sequence_gaps: u64,
}

/// What is known of a stream besides its stamps.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a> {
    /// As the device counts, `ABSENT` where it does not; one a sample.
    pub sequence: Option<&'a [i64]>,
    /// Arrival at the host, ns, `ABSENT` where unknown; one a sample.
    pub arrival: Option<&'a [i64]>,
    /// The nominal period of the stream (P), ns.
    pub period: Option<i64>,
    /// The nominal period of the ticks (T), ns; a jump is more than half of it. P where there are no ticks.
    pub tick: Option<i64>,
    /// The longest silence that is not remarkable, ns.
    pub silence_max: i64,
}

impl Default for Beside<'_> {
    fn default() -> Self {
        Self { sequence: None, arrival: None, period: None, tick: None, silence_max: 500_000_000 }
    }
}

/// Scans the stamps of one stream, in arrival order; `ABSENT` ones are passed over.
///
/// # Errors
///
/// `ColumnLength` for a column that has not one entry a sample; `OutOfRange` for a period below 1 or a negative silence.
pub fn scan_stamps(times: &[i64], beside: &Beside) -> Result<StampScan, SyncError> {
    check(times, beside)?;
    let positions: Option<Vec<usize>> =
        times.contains(&ABSENT).then(|| (0..times.len()).filter(|&at| times[at] != ABSENT).collect());
    let stamps: Cow<[i64]> = match &positions {
        None => Cow::Borrowed(times),
        Some(positions) => positions.iter().map(|&at| times[at]).collect(),
    };
    let position = |at: usize| positions.as_ref().map_or(at, |positions| positions[at]);
    let ordered = order(&stamps, None);
    let median = (ordered.times.len() > 1).then(|| median_step(&ordered.times));
    let mut scan = StampScan {
        samples: stamps.len(),
        distinct: ordered.times.len(),
        backwards: ordered.backwards,
        duplicate: ordered.duplicate,
        median_step_ns: median,
        ..StampScan::default()
    };
    scan_in_order(&ordered.times, &stamps, &mut scan);
    if scan.backwards > 0 {
        scan_backwards(&ordered.times, &stamps, &mut scan);
    }
    scan_steps(&stamps, &position, beside, beside.period.or(median).unwrap_or(0), &mut scan);
    scan.longest_silence_index = scan.longest_silence_index.map(position);
    scan.first_backwards = scan.first_backwards.map(position);
    Ok(scan)
}

/// Silences and the common divisor of steps, which know no order of arrival.
fn scan_in_order(distinct: &[i64], stamps: &[i64], scan: &mut StampScan) {
    let mut ended_by = None;
    for pair in distinct.windows(2) {
        let step = pair[1].abs_diff(pair[0]);
        if step > scan.longest_silence_ns {
            scan.longest_silence_ns = step;
            ended_by = Some(pair[1]);
        }
        if scan.steps_gcd_ns != 1 {
            scan.steps_gcd_ns = gcd(scan.steps_gcd_ns, step);
        }
    }
    scan.longest_silence_index = ended_by.and_then(|stamp| stamps.iter().position(|&other| other == stamp));
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// How far below the running maximum, and how many samples late. The latter by a tree of counts (Fenwick): of each
/// sample below the maximum, how many earlier ones have a higher stamp.
fn scan_backwards(distinct: &[i64], stamps: &[i64], scan: &mut StampScan) {
    let mut counts = vec![0_usize; distinct.len() + 1];
    let mut highest = i64::MIN;
    for (at, &stamp) in stamps.iter().enumerate() {
        let rank = distinct.partition_point(|&other| other <= stamp);
        if stamp < highest {
            scan.first_backwards.get_or_insert(at);
            scan.largest_backwards_ns = scan.largest_backwards_ns.max(highest.abs_diff(stamp));
            let (mut node, mut not_above) = (rank, 0);
            while node > 0 {
                not_above += counts[node];
                node &= node - 1;
            }
            scan.late_by = scan.late_by.max(at - not_above);
        }
        highest = highest.max(stamp);
        let mut node = rank;
        while node < counts.len() {
            counts[node] += 1;
            node += node & node.wrapping_neg();
        }
    }
}

/// One step in arrival order, and what is known of it.
#[derive(Clone, Copy)]
struct Step {
    ns: i128,
    /// How far the sequence advanced, wraps of it undone.
    sequence: Option<i128>,
    arrival: Option<i128>,
    period: i128,
    tick: i128,
}

fn scan_steps(stamps: &[i64], position: &impl Fn(usize) -> usize, beside: &Beside, period: i64, scan: &mut StampScan) {
    let period = i128::from(period);
    let tick = beside.tick.map_or(period, i128::from);
    let known = |column: Option<&[i64]>, at: usize| {
        column.and_then(|column| column.get(at)).copied().filter(|&value| value != ABSENT).map(i128::from)
    };
    let mut count = SequenceCount::default();
    for at in 1..stamps.len() {
        let (before, after) = (position(at - 1), position(at));
        let ns = i128::from(stamps[at]) - i128::from(stamps[at - 1]);
        let sequences = known(beside.sequence, before).zip(known(beside.sequence, after));
        let sequence = sequences.map(|(before, after)| sequence_step(before, after, ns, period));
        if let Some(sequence) = sequence {
            count.advance(sequence, ns);
        }
        if sequence == Some(1) && 2 * (ns - period).abs() <= period.min(tick) {
            continue; // nearly all of them
        }
        let arrivals = known(beside.arrival, before).zip(known(beside.arrival, after));
        let step = Step { ns, sequence, arrival: arrivals.map(|(before, after)| after - before), period, tick };
        if let Some((kind, detail)) = step.judge(beside.silence_max.into()) {
            let counter = match kind {
                StepKind::Jump => &mut scan.jump_count,
                StepKind::Wrap => &mut scan.wrap_count,
                StepKind::TaiUtc => &mut scan.tai_utc_count,
            };
            *counter += 1;
            if scan.steps.len() < LISTED {
                let expected_ns = step.counted_ns().or(step.arrival);
                scan.steps.push(StampStep { index: after, step_ns: ns, expected_ns, kind, detail });
            }
        }
    }
    scan.sequence_gaps = u64::try_from(count.gaps).unwrap_or(u64::MAX);
}

impl Step {
    fn judge(self, silence_max: i128) -> Option<(StepKind, String)> {
        if let Some(seconds) = self.tai_utc() {
            return Some((StepKind::TaiUtc, format!("{seconds} s")));
        }
        if let Some(counter) = self.wrap() {
            return Some((StepKind::Wrap, counter.to_owned()));
        }
        self.is_jump(silence_max).then(|| {
            let sequence = self.sequence.map_or("unknown".to_owned(), |n| format!("{n:+}"));
            let arrival = self.arrival.map_or("unknown".to_owned(), |ns| format!("{ns:+} ns"));
            (StepKind::Jump, format!("sequence {sequence}, arrival {arrival}"))
        })
    }

    /// What the samples that were counted take; longer than any time where the sequence leaps.
    fn counted_ns(self) -> Option<i128> {
        self.sequence.map(|n| (n * self.period).clamp(-(1 << 100), 1 << 100))
    }

    /// Whether `ns` would be as long as `other` if half of `period` were nothing.
    fn is_about(ns: i128, other: Option<i128>, period: i128) -> Option<bool> {
        other.map(|other| 2 * (ns - other).abs() <= period)
    }

    fn is_jump(self, silence_max: i128) -> bool {
        let counted = Self::is_about(self.ns, self.counted_ns(), self.tick);
        let passed = Self::is_about(self.ns, self.arrival, self.tick);
        match (counted, passed) {
            (Some(counted), Some(passed)) => !counted && !passed,
            (known, other) => self.ns > silence_max && !known.or(other).unwrap_or(false),
        }
    }

    /// The counter that went round: adding its range makes of a step back one that is as it should be, within half a
    /// period and 1 %.
    fn wrap(self) -> Option<&'static str> {
        if self.ns >= 0 {
            return None;
        }
        let period = self.period + self.period / 50;
        let about = |ns: i128| {
            let known = [Self::is_about(ns, self.counted_ns(), period), Self::is_about(ns, self.arrival, period)];
            known.into_iter().flatten().reduce(|a, b| a || b)
        };
        if about(self.ns) == Some(true) {
            return None; // a late sample, and known to be one
        }
        let least = if self.sequence.is_some() { 2 } else { WRAP_PERIODS };
        let ids = IDS.map(|(ids, name)| (ids * self.period, name));
        let went_round = |range: i128| {
            let unwrapped = self.ns + range;
            let expected = about(unwrapped).or(Self::is_about(unwrapped, Some(self.period), period));
            range > least * self.period && expected == Some(true)
        };
        COUNTERS.into_iter().chain(ids).find(|&(range, _)| went_round(range)).map(|(_, name)| name)
    }

    /// The whole seconds of a TAI and UTC step. Not if as much time, give or take 5 s, went by on the host.
    fn tai_utc(self) -> Option<i128> {
        if self.sequence != Some(1) {
            return None;
        }
        let excess = self.ns - self.period;
        let seconds = (2 * excess + SECOND_NS).div_euclid(2 * SECOND_NS);
        let is_silence = self.arrival.is_some_and(|arrival| (self.ns - arrival).abs() < 5 * SECOND_NS);
        let is_whole = (excess - seconds * SECOND_NS).abs() <= TAI_UTC_WITHIN_NS;
        ((10..=60).contains(&seconds.abs()) && is_whole && !is_silence).then_some(seconds)
    }
}

/// How far a sequence number advanced. Numbers of 16 and of 32 bits go round, and some of 16 bits skip 0.
fn sequence_step(before: i128, after: i128, step_ns: i128, period: i128) -> i128 {
    for range in [1 << 16, 1 << 32] {
        let top = |n: i128| (range / 4 * 3..range).contains(&n);
        let bottom = |n: i128| (0..range / 4).contains(&n);
        if top(before) && bottom(after) && after < before {
            let advance = after + range - before;
            let off = |n: i128| (step_ns - n * period).abs();
            let skips_zero = after > 0 && off(advance - 1) < off(advance);
            return if skips_zero { advance - 1 } else { advance };
        }
        if bottom(before) && top(after) && step_ns < 0 {
            return after - range - before;
        }
    }
    after - before
}

/// Counts what a sequence skips. A late sample takes its place back; a restart begins a new count.
#[derive(Default)]
struct SequenceCount {
    now: i128,
    highest: i128,
    gaps: i128,
}

impl SequenceCount {
    fn advance(&mut self, sequence: i128, step_ns: i128) {
        self.now += sequence;
        if sequence <= 0 && step_ns > 0 {
            self.highest = self.now;
        } else if self.now > self.highest {
            self.gaps += self.now - self.highest - 1;
            self.highest = self.now;
        } else if sequence != 0 {
            self.gaps = (self.gaps - 1).max(0);
        }
    }
}

fn check(times: &[i64], beside: &Beside) -> Result<(), SyncError> {
    for (column, entries) in [("sequence", beside.sequence), ("arrival", beside.arrival)] {
        if let Some(entries) = entries.filter(|entries| entries.len() != times.len()) {
            let (entries, samples) = (entries.len(), times.len());
            return Err(SyncError::ColumnLength { name: "stamps".into(), column, entries, samples });
        }
    }
    if let Some(period) = beside.period.filter(|&period| period < 1) {
        let (what, value) = ("period_ns of stamps".into(), period.into());
        return Err(SyncError::OutOfRange { what, value, allowed: "1 or more" });
    }
    if beside.silence_max < 0 {
        let (what, value) = ("silence_max_ns of stamps".into(), beside.silence_max.into());
        return Err(SyncError::OutOfRange { what, value, allowed: "0 or more" });
    }
    Ok(())
}
