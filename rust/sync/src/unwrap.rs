//! Counters to device time: a counter of `2^bits` ticks, unwrapped in order of receipt (sync.md section 1).
//!
//! A reading says where the counter stands modulo `2^bits`. The step from the reading before is the signed modular
//! difference, the one of smallest magnitude, so a reading that comes late by less than half the counter's range steps
//! back and no wrap is made up. Where host arrivals are known, whole ranges that passed in silence are added: a reading
//! that seems to have been under way for longer than the quickest ones by 7/8 of the range or more was not, the counter
//! has gone round. Delays below that, spikes and batches, never look like a wrap.

use crate::error::SyncError;
use crate::order::ABSENT;

/// How a device counts: ticks of `tick_num / tick_den` ns that return to 0 at `2^bits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// Width of the counter, 1 to 64. The readings of a 64-bit counter are signed, like every time.
    pub bits: u32,
    /// Numerator of the length of a tick in ns, at least 1.
    pub tick_num: i64,
    /// Denominator of it, at least 1.
    pub tick_den: i64,
}

impl Default for Counter {
    fn default() -> Self {
        Self { bits: 64, tick_num: 1, tick_den: 1 }
    }
}

impl Counter {
    fn check(&self) -> Result<(), SyncError> {
        let refuse = |what: &str, value: i128, allowed| {
            Err(SyncError::OutOfRange { what: format!("a counter's {what}"), value, allowed })
        };
        if !(1..=64).contains(&self.bits) {
            return refuse("bits", self.bits.into(), "from 1 to 64");
        }
        if self.tick_num < 1 {
            return refuse("tick_num", self.tick_num.into(), "at least 1");
        }
        if self.tick_den < 1 {
            return refuse("tick_den", self.tick_den.into(), "at least 1");
        }
        Ok(())
    }

    /// The counter's range in ticks.
    fn range(&self) -> i128 {
        1 << self.bits
    }

    /// The representative of `ticks` modulo the range with the smallest magnitude.
    fn signed(&self, ticks: i128) -> i128 {
        let low = ticks & (self.range() - 1);
        if low >= self.range() / 2 { low - self.range() } else { low }
    }

    /// What an instant may lie after the device time of its reading: a tick, less the nanosecond at which the next begins.
    pub(crate) fn within_tick_ns(self) -> i64 {
        let (whole, part) = ((self.tick_num - 1) / self.tick_den, (self.tick_num - 1) % self.tick_den);
        whole + i64::from(part != 0)
    }

    /// Device time of an unwrapped count: `floor(count * num / den)`.
    fn to_ns(self, count: i128) -> Option<i128> {
        let ns = match i64::try_from(count) {
            Ok(count) => i128::from(count) * i128::from(self.tick_num),
            Err(_) => count.checked_mul(self.tick_num.into())?,
        };
        // A division of 128 bits takes longer than all the rest.
        Some(match (self.tick_den, i64::try_from(ns)) {
            (1, _) => ns,
            (den, Ok(ns)) => ns.div_euclid(den).into(),
            (den, Err(_)) => ns.div_euclid(den.into()),
        })
    }

    /// The longest that a reading can seem to have been under way, more than the quickest, before ranges passed in
    /// silence; None where a range is beyond 128 bits, which never passes.
    fn silent_ns(self) -> Option<i128> {
        // In ns times `tick_den`, in which a range is a whole number.
        let range = self.range().checked_mul(self.tick_num.into())?;
        Some((range - range / 8 - 1).div_euclid(self.tick_den.into()))
    }
}

/// The state of one device clock; every reading of every stream of the device goes through it, in order of receipt.
#[derive(Debug, Clone)]
pub struct Unwrapper {
    counter: Counter,
    /// As `Counter::silent_ns`.
    silent_ns: Option<i128>,
    /// The last reading, unwrapped.
    last: Option<i128>,
    /// Arrival minus device time of the quickest readings, and the arrival it stands for.
    floor: Option<(i128, i64)>,
    /// Ranges passed by the highest reading.
    highest_range: i128,
    first_range: i128,
}

impl Unwrapper {
    /// An unwrapper that has seen nothing.
    ///
    /// # Errors
    ///
    /// `OutOfRange`: `bits` outside 1 to 64, or a tick that is no positive length.
    pub fn new(counter: Counter) -> Result<Self, SyncError> {
        counter.check()?;
        Ok(Self { counter, silent_ns: counter.silent_ns(), last: None, floor: None, highest_range: 0, first_range: 0 })
    }

