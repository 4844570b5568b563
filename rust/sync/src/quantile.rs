//! Exact order statistics (sync.md section 4): every number returned is one of the values.

use crate::error::SyncError;
use crate::order::ABSENT;
use crate::simd::kernel;

/// Up to this many values are sorted; a histogram pays only beyond.
const FEW: usize = 512;

/// Bins of the histogram: 16 KiB of counts, which stay in the first cache. One more takes what is absent.
const BINS: usize = 2048;

/// A quantile as a fraction `num / den`, with `0 < num <= den`.
pub type Fraction = (u32, u32);

/// A fraction of two integers.
///
/// # Errors
/// [`SyncError::OutOfRange`] unless `0 < num <= den < 2^32`.
pub fn fraction(num: i64, den: i64) -> Result<Fraction, SyncError> {
    let refused =
        |what: &str, value: i64, allowed| SyncError::OutOfRange { what: what.into(), value: value.into(), allowed };
    let den = u32::try_from(den).map_err(|_| refused("den", den, "from 1 to 2^32 - 1"))?;
    let num_in_range = u32::try_from(num).ok().filter(|num| (1..=den).contains(num));
    Ok((num_in_range.ok_or_else(|| refused("num", num, "1 or more and not above den"))?, den))
}

/// The order statistic of rank `(n * num + den - 1) / den`, rank 1 the smallest; None of nothing.
///
/// Entries equal to [`ABSENT`] are not values and are left out.
pub fn quantile(values: &[i64], fraction: Fraction) -> Option<i64> {
    summary(values, [fraction]).map(|summary| summary.ranked[0])
}

/// What there is to say of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary<const N: usize> {
    /// How many values there are.
    pub count: usize,
    /// The largest.
    pub most: i64,
    /// The order statistics that were asked for.
    pub ranked: [i64; N],
}

/// Several order statistics of the values of a column at once; [`ABSENT`] entries are left out. None of nothing.
pub fn summary<const N: usize>(values: &[i64], fractions: [Fraction; N]) -> Option<Summary<N>> {
    let mut ranked = [0; N];
    let (count, most) = ranked_into(values, &fractions, &mut ranked)?;
    Some(Summary { count, most, ranked })
}

/// As [`summary`], of the absolute values.
pub fn summary_of_distances<const N: usize>(values: &[i64], fractions: [Fraction; N]) -> Option<Summary<N>> {
    let distances: Vec<i64> = values.iter().map(|v| v.wrapping_abs()).collect(); // ABSENT stays what it is
    summary(&distances, fractions)
}

/// As [`summary`], of as many fractions as there are.
pub fn quantiles(values: &[i64], fractions: &[Fraction]) -> Option<Vec<i64>> {
    let mut ranked = vec![0; fractions.len()];
    ranked_into(values, fractions, &mut ranked).map(|_| ranked)
}

/// Position, from 0, of a quantile among `n > 0` values in order.
pub(crate) fn rank(n: usize, (num, den): Fraction) -> usize {
    let rank = (n as u128 * u128::from(num)).div_ceil(u128::from(den.max(1)));
    (rank.max(1) - 1).min(n as u128 - 1) as usize
}

/// Fills in the order statistics and returns how many values there are and the largest; None of nothing.
fn ranked_into(values: &[i64], fractions: &[Fraction], ranked: &mut [i64]) -> Option<(usize, i64)> {
    if values.len() <= FEW {
        let mut few: Vec<i64> = values.iter().copied().filter(|v| *v != ABSENT).collect();
        few.sort_unstable();
        for (ranked, &fraction) in ranked.iter_mut().zip(fractions) {
            *ranked = few.get(rank(few.len().max(1), fraction)).copied()?;
        }
        return few.last().map(|most| (few.len(), *most));
    }
    let (least, most) = extremes(values)?;
    let bins = Bins { least, shift: (u64::BITS - most.abs_diff(least).leading_zeros()).saturating_sub(BINS.ilog2()) };
    let mut counts = [0_usize; BINS + 1];
    count(values, bins, &mut counts);
    let count = values.len() - counts[BINS];
    let places: Vec<(usize, usize)> = fractions.iter().map(|&fraction| place(&counts, rank(count, fraction))).collect();
    let mut inside = vec![Vec::new(); fractions.len()];
    collect(values, bins, &places, &mut inside);
    for ((ranked, inside), (_, place)) in ranked.iter_mut().zip(&mut inside).zip(places) {
        let last = inside.len().checked_sub(1)?;
        *ranked = *inside.select_nth_unstable(place.min(last)).1;
    }
    Some((count, most))
}

kernel! {
    /// Least and most of the values that are there.
    fn extremes(values: &[i64]) -> Option<(i64, i64)> {
        // ABSENT is below all and, less one, above all.
        let (mut least_less_one, mut most) = (i64::MAX, ABSENT);
        for &v in values {
            most = most.max(v);
            least_less_one = least_less_one.min(v.wrapping_sub(1));
        }
        (most != ABSENT).then(|| (least_less_one.wrapping_add(1), most))
    }
}

