//! Exact order statistics (sync.md section 4): every number returned is one of the values.

use crate::error::SyncError;
use crate::order::ABSENT;

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
    summarise(values, |v| v, fractions)
}

/// As [`summary`], of the absolute values.
pub fn summary_of_distances<const N: usize>(values: &[i64], fractions: [Fraction; N]) -> Option<Summary<N>> {
    summarise(values, i64::wrapping_abs, fractions) // ABSENT stays what it is
}

/// Position, from 0, of a quantile among `n > 0` values in order.
fn rank(n: usize, (num, den): Fraction) -> usize {
    let rank = (n as u128 * u128::from(num)).div_ceil(u128::from(den.max(1)));
    (rank.max(1) - 1).min(n as u128 - 1) as usize
}

/// `key` maps [`ABSENT`], and nothing else, to itself.
fn summarise<const N: usize>(
    values: &[i64],
    key: impl Fn(i64) -> i64 + Copy,
    fractions: [Fraction; N],
) -> Option<Summary<N>> {
    if values.len() <= FEW {
        let mut few: Vec<i64> = values.iter().filter(|v| **v != ABSENT).map(|v| key(*v)).collect();
        few.sort_unstable();
        let most = *few.last()?;
        let ranked = fractions.map(|fraction| few[rank(few.len(), fraction)]);
        return Some(Summary { count: few.len(), most, ranked });
    }
    let (least, most) = extremes(values, key)?;
    let histogram = Histogram::of(values, key, least, most);
    let count = values.len() - histogram.counts[BINS];
    let ranked = histogram.ranked(values, key, fractions.map(|fraction| rank(count, fraction)));
    Some(Summary { count, most, ranked })
}

/// Least and most of the keys that are there.
fn extremes(values: &[i64], key: impl Fn(i64) -> i64) -> Option<(i64, i64)> {
    // ABSENT is below all and, less one, above all.
    let (mut least_less_one, mut most) = (i64::MAX, ABSENT);
    for &v in values {
        most = most.max(key(v));
        least_less_one = least_less_one.min(key(v).wrapping_sub(1));
    }
    (most != ABSENT).then(|| (least_less_one.wrapping_add(1), most))
}

/// How many values lie in each of many equal bins between the least and the most.
struct Histogram {
    least: i64,
    shift: u32,
    counts: [usize; BINS + 1],
}

impl Histogram {
    fn of(values: &[i64], key: impl Fn(i64) -> i64, least: i64, most: i64) -> Self {
        let shift = (u64::BITS - most.abs_diff(least).leading_zeros()).saturating_sub(BINS.ilog2());
        let mut histogram = Self { least, shift, counts: [0; BINS + 1] };
        for &v in values {
            histogram.counts[histogram.bin(key(v))] += 1;
        }
        histogram
    }

    #[inline]
    fn bin(&self, key: i64) -> usize {
        let distance = key.wrapping_sub(self.least) as u64;
        if key == ABSENT { BINS } else { ((distance >> self.shift) as usize).min(BINS) }
    }

    /// The values of these ranks (from 0): looks only into the bins that hold one.
    fn ranked<const N: usize>(&self, values: &[i64], key: impl Fn(i64) -> i64, ranks: [usize; N]) -> [i64; N] {
        let places = ranks.map(|rank| self.place(rank));
        let mut wanted = [false; BINS + 1];
        for (bin, _) in places {
            wanted[bin] = true;
        }
        let mut inside: Vec<i64> = values.iter().map(|v| key(*v)).filter(|key| wanted[self.bin(*key)]).collect();
        inside.sort_unstable(); // a few in a thousand; bins are in order of value, so whole bins stay together
        let mut before = [0; BINS + 1];
        let mut sum = 0;
        for bin in 0..=BINS {
            before[bin] = sum;
            sum += if wanted[bin] { self.counts[bin] } else { 0 };
        }
        places.map(|(bin, place)| inside.get(before[bin] + place).copied().unwrap_or(ABSENT))
    }

    /// The bin that holds a rank, and the rank among the values of that bin.
    fn place(&self, rank: usize) -> (usize, usize) {
        let mut below = 0;
        for (bin, &count) in self.counts[..BINS].iter().enumerate() {
            if rank < below + count {
                return (bin, rank - below);
            }
            below += count;
        }
        (BINS, 0)
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
