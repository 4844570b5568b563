//! A device whose truth is known: a crystal with a temperature curve behind a transport that can only be late.
//!
//! Deterministic by seed. Floats are for making the truth; what is tested has none.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::f64::consts::TAU;

pub const MS: i64 = 1_000_000;
pub const SECOND: i64 = 1_000_000_000;
/// The least delay of every simulated transport.
pub const MIN_DELAY_NS: i64 = 1_200_000;

/// `SplitMix64`.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Strictly between 0 and 1.
    pub fn share(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + self.share() * (high - low)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }

    pub fn exponential(&mut self, mean: f64) -> f64 {
        -self.share().ln() * mean
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.share().ln()).sqrt() * (TAU * self.share()).cos()
    }
}

/// How much faster than true time the device counts.
#[derive(Debug, Clone, Copy)]
pub struct Crystal {
    pub ppm: f64,
    /// Amplitude in ppm and period in s of the temperature's sine.
    pub curve: (f64, f64),
    /// Where in the curve the take begins, in turns.
    pub turned: f64,
}

impl Crystal {
    /// 50 to 100 ppm fast or slow. The curve bends the clock by at most 0.5 ppm a second (2 pi amplitude / period).
    pub fn any(random: &mut Random) -> Self {
        let sign = if random.below(2) == 0 { -1.0 } else { 1.0 };
        let period = random.between(60.0, 1200.0);
        let steepest = 0.5 * period / TAU;
        Self {
            ppm: sign * random.between(50.0, 100.0),
            curve: (random.between(0.0, steepest.min(20.0)), period),
            turned: random.share(),
        }
    }

    /// Device time of a true time, before its counter cuts it into ticks.
    pub fn device_ns(&self, truth_ns: i64) -> i64 {
        let (amplitude, period) = self.curve;
        let turn = TAU / period;
        let seconds = truth_ns as f64 * 1e-9;
        let at = |seconds: f64| (turn * seconds + TAU * self.turned).cos();
        let curve = amplitude / turn * (at(0.0) - at(seconds));
        7_000_000_000 + truth_ns + (1e3 * (self.ppm * seconds + curve)) as i64
    }
}

/// What a transport adds to its least delay.
#[derive(Debug, Clone, Copy)]
pub struct Transport {
    /// Mean of an exponential tail.
    pub tail_ns: f64,
    /// Scale and shape of a Pareto tail on top, cut at 0.5 s.
    pub pareto: Option<(f64, f64)>,
    /// One reading in so many is 30 ms late; 0 for none.
    pub spike_every: u64,
    /// A slow control transfer holds the bus up for 15 ms: how often one begins, and how long readings meet one after
    /// the other.
    pub control: Option<(i64, i64)>,
    /// Readings that are delivered together with the last of them.
    pub batch: usize,
}

pub const USB: Transport = Transport { tail_ns: 300_000.0, pareto: None, spike_every: 200, control: None, batch: 1 };

impl Transport {
    fn late_ns(&self, truth_ns: i64, random: &mut Random) -> i64 {
        let spike = if self.spike_every > 0 && random.below(self.spike_every) == 0 { 30 * MS } else { 0 };
        let control = match self.control {
            Some((every_ns, lasting_ns)) if truth_ns.rem_euclid(every_ns) < lasting_ns => {
                15 * MS - random.between(0.0, 2e6) as i64
            }
            _ => 0,
        };
        let pareto =
            self.pareto.map_or(0.0, |(scale, shape)| (scale * (random.share().powf(-1.0 / shape) - 1.0)).min(5e8));
        spike + control + (pareto + random.exponential(self.tail_ns)) as i64
    }
}

/// What a device said at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    pub truth_ns: i64,
    pub device_ns: i64,
    pub arrival_ns: i64,
}

/// The readings of a stream, at `hz` for `seconds`, in order.
pub fn readings(crystal: &Crystal, transport: &Transport, hz: i64, seconds: i64, random: &mut Random) -> Vec<Reading> {
    let at = |i| 1000 * SECOND + i * SECOND / hz;
    let mut readings: Vec<_> = (0..seconds * hz)
        .map(|i| {
            let truth_ns = at(i);
            let arrival_ns = truth_ns + MIN_DELAY_NS + transport.late_ns(truth_ns, random);
            Reading { truth_ns, device_ns: crystal.device_ns(truth_ns), arrival_ns }
        })
        .collect();
    for batch in readings.chunks_mut(transport.batch.max(1)) {
        let arrival_ns = batch.iter().map(|r| r.arrival_ns).max().unwrap_or(0);
        batch.iter_mut().for_each(|r| r.arrival_ns = arrival_ns);
    }
    readings
}
