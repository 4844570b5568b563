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
/// Rates are counted in 10^-12, so that 10 s of rounding stay below 1 ns.
const RATE_UNIT: i128 = 1_000_000_000_000;
/// Cheapest crystals stay within 100 ppm; 500 ppm is what NTP and PTP servos take for the limit of a sane clock.
const RATE_MAX: i128 = 500_000_000;
/// Occupied bins below which the spread of the pairs says nothing.
const BINS_TO_JUDGE: usize = 12;
/// What is claimed until then: within a second of pairs a line of unknown rate cannot be off by more.
const SPREAD_UNJUDGED_NS: i64 = 2_000_000;
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
    /// The highest pair of the bin, as its height over the line when it came.
    top: i128,
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
        (rate * x).div_euclid(RATE_UNIT)
    }
}

/// The pairs of one segment of a device clock: between two steps of it, the clock runs on.
#[derive(Debug, Clone)]
pub(crate) struct Envelope {
    /// Device time and arrival of the first pair.
    origin: (i128, i128),
    window_ns: i128,
    bin_ns: i128,
    bins: VecDeque<Bin>,
    hull: Vec<(i128, i128)>,
    line: Line,
    spread_ns: i64,
    newest: i128,
}

impl Envelope {
    /// Begins with one pair, at the rate known of this clock so far (10^-12, 0 for a clock never seen).
    pub(crate) fn new(window_ns: i64, device_ns: i64, arrival_ns: i64, rate: i128) -> Self {
        let mut envelope = Self {
            origin: (device_ns.into(), arrival_ns.into()),
            window_ns: window_ns.into(),
            bin_ns: i128::from((window_ns / BINS).max(1)),
            bins: VecDeque::new(),
            hull: Vec::new(),
            line: Line { base: 0, rate },
            spread_ns: SPREAD_UNJUDGED_NS,
            newest: 0,
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

    /// Rig time per device time less one, in 10^-12.
    pub(crate) fn rate(&self) -> i128 {
        self.line.rate
    }

    /// What the line may be off by: three times the height of the lowest pairs over it in the worst quarter of the
    /// window (the third lowest of each quarter, so that one lucky pair is no proof), what a clock bends away from a
    /// straight line over the window, and at first, when every pair so far may have been a late one, a second that each
    /// bin halves (and not each pair: those of one batch are late together).
    pub(crate) fn uncertainty_ns(&self) -> i64 {
        self.spread_ns.saturating_add(DELAY_MAX_NS >> self.bins.len().min(62))
    }

    /// Were pairs as high as this an everyday matter in this window? Two streams of one device may differ in delay.
    pub(crate) fn is_usual(&self, height_ns: i128) -> bool {
        self.bins.iter().filter(|bin| bin.top >= height_ns).count() >= 8
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
        let number = x.div_euclid(self.bin_ns);
        let place = self.bins.iter().rposition(|bin| bin.number <= number);
        if let Some(bin) = place.and_then(|place| self.bins.get_mut(place)).filter(|bin| bin.number == number) {
            if height < bin.y - self.line.at(bin.x) {
                (bin.x, bin.y) = (x, y);
            }
            bin.top = bin.top.max(height);
            return false;
        }
        self.bins.insert(place.map_or(0, |place| place + 1), Bin { number, x, y, top: height });
        true
    }

    /// Drops the bins that the window has left behind.
    fn forget(&mut self) {
        let first = (self.newest - self.window_ns).div_euclid(self.bin_ns);
        while self.bins.front().is_some_and(|bin| bin.number < first) {
            self.bins.pop_front();
        }
    }

    fn fit(&mut self) {
        let (Some(first), Some(last)) = (self.bins.front(), self.bins.back()) else { return };
        let (span, middle) = (last.x - first.x, (first.x + last.x).div_euclid(2));
        self.trace_hull();
        if span >= (self.window_ns / 2).min(1_000_000_000) {
            let edge = self.hull.windows(2).find(|edge| edge[1].0 > middle);
            if let Some(&[(x0, y0), (x1, y1)]) = edge {
                self.line.rate = ((y1 - y0) * RATE_UNIT).div_euclid(x1 - x0).clamp(-RATE_MAX, RATE_MAX);
            }
        }
        let rate = self.line.rate;
        self.line.base = self.hull.iter().map(|&(x, y)| y - Line::rise(rate, x)).min().unwrap_or(self.line.base);
        self.spread_ns = self.spread(span);
    }

    /// The lower convex hull of the bins' pairs, left to right (Andrew's monotone chain).
    fn trace_hull(&mut self) {
        self.hull.clear();
        for bin in &self.bins {
            while let [.., (x0, y0), (x1, y1)] = self.hull[..] {
                if (x1 - x0) * (bin.y - y0) > (bin.x - x0) * (y1 - y0) {
                    break;
                }
                self.hull.pop();
            }
            self.hull.push((bin.x, bin.y));
        }
    }

    fn spread(&self, span: i128) -> i64 {
        let count = self.bins.len();
        if count < BINS_TO_JUDGE {
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
        i64::try_from(worst.saturating_mul(3).saturating_add(bend)).unwrap_or(i64::MAX / 4)
    }
}
