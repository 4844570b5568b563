//! The clock map of a triggered device, fitted to the recorded trigger edges (sync.md section 1).
//!
//! A device that exposes on pulses tells its clock's offset without any transport: the stamp of an exposure and the edge
//! that caused it, plus the planned delay between them, are one instant. Such pairs scatter both ways and by less than a
//! microsecond, so the line through them is that of least squares over a short window, not an envelope.
//!
//! The map of arrivals runs along. It says which edge caused an exposure where the device does not count pulses, it maps
//! what comes before the first pair, and it tells the two things apart that look alike here: a step of the device clock,
//! which splits this map too, and a device that is off by whole pulses, whose pairs are refused. All of it is causal: an
//! edge counts for a reading only if it could have caused it before the reading arrived. All of it is integer arithmetic.

use std::collections::VecDeque;

use crate::clock::{ClockConfig, ClockMap, Mapped, UNBOUNDED_NS};
use crate::envelope::{RATE_BITS, RATE_MAX, RATE_UNIT, ppb};
use crate::error::SyncError;
use crate::order::ABSENT;

/// Long enough that the jitter of edges averages out, short enough that a crystal does not bend by a microsecond.
const WINDOW_NS: i128 = 2_000_000_000;
/// Most pairs of a window: 2 s at 2 kHz. With them no sum below leaves i128.
const PAIRS_MAX: usize = 4096;
/// The line is made anew when a 32nd of the window has passed.
const REFIT_NS: i128 = WINDOW_NS / 32;
/// Coordinates are counted from a pair at most so far back.
const REBASE_NS: i128 = 4 * WINDOW_NS;
/// Pairs that make a line, and over how long; before, they have a median only.
const LINE_PAIRS: usize = 8;
const LINE_SPAN_NS: i128 = 100_000_000;
/// Pairs of the first ones that lie further from their median are no pairs.
const FIRST_WITHIN_NS: i128 = 200_000;
/// Of those first ones so many must lie within, and most.
const FIRST_AGREE: usize = 5;
/// A pair within this of the line is one, or within four times what the window's worst is off by.
const WITHIN_NS: i128 = 20_000;
/// Pairs beyond that agree on a step if they lie within the same of each other; so many in a row are one.
const STEP_PAIRS: u32 = 8;
/// What is claimed with one pair, halved by each: any pair may be the wrong one.
const FIRST_UNCERTAIN_NS: i128 = 1_000_000;
/// A time by arrival that may be off by more does not say which edge it was.
const PAIRED_WITHIN_NS: i128 = 5_000_000;
/// So many exposures in a row without an edge make the map doubtful.
const LONE_READINGS: u32 = 3;
/// Longest time from an edge to the arrival of what it caused.
const CAUSE_MAX_NS: i128 = 1_000_000_000;

/// How a device clock is fitted to edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeConfig {
    /// Of the map of arrivals that runs along.
    pub clock: ClockConfig,
    /// The minimum delay was calibrated, so that this map can say which edge caused an exposure.
    pub calibrated: bool,
    /// What the times of edges and the planned delays may be off by; part of every uncertainty.
    pub bound_ns: i64,
}

/// What a reading says of the pulse that caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exposure {
    /// Count of pulses at the device's input, where it has one.
    pub trigger_index: Option<i64>,
    /// Planned time from the edge to the stamped instant.
    pub after_edge_ns: i64,
}

/// A pair, relative to the origin: device time `x`, edge time minus device time `y`.
#[derive(Debug, Clone, Copy)]
struct Pair {
    x: i128,
    y: i128,
    kept: bool,
}

/// Sums over the pairs that are kept; of integers, so taking a pair out leaves no trace of it.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    n: i128,
    x: i128,
    y: i128,
    xx: i128,
    xy: i128,
}

impl Sums {
    fn add(&mut self, pair: &Pair, sign: i128) {
        self.n += sign;
        self.x += sign * pair.x;
        self.y += sign * pair.y;
        self.xx += sign * pair.x * pair.x;
        self.xy += sign * pair.x * pair.y;
    }
}

/// Consecutive pairs beyond the line.
#[derive(Debug, Clone, Copy)]
struct Beyond {
    height: i128,
    agreeing: u32,
}

