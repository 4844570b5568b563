//! The lower envelope of (device, arrival) pairs over a sliding window, and the line that follows it.
//!
//! Transport delay is one-sided: it can only make an arrival late. So the line is a line below every pair, the one with
//! the least sum of distances to them (Moon, Skelly and Towsley, "Estimation and removal of clock skew from network
//! delay measurements", INFOCOM 1999): the edge of the lower convex hull that spans the middle of the window. The window
//! is cut into bins of which each keeps its lowest pair, so memory is bounded and a fit looks at `BINS` pairs at most.
//! It is made anew when a bin begins and when a pair lies below the line, else the line stands. All of it is integer
//! arithmetic: the same pairs give the same line on any processor.

use std::collections::VecDeque;

/// Pieces that the window is cut into.
const BINS: i64 = 128;
/// Rates are counted in 2^-40, about 10^-12, so that 10 s of rounding stay below 1 ns and a line needs no division.
pub(crate) const RATE_BITS: u32 = 40;
pub(crate) const RATE_UNIT: i128 = 1 << RATE_BITS;
/// Cheapest crystals stay within 100 ppm; 500 ppm is what NTP and PTP servos take for the limit of a sane clock.
pub(crate) const RATE_MAX: i128 = 500 * RATE_UNIT / 1_000_000;
/// Occupied bins and length of the pairs below which their spread says nothing.
const BINS_TO_JUDGE: usize = 12;
const SPAN_TO_JUDGE_NS: i128 = 2_000_000_000;
/// What is claimed until then. A device that was just opened is still being set up: every pair of its first second may
/// have waited for a slow control transfer, 15 ms in the field.
const SPREAD_UNJUDGED_NS: i64 = 20_000_000;
/// What a rate may be off by that was never measured: two crystals of 100 ppm each.
const RATE_UNKNOWN: i128 = 200 * RATE_UNIT / 1_000_000;
/// The newest bins that may all be late ones: a line does not turn to fewer.
const BINS_TO_TURN: usize = 6;
/// How fast a crystal's rate changes with its temperature at worst: 0.5 ppm a second, as one over seconds squared.
const BEND_PER_S2: i128 = 2_000_000;
/// Longest delay that is taken for a delay at all.
pub(crate) const DELAY_MAX_NS: i64 = 1_000_000_000;

/// The lowest pair of one bin, relative to the first pair: device time `x`, arrival minus device time `y`.
#[derive(Debug, Clone, Copy)]
struct Bin {
    number: i128,
    x: i128,
    y: i128,
    /// Of all its pairs.
    heights: Heights,
    /// It began with a pair that arrived after every pair before it, so it is evidence of its own.
    fresh: bool,
}

/// How high pairs lay over the line when they came: a count for each power of two from 2^16 ns on.
#[derive(Debug, Clone, Copy, Default)]
struct Heights([u32; 16]);

impl Heights {
    fn place(height_ns: i128) -> usize {
        let units = u64::try_from(height_ns >> 16).unwrap_or(if height_ns < 0 { 0 } else { u64::MAX });
        (u64::BITS - units.leading_zeros()).min(15) as usize
    }

    fn put(&mut self, height_ns: i128) {
        if let Some(count) = self.0.get_mut(Self::place(height_ns)) {
            *count = count.saturating_add(1);
        }
    }

    fn take(&mut self, others: &Self) {
        self.0.iter_mut().zip(others.0).for_each(|(count, other)| *count = count.saturating_sub(other));
    }

    fn rarity(&self, height_ns: i128) -> u32 {
        let sum = |counts: &[u32]| counts.iter().map(|&count| u64::from(count)).sum::<u64>();
        let higher = sum(self.0.get(Self::place(height_ns)..).unwrap_or(&[]));
        (sum(&self.0) / higher.max(1)).checked_ilog2().unwrap_or(0).min(31)
    }
}

/// `y = base + rate * x`.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    base: i128,
    rate: i128,
}

impl Line {
    fn at(self, x: i128) -> i128 {
        self.base + Self::rise(self.rate, x)
    }

