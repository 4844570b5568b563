//! The samples of a stream that are taken one after the other by as many times in a row.
//!
//! Nearly always time `k + 1` takes the sample after that of time `k`. So a block of times is supposed to be taken by as
//! many samples in a row, and one pass without branches proves it: all offsets are within some distance, and the times
//! themselves are more than twice that apart. Then every other sample is further off, every other time too, and the samples
//! rise. A block of which that cannot be proved is tried again in quarters, and then looked at one by one.

use crate::column::Entry;
use crate::order::{NotInOrder, Watch};

/// Times that are judged at once.
pub(crate) const BLOCK: usize = 32;
/// Times that are judged at once where a block fails: what is amiss is nearly always one sample.
const QUARTER: usize = BLOCK / 4;

/// How far off a sample may be to be taken in a row, ns.
///
/// A power of two, so that one sum a time tells: an offset plus it has no upper bit unless the offset is beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Near(i64);

impl Near {
    /// The largest within `most` ns, and within 13 days; one that no offset is within where there is none.
    pub(crate) fn within(most: i64) -> Self {
        Self(most.min(1 << 50).checked_ilog2().map_or(0, |places| 1 << places))
    }

    /// Whether times rise by more than twice as much each.
    #[inline(always)]
    pub(crate) fn spaces(self, times: &[i64]) -> bool {
        let ([first, later @ ..], Some(last)) = (times, times.last()) else { return true };
        let least = 2 * self.0 + 1;
        let steps = times.iter().zip(later).map(|(before, after)| after.wrapping_sub(*before).wrapping_sub(least));
        let upper = steps.fold(0, |upper, step| upper | step);
        // So few steps of less than 2^57 ns go round int64 at most once, and then the last time is below the first.
        upper >> 56 == 0 && first <= last
    }
}

/// Goes through the samples of one stream along with times in order.
#[derive(Debug, Clone)]
pub(crate) struct InRow<'a> {
    /// In order; may repeat, of which the first counts.
    stamps: &'a [i64],
    /// Nearest to the time before; at or before the sample that is nearest to the next.
    at: usize,
    near: Near,
    /// All stamps and times lie less than 2^62 apart, so that no sum in a block overflows.
    is_exact: bool,
    pub(crate) watch: Watch,
}

impl<'a> InRow<'a> {
    /// Starts at `first`, the first of `times`.
    pub(crate) fn new(stamps: &'a [i64], times: &[i64], first: i64, near: Near) -> Self {
        let at = stamps.partition_point(|&s| s < first).saturating_sub(1);
        let at = stamps.get(at).map_or(0, |here| stamps[..at].partition_point(|s| s < here)); // of equal ones the first
        let is_exact = lie_within(1 << 62, times, stamps);
        Self { stamps, at, near, is_exact, watch: Watch::new(stamps.len()) }
    }

    /// Takes the next [`BLOCK`] samples for as many times, if it is proved that these take them, and says from which
    /// position on. It is the caller's to say whether the times are `spaced`.
    ///
    /// This is where nearly all of the time goes, so it is small; what it cannot prove is left to [`InRow::pieces`].
    #[inline(always)]
    pub(crate) fn block<E: Entry>(&mut self, times: &[i64], offsets: &mut [E], spaced: bool) -> Option<usize> {
        let next = self.at + 1;
        (spaced && self.is_exact && self.take::<E, BLOCK>(next, times, offsets)).then_some(next)
    }

    /// Finds the samples nearest to at most [`BLOCK`] times; ties: the earlier.
    ///
    /// Where several in a row are `proved`, their offsets are filled in, and it is told from which of the times and from
    /// which position on, and how many. Else a sample stands `alone`: told which of the times, its position and its stamp,
    /// the caller says what its offset is.
    #[inline(never)]
    pub(crate) fn pieces<E: Entry>(
        &mut self,
        times: &[i64],
        offsets: &mut [E],
        spaced: bool,
        mut proved: impl FnMut(usize, usize, usize),
        mut alone: impl FnMut(usize, usize, i64) -> E,
    ) {
        if self.stamps.is_empty() {
            return offsets.fill(E::NONE);
        }
        let may_be_in_row = spaced && self.is_exact;
        for ((at, times), offsets) in (0..).step_by(QUARTER).zip(times.chunks(QUARTER)).zip(offsets.chunks_mut(QUARTER))
        {
            self.walk_to(times[0]);
            if may_be_in_row && self.take::<E, QUARTER>(self.at, times, offsets) {
                proved(at, self.at + 1 - QUARTER, QUARTER);
                continue;
            }
            for ((at, &t), offset) in (at..).zip(times).zip(offsets) {
                self.walk_to(t);
                *offset = alone(at, self.at, self.stamps[self.at]);
            }
        }
    }