/// The pairs of one segment and the line through them.
#[derive(Debug, Clone)]
struct Fit {
    origin: (i128, i128),
    pairs: VecDeque<Pair>,
    sums: Sums,
    /// `y = base + rate * (x - middle)`.
    base: i128,
    middle: i128,
    rate: i128,
    /// Largest distance of a kept pair from the line; of any pair where most are not kept.
    worst: i128,
    newest: i128,
    /// The newest pair that is kept.
    held: i128,
    fitted_at: i128,
    /// There were enough pairs for a line.
    lined: bool,
    beyond: Option<Beyond>,
}

/// What became of a pair.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    /// It came so late that its time is out of the window.
    Old,
    Kept,
    /// Too far from the line.
    Beyond,
    /// As far beyond as those before it, and enough of them.
    Step,
}

impl Fit {
    fn new(device_ns: i64, target_ns: i128, rate: i128) -> Self {
        let mut fit = Self {
            origin: (device_ns.into(), target_ns),
            pairs: VecDeque::new(),
            sums: Sums::default(),
            base: 0,
            middle: 0,
            rate,
            worst: 0,
            newest: 0,
            held: 0,
            fitted_at: 0,
            lined: false,
            beyond: None,
        };
        fit.learn(device_ns, target_ns);
        fit
    }

    fn line(&self, x: i128) -> i128 {
        self.base + ((self.rate * (x - self.middle)) >> RATE_BITS)
    }

    fn at(&self, device_ns: i64) -> i128 {
        let x = i128::from(device_ns) - self.origin.0;
        self.origin.1 + x + self.line(x)
    }

    /// How far a device time lies ahead of a place.
    fn ahead(&self, device_ns: i64, of: i128) -> i128 {
        (i128::from(device_ns) - self.origin.0 - of).max(0)
    }

    /// How far a pair may lie from the line and be one.
    fn within(&self, device_ns: i64) -> i128 {
        // 20 ppm of the time since a pair was: the rate is known, and bends.
        WITHIN_NS.max(4 * self.worst) + self.ahead(device_ns, self.held) / 50_000
    }

    fn learn(&mut self, device_ns: i64, target_ns: i128) -> Outcome {
        let x = i128::from(device_ns) - self.origin.0;
        if x < self.newest - WINDOW_NS {
            return Outcome::Old;
        }
        let y = target_ns - self.origin.1 - x;
        let height = y - self.line(x);
        let kept = !self.lined || height.abs() <= self.within(device_ns);
        self.newest = self.newest.max(x);
        if !self.lined {
            self.put(Pair { x, y, kept });
            self.held = self.newest;
            self.begin();
            return Outcome::Kept;
        }
        let x = self.put(Pair { x, y, kept });
        if kept {
            self.held = self.held.max(x);
            self.beyond = None;
            if self.newest - self.fitted_at >= REFIT_NS {
                self.fit();
            }
            return Outcome::Kept;
        }
        let within = WITHIN_NS.max(4 * self.worst);
        let before = self.beyond.filter(|b| (b.height - height).abs() <= within).map_or(0, |b| b.agreeing);
        self.beyond = Some(Beyond { height, agreeing: before + 1 });
        if before + 1 >= STEP_PAIRS { Outcome::Step } else { Outcome::Beyond }
    }

    /// Takes a pair in and lets go of those that the window has left behind. Where the pair lies afterwards.
    fn put(&mut self, pair: Pair) -> i128 {
        self.pairs.push_back(pair);
        if pair.kept && self.lined {
            self.sums.add(&pair, 1);
        }
        while self.pairs.len() > PAIRS_MAX || self.pairs.front().is_some_and(|p| p.x < self.newest - WINDOW_NS) {
            let Some(old) = self.pairs.pop_front() else { break };
            if old.kept && self.lined {
                self.sums.add(&old, -1);
            }
        }
        if self.newest > REBASE_NS {
            self.rebase();
            self.sum();
        }
        self.pairs.back().map_or(0, |pair| pair.x)
    }