    fn rise(rate: i128, x: i128) -> i128 {
        product(rate, x) >> RATE_BITS
    }
}

/// A rate in 10^-9, rounded down.
pub(crate) fn ppb(rate: i128) -> i64 {
    i64::try_from((rate * 1_000_000_000) >> RATE_BITS).unwrap_or(0)
}

/// The pairs of one segment of a device clock: between two steps of it, the clock runs on.
#[derive(Debug, Clone)]
pub(crate) struct Envelope {
    /// Device time and arrival of the first pair.
    origin: (i128, i128),
    window_ns: i128,
    bin_ns: i128,
    bins: VecDeque<Bin>,
    /// Lower convex hull of the bins' pairs, left to right.
    hull: Vec<(i128, i128)>,
    /// The same of all bins but the newest, to which nearly every pair belongs; empty when it has to be traced anew.
    hull_before: Vec<(i128, i128)>,
    line: Line,
    spread_ns: i64,
    newest: i128,
    /// Arrival of the newest pair that began a bin, relative to the first pair.
    arrived: Option<i128>,
    /// Bins that are fresh.
    evidence: u32,
    /// Of all pairs of the bins.
    heights: Heights,
}

impl Envelope {
    /// Begins with one pair, at the rate known of this clock so far (2^-40, 0 for a clock never seen).
    pub(crate) fn new(window_ns: i64, device_ns: i64, arrival_ns: i64, rate: i128) -> Self {
        let mut envelope = Self {
            origin: (device_ns.into(), arrival_ns.into()),
            window_ns: window_ns.into(),
            bin_ns: i128::from((window_ns / BINS).max(1)),
            bins: VecDeque::new(),
            hull: Vec::new(),
            hull_before: Vec::new(),
            line: Line { base: 0, rate },
            spread_ns: SPREAD_UNJUDGED_NS,
            newest: 0,
            arrived: None,
            evidence: 0,
            heights: Heights::default(),
        };
        envelope.learn(device_ns, arrival_ns);
        envelope
    }

    /// The earliest arrival that a reading at this device time could have.
    pub(crate) fn at(&self, device_ns: i64) -> i128 {
        let x = i128::from(device_ns) - self.origin.0;
        self.origin.1 + x + self.line.at(x)
    }

    /// How far the newest pair lies before a device time, in ns of the device; negative if behind it.
    pub(crate) fn ahead(&self, device_ns: i64) -> i128 {
        i128::from(device_ns) - self.origin.0 - self.newest
    }

    /// Device time from the first pair to the newest.
    pub(crate) fn span_ns(&self) -> i128 {
        self.newest
    }

    /// Rig time per device time less one, in 2^-40.
    pub(crate) fn rate(&self) -> i128 {
        self.line.rate
    }

    /// What the line may be off by: three times the height of the lowest pairs over it in the worst quarter of the
    /// window (the third lowest of each quarter, so that one lucky pair is no proof), what a clock bends away from a
    /// straight line over the window, what its rate may be off by over the time that the newest bins reach back (a
    /// silence before them, in which the line ran on alone), and at first, when every pair so far may have been a
    /// late one, a second that each bin halves (and not each pair: those of one batch are late together).
    pub(crate) fn uncertainty_ns(&self) -> i64 {
        self.spread_ns.saturating_add(DELAY_MAX_NS >> self.evidence.saturating_sub(1).min(62))
    }

    /// How rare pairs as high as this are in this window: one in `2^n` of them at most, `n` at most 31.
    pub(crate) fn rarity(&self, height_ns: i128) -> u32 {
        self.heights.rarity(height_ns)
    }

    /// Takes a pair in. Afterwards the line lies at or below it.
    pub(crate) fn learn(&mut self, device_ns: i64, arrival_ns: i64) {
        let x = i128::from(device_ns) - self.origin.0;
        let y = i128::from(arrival_ns) - self.origin.1 - x;
        let height = y - self.line.at(x);
        self.newest = self.newest.max(x);
        let begun = self.put(x, y, height);
        if begun || height < 0 {
            self.forget();
            self.fit();
            // The window may have left a late reading's bin behind, but its own pair still counts for itself.
            self.line.base = self.line.base.min(y - Line::rise(self.line.rate, x));
        }
    }

