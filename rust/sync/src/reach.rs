//! How far apart streams are at many ticks at once.
//!
//! Offsets are within half a period and so fit into 32 bits, of which every processor compares four at once; int64 it
//! compares one by one. What does not fit is found out, and left to whoever asked.

use crate::order::ABSENT;

/// Ticks that are worked on at once, so that all columns stay in the first cache.
pub const CHUNK: usize = 512;

/// Offsets and uncertainties below this (0.5 s) are taken: sums and differences of two of each then fit.
pub const LIMIT: i64 = 1 << 29;

/// Where there is none, in columns of 32 bits.
const NONE: i32 = i32::MIN;

/// The streams so far: the latest offset plus u, the earliest less u, and how many there are, at a chunk of ticks.
pub struct Reach {
    /// [`NONE`] without a stream.
    high: [i32; CHUNK],
    /// The largest number without a stream.
    low: [i32; CHUNK],
    streams: [i32; CHUNK],
}

impl Reach {
    /// No streams yet.
    pub fn nowhere() -> Self {
        Self { high: [NONE; CHUNK], low: [i32::MAX; CHUNK], streams: [0; CHUNK] }
    }

    /// Takes in a stream by its offsets in ns ([`ABSENT`] where it has none), each reaching `uncertainty` (0 or more)
    /// to either side. Returns whether all fitted; if not, nothing can be said of this chunk.
    #[must_use]
    pub fn join(&mut self, offsets: &[i64], uncertainty: i64) -> bool {
        if uncertainty >= LIMIT {
            return false;
        }
        let u = uncertainty as i32;
        let n = offsets.len().min(CHUNK);
        // First apart into halves of 32 bits, then on with these alone: that vectorises four abreast.
        let (mut upper, mut lower) = ([0_i32; CHUNK], [0_i32; CHUNK]);
        for ((upper, lower), &offset) in upper.iter_mut().zip(&mut lower).zip(offsets) {
            (*upper, *lower) = ((offset >> 32) as i32, offset as i32);
        }
        let mut beyond = 0;
        let columns = self.high[..n].iter_mut().zip(&mut self.low[..n]).zip(&mut self.streams[..n]);
        for (((high, low), streams), (&upper, &lower)) in columns.zip(upper.iter().zip(&lower)) {
            // The upper half of ABSENT is as no other's that fits; else it is all sign. Masks, not branches.
            let absent = -i32::from(upper == (ABSENT >> 32) as i32);
            let cut_off = (upper ^ (lower >> 31)) | (lower.wrapping_add(LIMIT as i32) & !(2 * LIMIT as i32 - 1));
            beyond |= (cut_off & !absent) | (lower & absent);
            *high = (*high).max((lower.wrapping_add(u) & !absent) | (NONE & absent));
            *low = (*low).min((lower.wrapping_sub(u) & !absent) | (i32::MAX & absent));
            *streams += absent + 1;
        }
        beyond == 0
    }

    /// Takes in all streams of another.
    pub fn absorb(&mut self, other: &Self) {
        for i in 0..CHUNK {
            self.high[i] = self.high[i].max(other.high[i]);
            self.low[i] = self.low[i].min(other.low[i]);
            self.streams[i] += other.streams[i];
        }
    }

    /// The difference between its latest and its earliest stream, for each of `worst` where that is more and there are
    /// two streams.
    pub fn spread(&self, worst: &mut Worst) {
        for i in 0..CHUNK {
            let apart = self.high[i].wrapping_sub(self.low[i]);
            worst.0[i] = worst.0[i].max(if self.streams[i] > 1 { apart } else { NONE });
        }
    }

    /// The largest difference between one of its streams and one of the other's, either way, for each of `worst` where
    /// that is more and there is such a pair.
    pub fn meet(&self, other: &Self, worst: &mut Worst) {
        for i in 0..CHUNK {
            let up = self.high[i].wrapping_sub(other.low[i]);
            let down = other.high[i].wrapping_sub(self.low[i]);
            let pair = self.high[i] != NONE && other.high[i] != NONE;
            worst.0[i] = worst.0[i].max(if pair { up.max(down) } else { NONE });
        }
    }
}

/// The largest difference so far at a chunk of ticks.
pub struct Worst([i32; CHUNK]);

impl Worst {
    /// Nothing compared yet.
    pub fn none() -> Self {
        Self([NONE; CHUNK])
    }

    /// As int64 ns, [`ABSENT`] where nothing was compared.
    pub fn write(&self, out: &mut [i64]) {
        for (out, &worst) in out.iter_mut().zip(&self.0) {
            *out = if worst == NONE { ABSENT } else { i64::from(worst) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_found_out() {
        for fits in [0, LIMIT - 1, -LIMIT, ABSENT] {
            assert!(Reach::nowhere().join(&[1, fits], LIMIT - 1), "{fits}");
        }
        for too_far in [LIMIT, -LIMIT - 1, i64::MAX, ABSENT + 1, ABSENT + LIMIT, 1 << 32, -(1 << 32)] {
            assert!(!Reach::nowhere().join(&[1, too_far], 0), "{too_far}");
        }
        assert!(!Reach::nowhere().join(&[1], LIMIT));
    }

    #[test]
    fn the_extremes_fit() {
        let (mut one, mut other, mut worst) = (Reach::nowhere(), Reach::nowhere(), Worst::none());
        assert!(one.join(&[LIMIT - 1, ABSENT], LIMIT - 1) && other.join(&[-LIMIT, 5], LIMIT - 1));
        one.meet(&other, &mut worst);
        let mut out = [7; 2];
        worst.write(&mut out);
        assert_eq!(out, [4 * LIMIT - 3, ABSENT]);
    }
}
