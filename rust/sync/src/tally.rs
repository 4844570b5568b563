//! Exact order statistics of narrow columns (sync.md section 4), gathered while the columns are made.
//!
//! Every value is counted in a bin of its distance from zero and its sign. The counts tell in which bin a rank lies; then
//! the column is gone through once more for the values of that bin alone, a few in a thousand.

use crate::column::{NONE, widened};
use crate::quantile::{self, Fraction, rank};
use crate::simd::kernel;

/// Bins of distances; the last takes all beyond.
const BINS: usize = 4096;
/// Entries that are counted at once: so many that the counts of one column stay in the first cache for a while, so few that
/// the entries are still in the second.
pub(crate) const STRETCH: usize = 4096;
/// Order statistics that are looked for in one pass.
const RANKS: usize = 3;
/// Values that are looked through at once for those of a bin: as many as a word has bits.
const STRIDE: usize = u32::BITS as usize;

/// An order statistic that is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ranked {
    /// Of the values.
    Value(Fraction),
    /// Of their absolute values.
    Distance(Fraction),
}

/// The values of one column, counted.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    shift: u32,
    /// By bin: how many are 0 or more, and how many less. [`NONE`] is among the last.
    counts: Vec<[u32; 2]>,
    none: usize,
    all: usize,
    most: u32,
}

impl Tally {
    /// Nothing counted yet. Distances are expected below `range` ns; of more, the statistics take longer.
    pub(crate) fn new(range: i64) -> Self {
        let bits = i64::BITS - range.clamp(1, 1 << 30).leading_zeros();
        Self { shift: bits.saturating_sub(BINS.ilog2()), counts: vec![[0; 2]; BINS], none: 0, all: 0, most: 0 }
    }

    /// Counts the entries of a stretch of the column.
    pub(crate) fn add(&mut self, values: &[i32]) {
        self.all += values.len();
        let (none, most) = none_and_most(values);
        self.none += none;
        self.most = self.most.max(most);
        if let Some(counts) = self.counts.as_flattened_mut().first_chunk_mut() {
            count_in_bins(values, self.shift, counts);
        }
    }

    /// Counts the entries of a column that were not counted yet, if there are as many as `least`.
    pub(crate) fn add_from(&mut self, column: &[i32], least: usize) {
        if let Some(rest) = column.get(self.all..).filter(|rest| rest.len() >= least) {
            self.add(rest);
        }
    }

    /// How many entries were counted.
    pub(crate) fn all(&self) -> usize {
        self.all
    }

    /// How many of them are values.
    pub(crate) fn count(&self) -> usize {
        self.all - self.none
    }

    /// The largest absolute value; None of nothing.
    pub(crate) fn most(&self) -> Option<i64> {
        (self.count() > 0).then_some(self.most.into())
    }

    /// Order statistics of the column that was counted; None of nothing.
    pub(crate) fn ranked<const N: usize>(&self, column: &[i32], wanted: [Ranked; N]) -> Option<[i64; N]> {
        if self.count() == 0 {
            return None;
        }
        let places = wanted.map(|wanted| self.place(wanted));
        let mut inside: [Vec<i32>; N] = [const { Vec::new() }; N];
        for (places, inside) in places.chunks(RANKS).zip(inside.chunks_mut(RANKS)) {
            collect(column, self.shift, places, inside);
        }
        let mut out = [0; N];
        for (((out, wanted), place), inside) in out.iter_mut().zip(wanted).zip(places).zip(&mut inside) {
            *out = match inside.len().checked_sub(1) {
                None => beyond(column, wanted),
                Some(last) => (*inside.select_nth_unstable(place.rank.min(last)).1).into(),
            };
        }
        Some(out)
    }

    /// Where a rank lies.
    fn place(&self, wanted: Ranked) -> Place {
        let (fraction, distance) = match wanted {
            Ranked::Value(fraction) => (fraction, false),
            Ranked::Distance(fraction) => (fraction, true),
        };
        let mut rank = rank(self.count(), fraction);
        let beyond = Place { bin: u32::MAX, sign: None, rank };
        let bins = self.counts[..BINS - 1].iter().enumerate();
        if distance {
            for (bin, [positive, negative]) in bins {
                let here = (positive + negative) as usize;
                if rank < here {
                    return Place { bin: bin as u32, sign: None, rank };
                }
                rank -= here;
            }
            return beyond;
        }
        let [_, far] = self.counts[BINS - 1];
        let Some(mut rank) = rank.checked_sub(far as usize - self.none) else { return beyond };
        for (bin, &[_, negative]) in bins.clone().rev() {
            if rank < negative as usize {
                return Place { bin: bin as u32, sign: Some(true), rank };
            }
            rank -= negative as usize;
        }
        for (bin, &[positive, _]) in bins {
            if rank < positive as usize {
                return Place { bin: bin as u32, sign: Some(false), rank };
            }
            rank -= positive as usize;
        }
        beyond
    }
}

/// A rank among the values of one bin.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// One that no value has where the rank lies beyond all bins.
    bin: u32,
    /// Whether negative values are meant; None: absolute ones.
    sign: Option<bool>,
    rank: usize,
}