    /// Moves the origin to where the line is at the newest pair, so that coordinates stay small.
    fn rebase(&mut self) {
        let (x, y) = (self.newest, self.line(self.newest));
        self.origin = (self.origin.0 + x, self.origin.1 + x + y);
        self.pairs.iter_mut().for_each(|pair| (pair.x, pair.y) = (pair.x - x, pair.y - y));
        (self.middle, self.base) = (self.middle - x, self.base - y);
        (self.newest, self.held, self.fitted_at) = (0, self.held - x, self.fitted_at - x);
    }

    fn sum(&mut self) {
        self.sums = Sums::default();
        for pair in self.pairs.iter().filter(|pair| pair.kept) {
            self.sums.add(pair, 1);
        }
    }

    /// The first pairs: their median, at the rate known so far; a line as soon as enough agree.
    fn begin(&mut self) {
        let rate = self.rate;
        let level = |pair: &Pair| pair.y - ((rate * pair.x) >> RATE_BITS);
        let mut levels: Vec<i128> = self.pairs.iter().map(level).collect();
        levels.sort_unstable();
        let median = levels.get((levels.len() - 1) / 2).copied().unwrap_or(0);
        (self.base, self.middle) = (median, 0);
        self.worst = levels.iter().map(|level| (level - median).abs()).max().unwrap_or(0);
        if self.pairs.len() < LINE_PAIRS || self.pairs.front().is_none_or(|p| p.x > self.newest - LINE_SPAN_NS) {
            return;
        }
        let near = |pair: &Pair| (level(pair) - median).abs() <= FIRST_WITHIN_NS;
        let agree = self.pairs.iter().filter(|pair| near(pair)).count();
        if agree < FIRST_AGREE || 2 * agree < self.pairs.len() {
            self.pairs.pop_front();
            return;
        }
        self.pairs.iter_mut().for_each(|pair| pair.kept = near(pair));
        self.lined = true;
        self.rebase();
        self.sum();
        self.fit();
    }

    fn fit(&mut self) {
        let Sums { n, x, y, xx, xy } = self.sums;
        self.fitted_at = self.newest;
        if n > 0 {
            let spread = n * xx - x * x;
            // Without a length a line has no rate: n pairs that are spread evenly over the least length.
            if n >= FIRST_AGREE as i128 && spread >= n * n * LINE_SPAN_NS * LINE_SPAN_NS / 12 {
                self.rate = ((n * xy - x * y) * RATE_UNIT).div_euclid(spread).clamp(-RATE_MAX, RATE_MAX);
            }
            self.middle = x.div_euclid(n);
            self.base = (y - ((self.rate * (x - self.middle * n)) >> RATE_BITS)).div_euclid(n);
        }
        let supported = 2 * n >= self.pairs.len() as i128;
        let distance = |pair: &Pair| (pair.y - self.line(pair.x)).abs();
        self.worst = self.pairs.iter().filter(|p| p.kept || !supported).map(distance).max().unwrap_or(0);
    }

    /// What the line may be off by: what its worst pair is off by, what a crystal bends in a window, at first what pairs
    /// prove that may each be wrong, at a rate that nobody measured, and what the newest pairs contradict it by: nothing
    /// decides yet who is right.
    fn uncertainty_ns(&self) -> i128 {
        // 0.5 ppm a second: a line of least squares misses the end of a parabola by a * window^2 / 12.
        let bend = WINDOW_NS * WINDOW_NS / 1_000_000_000 / (12 * 2_000_000);
        let count = self.pairs.len().min(60);
        let first = self.pairs.front().map_or(0, |pair| self.newest - pair.x);
        let unknown_rate = if self.lined { 0 } else { first / 5000 };
        let beyond = self.beyond.map_or(0, |beyond| beyond.height.abs());
        self.worst + bend + unknown_rate + (FIRST_UNCERTAIN_NS >> count) + beyond
    }
}

/// The map of one triggered device clock, fitted to edges.
#[derive(Debug, Clone)]
pub struct EdgeMap {
    config: EdgeConfig,
    tick_ns: i64,
    arrivals: ClockMap,
    /// Index and time, both rising.
    edges: Vec<(i64, i64)>,
    fit: Option<Fit>,
    /// Exposures in a row without an edge.
    lone: u32,
    pairs: u64,
    refused: u64,
    unpaired: u64,
    splits: u64,
    future: u64,
}