/// Equal bins between the least and the most; what is absent has the bin after them.
#[derive(Clone, Copy)]
struct Bins {
    least: i64,
    shift: u32,
}

impl Bins {
    #[inline(always)]
    fn of(self, value: i64) -> usize {
        // What is absent is below the least, so far above all bins as an unsigned distance, or it is masked to be.
        let absent = -i64::from(value == ABSENT);
        let bin = ((value.wrapping_sub(self.least) as u64) >> self.shift) as i64 | absent;
        (bin as u64).min(BINS as u64) as usize
    }
}

kernel! {
    /// How many values lie in each bin.
    fn count(values: &[i64], bins: Bins, counts: &mut [usize; BINS + 1]) {
        let mut places = [0_u16; 64];
        for values in values.chunks(64) {
            // First all places, which vectorises, then the counting, which does not.
            for (place, &v) in places.iter_mut().zip(values) {
                *place = bins.of(v) as u16;
            }
            for &place in &places[..values.len()] {
                counts[usize::from(place).min(BINS)] += 1;
            }
        }
    }
}

/// The bin that holds a rank, and the rank among the values of that bin.
fn place(counts: &[usize; BINS + 1], rank: usize) -> (usize, usize) {
    let mut below = 0;
    for (bin, &count) in counts[..BINS].iter().enumerate() {
        if rank < below + count {
            return (bin, rank - below);
        }
        below += count;
    }
    (BINS, 0)
}

kernel! {
    /// The values of the bins that hold a rank.
    fn collect(values: &[i64], bins: Bins, places: &[(usize, usize)], inside: &mut [Vec<i64>]) {
        for values in values.chunks(32) {
            for ((bin, _), inside) in places.iter().zip(&mut *inside) {
                if values.iter().fold(false, |any, &v| any | (bins.of(v) == *bin)) {
                    inside.extend(values.iter().copied().filter(|&v| bins.of(v) == *bin));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_sorting(values: &[i64], (num, den): Fraction) -> Option<i64> {
        let mut v: Vec<i64> = values.iter().copied().filter(|&v| v != ABSENT).collect();
        v.sort_unstable();
        let rank = (v.len() * num as usize).div_ceil(den as usize);
        v.get(rank.wrapping_sub(1)).copied()
    }

    /// A small deterministic generator (splitmix64).
    fn noise(n: usize, mask: u64) -> Vec<i64> {
        let mut state = 7_u64;
        (0..n)
            .map(|_| {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                ((z ^ (z >> 31)) & mask) as i64
            })
            .collect()
    }

    #[test]
    fn ranks_are_those_of_the_document() {
        assert_eq!(quantile(&[], (1, 2)), None);
        assert_eq!(quantile(&[ABSENT, 5, ABSENT], (1, 2)), Some(5));
        assert_eq!(quantile(&[4, 1, 3, 2], (1, 2)), Some(2));
        assert_eq!(quantile(&[5, 4, 1, 3, 2], (1, 2)), Some(3));
        let hundred: Vec<i64> = (1..=100).collect();
        assert_eq!(quantile(&hundred, (99, 100)), Some(99));
        assert_eq!(quantile(&hundred, (999, 1000)), Some(100));
    }

    #[test]
    fn the_histogram_agrees_with_sorting() {
        for mask in [0, 0xff, 0xf_ffff, u64::MAX] {
            for n in [FEW, FEW + 1, 4000] {
                let mut values = noise(n, mask);
                values[3] = i64::MAX;
                for fraction in [(1, 2), (99, 100), (999, 1000), (1, 1), (1, u32::MAX)] {
                    assert_eq!(quantile(&values, fraction), by_sorting(&values, fraction), "{n} {mask:x}");
                }
            }
        }
    }

    #[test]
    fn several_at_once_agree_with_one_by_one() {
        for n in [3000, 40] {
            let mut values = noise(n, 0xffff_ffff);
            for i in (0..n).step_by(7) {
                values[i] = ABSENT;
                values[i + 1] = -values[i + 1];
            }
            let fractions = [(1, 2), (1, 2), (99, 100), (999, 1000), (1, 1)];
            let all = summary(&values, fractions).unwrap();
            assert_eq!(all.ranked, fractions.map(|f| by_sorting(&values, f).unwrap()));
            assert_eq!((all.count, all.most), (n - n.div_ceil(7), all.ranked[4]));
            let distances: Vec<i64> = values.iter().map(|v| v.wrapping_abs()).collect();
            assert_eq!(summary_of_distances(&values, fractions), summary(&distances, fractions));
        }
    }

    #[test]
    fn absent_entries_are_told_from_any_range() {
        for (least, most) in [(1 << 62, i64::MAX), (i64::MIN + 1, i64::MAX), (i64::MIN + 1, 0), (0, 0)] {
            let mut values = vec![ABSENT; 700];
            (values[3], values[600]) = (least, most);
            assert_eq!(summary(&values, [(1, 2), (1, 1)]).map(|s| (s.count, s.ranked)), Some((2, [least, most])));
        }
        assert_eq!(summary(&[ABSENT; 700], [(1, 2)]), None);
        assert_eq!(summary(&[ABSENT; 7], [(1, 2)]), None);
    }
}