impl Place {
    /// What of a value of the bin is ranked, if it is.
    #[inline(always)]
    fn key(&self, value: i32) -> Option<i32> {
        match self.sign {
            None => Some(value.wrapping_abs()),
            Some(negative) => (negative == (value < 0)).then_some(value),
        }
    }
}

kernel! {
    /// How many entries are none, and the largest absolute value.
    fn none_and_most(values: &[i32]) -> (usize, u32) {
        let (mut none, mut most) = (0_u32, 0_u32);
        for &v in values {
            none += u32::from(v == NONE);
            most = most.max(if v == NONE { 0 } else { v.unsigned_abs() });
        }
        (none as usize, most)
    }
}

kernel! {
    /// Counts values by bin and sign.
    fn count_in_bins(values: &[i32], shift: u32, counts: &mut [u32; 2 * BINS]) {
        let mut places = [0_u16; 64];
        for values in values.chunks(64) {
            // First all places, which vectorises, then the counting, which does not.
            for (place, &v) in places.iter_mut().zip(values) {
                let bin = (v.unsigned_abs() >> shift).min(BINS as u32 - 1);
                *place = (2 * bin + (v as u32 >> 31)) as u16;
            }
            for &place in &places[..values.len()] {
                counts[usize::from(place) % (2 * BINS)] += 1;
            }
        }
    }
}

kernel! {
    /// What is ranked of the values of each bin; at most [`RANKS`] of them.
    fn collect(column: &[i32], shift: u32, places: &[Place], inside: &mut [Vec<i32>]) {
        let bin = |at: usize| places.get(at).map_or(u32::MAX, |place| place.bin);
        let [first, second, third] = std::array::from_fn::<u32, RANKS, _>(bin);
        for values in column.chunks(STRIDE) {
            let mut hits = 0_u32;
            for (at, v) in values.iter().enumerate() {
                let here = v.unsigned_abs() >> shift;
                let hit = u32::from(here == first) | u32::from(here == second) | u32::from(here == third);
                hits |= hit << at;
            }
            while let Some(&value) = values.get(hits.trailing_zeros() as usize) {
                hits &= hits - 1;
                for (place, inside) in places.iter().zip(&mut *inside) {
                    if value.unsigned_abs() >> shift == place.bin {
                        inside.extend(place.key(value));
                    }
                }
            }
        }
    }
}

/// An order statistic among values beyond all bins: the slow way.
fn beyond(column: &[i32], wanted: Ranked) -> i64 {
    let values = column.iter().map(|&v| widened(v));
    let (values, fraction): (Vec<i64>, _) = match wanted {
        Ranked::Value(fraction) => (values.collect(), fraction),
        Ranked::Distance(fraction) => (values.map(i64::wrapping_abs).collect(), fraction),
    };
    quantile::quantile(&values, fraction).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of every value with `key`, sorted.
    fn slowly(column: &[i32], key: impl Fn(i32) -> i32, (num, den): Fraction) -> i64 {
        let mut values: Vec<i32> = column.iter().filter(|v| **v != NONE).map(|v| key(*v)).collect();
        values.sort_unstable();
        values[(values.len() * num as usize).div_ceil(den as usize) - 1].into()
    }

    #[test]
    fn ranks_are_those_of_sorting_whatever_the_range() {
        let mut state = 1_u64;
        let mut noise = move |spread: i32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) as i32).rem_euclid(2 * spread + 1) - spread
        };
        for range in [1, 4096, 8_333_333, 1 << 29] {
            for (spread, middle) in [(0, 0), (0, 77), (3, 0), (900, -400), (600_000, 200_000), ((1 << 28), 1 << 28)] {
                for n in [1, 2, 17, 1000, 5000] {
                    let mut column: Vec<i32> = (0..n).map(|_| (middle + noise(spread)).min((1 << 29) - 1)).collect();
                    column.iter_mut().skip(1).step_by(9).for_each(|v| *v = NONE);
                    let mut tally = Tally::new(range);
                    column.chunks(700).for_each(|chunk| tally.add(chunk));
                    let fractions = [(1, 2), (99, 100), (1, 1), (1, u32::MAX)];
                    let values = tally.ranked(&column, fractions.map(Ranked::Value)).unwrap();
                    assert_eq!(values, fractions.map(|f| slowly(&column, |v| v, f)), "{range} {spread} {middle} {n}");
                    let distances = tally.ranked(&column, fractions.map(Ranked::Distance)).unwrap();
                    assert_eq!(distances, fractions.map(|f| slowly(&column, i32::abs, f)));
                    assert_eq!(tally.most(), Some(distances[2]));
                    assert_eq!(tally.count(), column.iter().filter(|v| **v != NONE).count());
                }
            }
        }
        let mut tally = Tally::new(5);
        tally.add(&[NONE; 40]);
        assert_eq!((tally.count(), tally.most()), (0, None));
        assert_eq!(tally.ranked(&[NONE; 40], [Ranked::Value((1, 2))]), None);
    }
}
