//! How far apart streams are at many ticks at once.
//!
//! All of it is in 32 bits, of which every processor compares four at once and AVX2 eight; that is why columns are narrow.
//! So few ticks are worked on at once that what is known of them stays in registers while stream after stream joins.

use crate::column::{NARROW, NONE};

/// Ticks that are worked on at once.
pub(crate) const LANES: usize = 16;

/// Added to what is earliest, so that as an unsigned number it is the larger the later, and none is the largest.
const BIAS: i32 = 1 << 30;

/// The streams so far, at [`LANES`] ticks.
///
/// Offsets and uncertainties are below [`NARROW`]. So an offset plus u lies above, and one less u plus [`BIAS`] below,
/// whatever [`NONE`] becomes in the same sums: no entry needs to be asked whether it is there.
pub(crate) struct Reach {
    /// The latest offset plus u; far below all offsets without a stream.
    high: [i32; LANES],
    /// The earliest offset less u, with the bias; far above without a stream.
    low: [u32; LANES],
    streams: [i32; LANES],
}

impl Reach {
    /// No streams yet.
    #[inline(always)]
    pub(crate) fn nowhere() -> Self {
        Self { high: [NONE; LANES], low: [u32::MAX; LANES], streams: [0; LANES] }
    }

    /// Takes in a stream by its offsets in ns, none at the ticks that lack, each reaching `uncertainty` (0 or more) to either
    /// side. Returns whether that is small enough; if not, nothing can be said of these ticks.
    #[must_use]
    #[inline(always)]
    pub(crate) fn join(&mut self, offsets: &[i32], uncertainty: i64) -> bool {
        if uncertainty >= NARROW {
            return false;
        }
        let u = uncertainty as i32;
        if let Some(offsets) = offsets.first_chunk() {
            self.join_all(offsets, u);
        } else {
            let mut some = [NONE; LANES];
            some.iter_mut().zip(offsets).for_each(|(lane, offset)| *lane = *offset);
            self.join_all(&some, u);
        }
        true
    }

    #[inline(always)]
    fn join_all(&mut self, offsets: &[i32; LANES], u: i32) {
        let lanes = self.high.iter_mut().zip(&mut self.low).zip(&mut self.streams);
        for (((high, low), streams), &offset) in lanes.zip(offsets) {
            *high = (*high).max(offset.wrapping_add(u));
            *low = (*low).min(offset.wrapping_sub(u).wrapping_add(BIAS) as u32);
            *streams += i32::from(offset != NONE);
        }
    }

    /// Takes in a stream with a sample at every tick itself, as the reference is.
    #[must_use]
    #[inline(always)]
    pub(crate) fn join_zero(&mut self, uncertainty: i64) -> bool {
        if uncertainty >= NARROW {
            return false;
        }
        let u = uncertainty as i32;
        self.join_all(&[0; LANES], u);
        true
    }

    /// Takes in all streams of another.
    #[inline(always)]
    pub(crate) fn absorb(&mut self, other: &Self) {
        for i in 0..LANES {
            self.high[i] = self.high[i].max(other.high[i]);
            self.low[i] = self.low[i].min(other.low[i]);
            self.streams[i] += other.streams[i];
        }
    }

    /// The difference between its latest and its earliest stream, for each of `worst` where that is more and there are
    /// two streams.
    #[inline(always)]
    pub(crate) fn spread(&self, worst: &mut Worst) {
        for i in 0..LANES {
            let two = -i32::from(self.streams[i] > 1);
            worst.0[i] = worst.0[i].max((apart(self.high[i], self.low[i]) & two) | (NONE & !two));
        }
    }

    /// The largest difference between one of its streams and one of the other's, either way, for each of `worst` where
    /// that is more and there is such a pair.
    #[inline(always)]
    pub(crate) fn meet(&self, other: &Self, worst: &mut Worst) {
        for i in 0..LANES {
            let widest = apart(self.high[i], other.low[i]).max(apart(other.high[i], self.low[i]));
            let pair = -i32::from(self.streams[i].min(other.streams[i]) > 0);
            worst.0[i] = worst.0[i].max((widest & pair) | (NONE & !pair));
        }
    }
}

/// From the earliest to the latest, both of which are there.
#[inline(always)]
fn apart(high: i32, low: u32) -> i32 {
    high.wrapping_sub((low as i32).wrapping_sub(BIAS))
}

/// The largest difference so far at [`LANES`] ticks, ns; [`NONE`] where nothing was compared.
pub(crate) struct Worst(pub(crate) [i32; LANES]);

impl Worst {
    /// Nothing compared yet.
    #[inline(always)]
    pub(crate) fn none() -> Self {
        Self([NONE; LANES])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extremes_fit() {
        let (mut one, mut other, mut worst) = (Reach::nowhere(), Reach::nowhere(), Worst::none());
        let far = NARROW as i32 - 1;
        assert!(one.join(&[far, NONE], far.into()) && other.join(&[-far, 5], far.into()));
        one.meet(&other, &mut worst);
        assert_eq!(worst.0[..2], [4 * far, NONE]);
        assert!(!Reach::nowhere().join(&[1], NARROW));
        assert!(!Reach::nowhere().join_zero(NARROW));
    }

    #[test]
    fn the_reference_is_a_stream_of_zeros() {
        let (mut zeros, mut reference) = (Reach::nowhere(), Reach::nowhere());
        assert!(zeros.join(&[0; LANES], 7) && reference.join_zero(7));
        assert!(zeros.join(&[9, NONE, -30], 0) && reference.join(&[9, NONE, -30], 0));
        let (mut a, mut b) = (Worst::none(), Worst::none());
        zeros.spread(&mut a);
        reference.spread(&mut b);
        assert_eq!((a.0, a.0[..4].to_vec()), (b.0, vec![16, NONE, 37, NONE]));
    }
}