    /// Puts a pair into its bin; true if it is the first one there.
    fn put(&mut self, x: i128, y: i128, height: i128) -> bool {
        self.heights.put(height);
        let newest = self.bins.back().filter(|bin| (0..self.bin_ns).contains(&(x - bin.number * self.bin_ns)));
        let number = newest.map_or_else(|| x.div_euclid(self.bin_ns), |bin| bin.number);
        let is_newest = newest.is_some();
        let place = self.bins.iter().rposition(|bin| bin.number <= number);
        if let Some(bin) = place.and_then(|place| self.bins.get_mut(place)).filter(|bin| bin.number == number) {
            if height < bin.y - self.line.at(bin.x) {
                (bin.x, bin.y) = (x, y);
                if !is_newest {
                    self.hull_before.clear();
                }
            }
            bin.heights.put(height);
            return false;
        }
        let arrival = x + y;
        let fresh = self.arrived.is_none_or(|arrived| arrival > arrived);
        self.evidence += u32::from(fresh);
        self.arrived = self.arrived.max(Some(arrival));
        let mut heights = Heights::default();
        heights.put(height);
        self.precede(place);
        self.bins.insert(place.map_or(0, |place| place + 1), Bin { number, x, y, heights, fresh });
        true
    }

    /// Makes ready for a bin behind the one at `place`: what was the newest one will change no more.
    fn precede(&mut self, place: Option<usize>) {
        let last = place.filter(|place| place + 1 == self.bins.len()).and_then(|place| self.bins.get(place));
        match last {
            Some(last) if place == Some(0) || !self.hull_before.is_empty() => {
                turn_left(&mut self.hull_before, (last.x, last.y));
            }
            _ => self.hull_before.clear(),
        }
    }

    /// The first bin is gone, and with it the first corner: those between it and the next one come into sight.
    fn uncover(&mut self) {
        self.hull.clear();
        let corners = self.hull_before.get(1..).unwrap_or_default();
        if let Some((next, rest)) = corners.split_first() {
            let between = self.bins.iter().map(|bin| (bin.x, bin.y)).take_while(|(x, _)| *x < next.0);
            between.for_each(|pair| turn_left(&mut self.hull, pair));
            turn_left(&mut self.hull, *next);
            self.hull.extend_from_slice(rest);
        }
        std::mem::swap(&mut self.hull, &mut self.hull_before);
    }

    /// Drops the bins that the window has left behind.
    fn forget(&mut self) {
        let first = (self.newest - self.window_ns).div_euclid(self.bin_ns);
        while self.bins.front().is_some_and(|bin| bin.number < first) {
            let Some(bin) = self.bins.pop_front() else { break };
            self.evidence -= u32::from(bin.fresh);
            self.heights.take(&bin.heights);
            self.uncover();
        }
    }

    fn fit(&mut self) {
        let (Some(first), Some(last)) = (self.bins.front(), self.bins.back()) else { return };
        let (span, middle) = (last.x - first.x, (first.x + last.x).div_euclid(2));
        self.trace_hull();
        let turns = self.unproven().is_some_and(|unproven| unproven.x > middle);
        if turns && span >= (self.window_ns / 2).min(1_000_000_000) {
            let edge = self.hull.windows(2).find(|edge| edge[1].0 > middle);
            if let Some(&[(x0, y0), (x1, y1)]) = edge {
                self.line.rate = ((y1 - y0) * RATE_UNIT).div_euclid(x1 - x0).clamp(-RATE_MAX, RATE_MAX);
            }
        }
        let rate = self.line.rate;
        self.line.base = self.hull.iter().map(|&(x, y)| y - Line::rise(rate, x)).min().unwrap_or(self.line.base);
        self.spread_ns = self.spread(span);
    }