impl EdgeMap {
    /// A map that knows nothing yet.
    ///
    /// # Errors
    ///
    /// `OutOfRange`: as `ClockMap::new`, and for a bound below 0 or above 1 s.
    pub fn new(config: EdgeConfig) -> Result<Self, SyncError> {
        let arrivals = ClockMap::new(config.clock)?;
        if !(0..=1_000_000_000).contains(&config.bound_ns) {
            let (what, value) = ("an edge fit's bound_ns".to_owned(), config.bound_ns.into());
            return Err(SyncError::OutOfRange { what, value, allowed: "from 0 to 1 s" });
        }
        let counter = config.clock.counter;
        let tick_ns = counter.tick_num / counter.tick_den + i64::from(counter.tick_num % counter.tick_den != 0);
        Ok(Self {
            config,
            tick_ns,
            arrivals,
            edges: Vec::new(),
            fit: None,
            lone: 0,
            pairs: 0,
            refused: 0,
            unpaired: 0,
            splits: 0,
            future: 0,
        })
    }

    /// Takes in an edge that was recorded: before the readings that it caused, else it teaches nothing.
    ///
    /// # Errors
    ///
    /// `OutOfRange`: an index or a time that does not lie above the edge before, or an absent one.
    pub fn push_edge(&mut self, index: i64, time_ns: i64) -> Result<(), SyncError> {
        let (last_index, last_ns) = self.edges.last().copied().unwrap_or((ABSENT, ABSENT));
        if index <= last_index || time_ns <= last_ns {
            let (what, value) = if index <= last_index { ("index", index) } else { ("time_ns", time_ns) };
            let what = format!("{what} of edge {}", self.edges.len());
            return Err(SyncError::OutOfRange { what, value: value.into(), allowed: "above that of the edge before" });
        }
        self.edges.push((index, time_ns));
        Ok(())
    }

    /// Maps one reading, in order of receipt. `exposure`: what it says of its pulse; None for a reading that no pulse
    /// caused, which is mapped with what is known and teaches the map of arrivals only.
    pub fn push(&mut self, ticks: i64, arrival_ns: Option<i64>, exposure: Option<Exposure>) -> EdgeMapped {
        let by_arrival = self.arrivals.push(ticks, arrival_ns);
        if by_arrival.rig_ns == ABSENT || self.config.clock.identity {
            return EdgeMapped { mapped: by_arrival, by_arrival };
        }
        let device_ns = by_arrival.device_ns;
        if by_arrival.split {
            self.split();
        }
        let (mut split, mut doubt) = (by_arrival.split, 0);
        if let (Some(arrival_ns), Some(exposure)) = (arrival_ns, exposure) {
            let target = self.target(&by_arrival, arrival_ns, exposure);
            self.lone = if target.is_none() { self.lone.saturating_add(1) } else { 0 };
            self.unpaired += u64::from(target.is_none());
            if self.lone >= LONE_READINGS {
                doubt = self.doubt(device_ns, arrival_ns, exposure);
            }
            match target.map(|target_ns| (target_ns, self.learn(device_ns, target_ns))) {
                None | Some((_, Outcome::Old)) => {}
                Some((_, Outcome::Kept)) => self.pairs += 1,
                Some((target_ns, Outcome::Step)) if !self.is_slip(device_ns, arrival_ns, exposure) => {
                    let rate = self.fit.as_ref().map_or(0, |fit| fit.rate);
                    self.split();
                    self.fit = Some(Fit::new(device_ns, target_ns, rate));
                    (self.pairs, split) = (self.pairs + 1, true);
                }
                Some((_, Outcome::Beyond | Outcome::Step)) => self.refused += 1,
            }
        }
        let mapped = self.map(&by_arrival, split, doubt);
        if let Some(arrival_ns) = arrival_ns.filter(|_| mapped.rig_ns != ABSENT) {
            let after = i128::from(mapped.rig_ns) - i128::from(arrival_ns);
            self.future += u64::from(after > mapped.uncertainty_ns.into());
        }
        EdgeMapped { mapped, by_arrival }
    }