    /// Looks at the stream as far as it was gone through.
    #[inline(always)]
    pub(crate) fn look(&mut self) -> Result<(), NotInOrder> {
        self.watch.look(self.stamps, (self.at + 1).min(self.stamps.len()))
    }

    /// Takes the `N` samples from position `first` on, if it is proved that the times, which are spaced, take them.
    #[inline(always)]
    fn take<E: Entry, const N: usize>(&mut self, first: usize, times: &[i64], offsets: &mut [E]) -> bool {
        let (Some(times), Some(offsets)) = (times.first_chunk::<N>(), offsets.first_chunk_mut::<N>()) else {
            return false;
        };
        let Some(around) = first.checked_sub(1).and_then(|before| self.stamps.get(before..first + N + 1)) else {
            return false;
        };
        let Some(here) = around[1..].first_chunk::<N>() else { return false };
        let proved = are_near(times, here, self.near, offsets) && stand_alone(times, around, self.near);
        if proved {
            self.watch.rises(first - 1, first + N + 1);
            self.at = first + N - 1;
        }
        proved
    }

    /// Walks up to the sample nearest to `t`; ties: the earlier, of equal samples the first.
    #[inline(always)]
    fn walk_to(&mut self, t: i64) {
        let (mut ahead, mut distance) = (self.at + 1, self.stamps[self.at].abs_diff(t));
        while let Some(next) = self.stamps.get(ahead) {
            let further = next.abs_diff(t);
            if further > distance {
                break;
            }
            if further < distance {
                (self.at, distance) = (ahead, further);
            }
            ahead += 1;
        }
    }
}

/// Supposes that the times take the samples `here` one by one, and says whether all of these are near.
#[inline(always)]
fn are_near<E: Entry, const N: usize>(times: &[i64; N], here: &[i64; N], near: Near, offsets: &mut [E; N]) -> bool {
    let mut upper = 0;
    for i in 0..N {
        let offset = here[i].wrapping_sub(times[i]);
        upper |= offset.wrapping_add(near.0);
        offsets[i] = E::of(offset);
    }
    (0..2 * near.0).contains(&upper)
}

/// Whether the samples before and after those in between are further off than these, and all of them rise. Those in between
/// are near to times that do, so they can only have gone round int64, once.
#[inline(always)]
fn stand_alone(times: &[i64], around: &[i64], near: Near) -> bool {
    let (&[before, first, ..], &[.., last, after]) = (around, around) else { return false };
    let (&[start, ..], &[.., end]) = (times, times) else { return false };
    (before < first)
        & (first <= last)
        & (last < after)
        & (start.wrapping_sub(before) > near.0)
        & (after.wrapping_sub(end) > near.0)
}

/// Whether all values lie less than `extent` apart. Both lists are in order; false where one is empty.
pub(crate) fn lie_within(extent: i64, a: &[i64], b: &[i64]) -> bool {
    let (Some(a), Some(b)) = (a.first().zip(a.last()), b.first().zip(b.last())) else {
        return false;
    };
    (a.1.max(b.1)).checked_sub(*a.0.min(b.0)).is_some_and(|apart| apart < extent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_is_a_power_of_two() {
        for (most, near) in [(i64::MIN, 0), (0, 0), (1, 1), (3, 2), (6_250_000, 1 << 22), (i64::MAX, 1 << 50)] {
            assert_eq!(Near::within(most), Near(near), "{most}");
        }
    }

    #[test]
    fn times_are_spaced_by_more_than_twice_as_much() {
        let near = Near::within(4);
        for (times, spaced) in [
            (&[][..], true),
            (&[7], true),
            (&[0, 9, 18], true),
            (&[0, 9, 17], false),
            (&[0, 9, 9, 18], false),
            (&[9, 0], false),
            (&[i64::MAX - 8, i64::MIN], false), // 9 ns later, round int64
            (&[0, i64::MAX, i64::MIN, 0], false),
        ] {
            assert_eq!(near.spaces(times), spaced, "{times:?}");
        }
    }
}