    fn trace_hull(&mut self) {
        let pair = |bin: &Bin| (bin.x, bin.y);
        let before = self.bins.len().saturating_sub(1);
        if self.hull_before.is_empty() {
            self.bins.range(..before).map(pair).for_each(|pair| turn_left(&mut self.hull_before, pair));
        }
        self.hull.clone_from(&self.hull_before);
        self.bins.range(before..).map(pair).for_each(|pair| turn_left(&mut self.hull, pair));
    }

    fn spread(&self, span: i128) -> i64 {
        let count = self.bins.len();
        if count < BINS_TO_JUDGE || span < SPAN_TO_JUDGE_NS.min(self.window_ns / 2) {
            return SPREAD_UNJUDGED_NS;
        }
        let quarter = |q: usize| {
            let mut lowest = [i128::MAX; 3];
            for bin in self.bins.range(q * count / 4..(q + 1) * count / 4) {
                let height = bin.y - self.line.at(bin.x);
                if height < lowest[2] {
                    lowest[2] = height;
                    lowest.sort_unstable();
                }
            }
            lowest[2]
        };
        let worst = (0..4).map(quarter).max().unwrap_or(i128::MAX);
        // A parabola lies within a * span^2 / 8 of its chord, for a second derivative a.
        let bend = span * span / 1_000_000_000 / (8 * BEND_PER_S2);
        let spread = worst.saturating_mul(3).saturating_add(bend);
        i64::try_from(spread.saturating_add(self.alone(spread))).unwrap_or(i64::MAX / 4)
    }

    /// The first of the newest bins: as many as may all be late ones.
    fn unproven(&self) -> Option<&Bin> {
        let newest = BINS_TO_TURN.min(self.bins.len() / 3).max(1);
        self.bins.get(self.bins.len().checked_sub(newest)?)
    }

    /// What the line may have gone astray by since the bins that hold it.
    fn alone(&self, spread: i128) -> i128 {
        let (Some(first), Some(last)) = (self.bins.front(), self.bins.back()) else { return 0 };
        let Some(unproven) = self.unproven() else { return 0 };
        let (held, alone) = (unproven.x - first.x, last.x - unproven.x);
        // A line between two points that are off by `spread` each.
        let tilt = if held > 0 { (2 * spread * RATE_UNIT / held).min(RATE_UNKNOWN) } else { RATE_UNKNOWN };
        Line::rise(tilt, alone) + alone * alone / 1_000_000_000 / (2 * BEND_PER_S2)
    }
}

/// Adds the pair right of all others to a lower convex hull (Andrew's monotone chain).
fn turn_left(hull: &mut Vec<(i128, i128)>, (x, y): (i128, i128)) {
    while let [.., (x0, y0), (x1, y1)] = hull[..] {
        if product(x1 - x0, y - y0) > product(x - x0, y1 - y0) {
            break;
        }
        hull.pop();
    }
    hull.push((x, y));
}

/// `a * b`, sooner for the numbers that occur.
fn product(a: i128, b: i128) -> i128 {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => i128::from(a) * i128::from(b),
        _ => a * b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hull_that_is_carried_on_is_the_one_that_is_traced_anew() {
        let mut state = 1u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % limit) as i64
        };
        let mut envelope = Envelope::new(10_000_000_000, 0, 1_000_000, 0);
        let (mut now, mut corners, mut left_behind) = (0, 0, 0);
        for _ in 0..20_000 {
            now += below(40_000_000);
            // One in twenty comes long after others; one in four is as quick as can be.
            let device = if below(20) == 0 { (now - below(3_000_000_000)).max(0) } else { now };
            let late = if below(4) == 0 { below(3) } else { below(900_000) };
            envelope.learn(device, device + device / 20_000 + 1_000_000 + late);
            envelope.trace_hull();
            let mut anew = Vec::new();
            envelope.bins.iter().for_each(|bin| turn_left(&mut anew, (bin.x, bin.y)));
            assert_eq!(envelope.hull, anew);
            corners = corners.max(anew.len());
            left_behind = envelope.bins.front().map_or(0, |bin| bin.number);
        }
        assert!(corners > 8 && left_behind > 1000, "{corners} {left_behind}");
    }
}