    /// Readings that were paired with an edge and agree with the map.
    #[must_use]
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// Readings that were paired with an edge and contradict the map, steps apart.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Exposures of which nothing tells the edge, or whose edge was not recorded.
    #[must_use]
    pub fn unpaired(&self) -> u64 {
        self.unpaired
    }

    /// How often the device clock stepped.
    #[must_use]
    pub fn splits(&self) -> u64 {
        self.splits
    }

    /// How much faster rig time runs than the device counts, in 10^-9; of arrivals, as long as there are no pairs.
    #[must_use]
    pub fn rate_ppb(&self) -> i64 {
        self.fit.as_ref().map_or_else(|| self.arrivals.rate_ppb(), |fit| ppb(fit.rate))
    }

    /// Readings mapped later than their own arrival by more than their uncertainty: a planned delay that is too long.
    #[must_use]
    pub fn future(&self) -> u64 {
        self.future
    }

    /// The map of arrivals that runs along.
    #[must_use]
    pub fn arrivals(&self) -> &ClockMap {
        &self.arrivals
    }

    fn split(&mut self) {
        self.splits += 1;
        self.fit = None;
    }

    fn learn(&mut self, device_ns: i64, target_ns: i128) -> Outcome {
        match &mut self.fit {
            // After a silence longer than the window its pairs say nothing any more but the rate.
            Some(fit) if fit.ahead(device_ns, fit.newest) <= WINDOW_NS => fit.learn(device_ns, target_ns),
            known => {
                let rate = known.as_ref().map_or(self.arrivals.rate(), |fit| fit.rate);
                *known = Some(Fit::new(device_ns, target_ns, rate));
                Outcome::Kept
            }
        }
    }

    /// The edge that caused a reading, plus the planned delay; None where that cannot be told.
    fn target(&self, by_arrival: &Mapped, arrival_ns: i64, exposure: Exposure) -> Option<i128> {
        let target = |&(_, time_ns): &(i64, i64)| i128::from(time_ns) + i128::from(exposure.after_edge_ns);
        let (rig, off_by) = (i128::from(by_arrival.rig_ns), i128::from(by_arrival.uncertainty_ns));
        if let Some(index) = exposure.trigger_index {
            let place = self.edges.binary_search_by_key(&index, |&(index, _)| index).ok()?;
            let target = target(self.edges.get(place)?);
            // No exposure lies after its arrival. How long before, only a calibrated delay would tell.
            let latest = i128::from(arrival_ns).min(rig.saturating_add(off_by));
            return (latest - CAUSE_MAX_NS..=latest).contains(&target).then_some(target);
        }
        if !self.config.calibrated || off_by > PAIRED_WITHIN_NS {
            return None;
        }
        // Exactly one edge, of those that are known by then, within what the time by arrival may be off by.
        let first = self.edges.partition_point(|edge| target(edge) < rig - off_by);
        let latest = (rig + off_by).min(arrival_ns.into());
        let mut near = self.edges.get(first..)?.iter().map(target).take_while(|&t| t <= latest);
        let found = near.next()?;
        near.next().is_none().then_some(found)
    }

    /// How far the nearest edge is from where the map puts an exposure that none fits.
    fn doubt(&self, device_ns: i64, arrival_ns: i64, exposure: Exposure) -> i128 {
        let Some(fit) = &self.fit else { return 0 };
        let after = i128::from(exposure.after_edge_ns);
        let edge = fit.at(device_ns) - after;
        let next = self.edges.partition_point(|&(_, time_ns)| i128::from(time_ns) < edge);
        let around = self.edges.get(next.saturating_sub(1)..).unwrap_or(&[]).iter().take(2);
        let known = around.map(|&(_, time_ns)| i128::from(time_ns)).filter(|time| time + after <= arrival_ns.into());
        known.map(|time| (time - edge).abs()).min().unwrap_or(0)
    }