    /// Device time in ns of one reading; `None` where it lies beyond int64, never another time instead.
    ///
    /// Only the low `bits` bits of `ticks` count. `arrival_ns` is the host's monotonic clock on receipt.
    pub fn push(&mut self, ticks: i64, arrival_ns: Option<i64>) -> Option<i64> {
        let count = self.unwrap(ticks.into(), arrival_ns)?;
        let ns = self.counter.to_ns(count)?;
        let range = self.range_of(count);
        if self.last.is_none() {
            (self.first_range, self.highest_range) = (range, range);
        }
        self.highest_range = self.highest_range.max(range);
        self.last = Some(count);
        if let Some(arrival) = arrival_ns {
            self.settle(arrival, i128::from(arrival) - ns);
        }
        i64::try_from(ns).ok().filter(|&ns| ns != ABSENT)
    }

    /// How often the counter returned to 0, as far as readings tell: the ranges between the first and the highest.
    #[must_use]
    pub fn wraps(&self) -> u64 {
        u64::try_from(self.highest_range - self.first_range).unwrap_or(u64::MAX)
    }

    fn unwrap(&self, ticks: i128, arrival_ns: Option<i64>) -> Option<i128> {
        let range = self.counter.range();
        let Some(last) = self.last else {
            let signed = self.counter.bits == 64;
            return Some(if signed { self.counter.signed(ticks) } else { ticks & (range - 1) });
        };
        let nearest = last.checked_add(self.counter.signed(ticks.checked_sub(last)?))?;
        let (Some(arrival), Some((floor, _))) = (arrival_ns, self.floor) else { return Some(nearest) };
        let under_way = i128::from(arrival).checked_sub(self.counter.to_ns(nearest)?)?.checked_sub(floor)?;
        let Some(silent_ns) = self.silent_ns else { return Some(nearest) };
        if under_way.abs() <= silent_ns {
            return Some(nearest);
        }
        let range_units = range.checked_mul(self.counter.tick_num.into())?;
        let reach = under_way.abs().checked_mul(self.counter.tick_den.into())?.checked_add(range_units / 8)?;
        let ranges = reach.div_euclid(range_units) * under_way.signum();
        nearest.checked_add(ranges.checked_mul(range)?)
    }

    /// Keeps the least offset of arrivals; a slow device clock may lift it by 500 ppm, so that it does not grow stale.
    fn settle(&mut self, arrival: i64, offset: i128) {
        let passed = |since: i64| if arrival > since { arrival.abs_diff(since) } else { 0 };
        let lifted = |(floor, since): (i128, i64)| floor + i128::from(passed(since) / 2000);
        self.floor = Some((self.floor.map_or(offset, |floor| lifted(floor).min(offset)), arrival));
    }

    fn range_of(&self, count: i128) -> i128 {
        // A signed 64-bit counter wraps where its sign turns, the others where they pass 0.
        let origin = if self.counter.bits == 64 { self.counter.range() / 2 } else { 0 };
        count.saturating_add(origin) >> self.counter.bits
    }
}

/// Unwraps a whole counter in order of receipt: device ns, `ABSENT` where a reading is or where it lies beyond int64.
///
/// # Errors
///
/// As `Unwrapper::new`; `ColumnLength` where there is not one arrival a reading. `ABSENT` arrivals are absent.
pub fn unwrap(ticks: &[i64], arrival_ns: Option<&[i64]>, counter: Counter) -> Result<Vec<i64>, SyncError> {
    if let Some(arrivals) = arrival_ns.filter(|arrivals| arrivals.len() != ticks.len()) {
        let (entries, samples) = (arrivals.len(), ticks.len());
        return Err(SyncError::ColumnLength { name: "counter".into(), column: "arrivals", entries, samples });
    }
    let mut unwrapper = Unwrapper::new(counter)?;
    let arrival = |at: usize| arrival_ns.and_then(|arrivals| arrivals.get(at)).copied().filter(|&ns| ns != ABSENT);
    let device = |(at, &ticks): (usize, &i64)| match ticks {
        ABSENT => ABSENT,
        _ => unwrapper.push(ticks, arrival(at)).unwrap_or(ABSENT),
    };
    Ok(ticks.iter().enumerate().map(device).collect())
}