    /// Whether another edge lies where the map puts a reading: then its pulse was miscounted and no clock stepped. A
    /// step that is as long as pulses are apart is found by the map of arrivals.
    fn is_slip(&self, device_ns: i64, arrival_ns: i64, exposure: Exposure) -> bool {
        let Some(fit) = &self.fit else { return false };
        let after = i128::from(exposure.after_edge_ns);
        let edge = fit.at(device_ns) - after;
        let within = fit.within(device_ns);
        let first = self.edges.partition_point(|&(_, time_ns)| i128::from(time_ns) < edge - within);
        self.edges.get(first).is_some_and(|&(_, time_ns)| {
            let time_ns = i128::from(time_ns);
            time_ns <= edge + within && time_ns + after <= arrival_ns.into()
        })
    }

    fn map(&self, by_arrival: &Mapped, split: bool, doubt: i128) -> Mapped {
        let Some(fit) = &self.fit else {
            let uncertainty_ns = if self.config.calibrated { by_arrival.uncertainty_ns } else { UNBOUNDED_NS };
            return Mapped { uncertainty_ns, split, ..*by_arrival };
        };
        let Some(rig_ns) = i64::try_from(fit.at(by_arrival.device_ns)).ok().filter(|&ns| ns != ABSENT) else {
            return Mapped { rig_ns: ABSENT, uncertainty_ns: ABSENT, split, ..*by_arrival };
        };
        // 50 ppm of the time since a pair was.
        let ahead = fit.ahead(by_arrival.device_ns, fit.held) / 20_000;
        let fixed = i128::from(self.config.bound_ns) + i128::from(self.tick_ns);
        let uncertainty = fit.uncertainty_ns() + fixed + ahead + doubt;
        let uncertainty_ns = i64::try_from(uncertainty).unwrap_or(UNBOUNDED_NS).min(UNBOUNDED_NS);
        Mapped { rig_ns, uncertainty_ns, split, ..*by_arrival }
    }
}

/// One reading, mapped by edges and by arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeMapped {
    /// By edges; by arrivals where there are no pairs yet.
    pub mapped: Mapped,
    /// As `ClockMap::push` maps it.
    pub by_arrival: Mapped,
}

/// The columns of a device's readings, in order of receipt and of equal length; `ABSENT` where there is nothing.
#[derive(Debug, Clone, Copy)]
pub struct EdgeReadings<'a> {
    /// The counter.
    pub ticks: &'a [i64],
    /// Arrival at the host.
    pub arrival_ns: &'a [i64],
    /// Planned time from the edge to the stamped instant; absent where no pulse caused the reading.
    pub after_edge_ns: &'a [i64],
    /// Count of pulses at the device's input.
    pub trigger_index: &'a [i64],
}

/// Maps a whole device clock by recorded edges, `(index, time)` in order: the same `EdgeMap`, so equal to it by
/// construction, and equal to one that is told of each edge just before the first reading that it can have caused.
///
/// # Errors
///
/// As `EdgeMap::new` and `push_edge`; `ColumnLength` for columns of different length.
pub fn map_clock_by_edges(
    readings: EdgeReadings<'_>,
    edges: &[(i64, i64)],
    config: EdgeConfig,
) -> Result<(Vec<EdgeMapped>, EdgeMap), SyncError> {
    let EdgeReadings { ticks, arrival_ns, after_edge_ns, trigger_index } = readings;
    let columns = [("arrivals", arrival_ns), ("after_edge_ns", after_edge_ns), ("trigger_index", trigger_index)];
    if let Some((column, values)) = columns.into_iter().find(|(_, values)| values.len() != ticks.len()) {
        let (entries, samples) = (values.len(), ticks.len());
        return Err(SyncError::ColumnLength { name: "clock".to_owned(), column, entries, samples });
    }
    let mut map = EdgeMap::new(config)?;
    for &(index, time_ns) in edges {
        map.push_edge(index, time_ns)?;
    }
    let known = |value: i64| Some(value).filter(|&value| value != ABSENT);
    let rows = ticks.iter().zip(arrival_ns).zip(after_edge_ns.iter().zip(trigger_index));
    let mapped = rows
        .map(|((&ticks, &arrival), (&after, &index))| {
            let exposure = known(after).map(|after_edge_ns| Exposure { trigger_index: known(index), after_edge_ns });
            map.push(ticks, known(arrival), exposure)
        })
        .collect();
    Ok((mapped, map))
}
