//! The samples of a stream that are taken one after the other by as many times in a row.
//!
//! Nearly always time `k + 1` takes the sample after that of time `k`. So a block of times is supposed to be taken by as
//! many samples in a row, and one pass without branches proves it: all offsets are within some `near`, and all steps
//! between samples are longer than twice that. Then no other sample is as near. A block of which that cannot be proved is
//! tried again in quarters, and then looked at one by one.

use crate::column::Entry;
use crate::order::{NotInOrder, Watch};

/// Times that are judged at once.
pub(crate) const BLOCK: usize = 32;
/// Times that are judged at once where a block fails: what is amiss is nearly always one sample.
const QUARTER: usize = BLOCK / 4;

/// Goes through the samples of one stream along with times in order.
#[derive(Debug, Clone)]
pub(crate) struct InRow<'a> {
    /// In order; may repeat, of which the first counts.
    stamps: &'a [i64],
    /// At or before the sample that is nearest to the next time.
    at: usize,
    /// How far off a sample may be to be proved in a block, ns.
    near: i64,
    /// All stamps and times lie less than 2^62 apart, so that no sum in a block overflows.
    is_exact: bool,
    pub(crate) watch: Watch,
}

impl<'a> InRow<'a> {
    /// Starts at `first`, the first of `times`.
    pub(crate) fn new(stamps: &'a [i64], times: &[i64], first: i64, near: i64) -> Self {
        let at = stamps.partition_point(|&s| s < first).saturating_sub(1);
        let at = stamps.get(at).map_or(0, |here| stamps[..at].partition_point(|s| s < here)); // of equal ones the first
        let is_exact = lie_within(1 << 62, times, stamps);
        Self { stamps, at, near, is_exact, watch: Watch::new(stamps.len()) }
    }

    /// Finds the samples nearest to at most [`BLOCK`] times; ties: the earlier.
    ///
    /// Where several in a row are `proved`, their offsets are filled in, and it is told from which of the times and from
    /// which position on, and how many. Else a sample stands `alone`: told which of the times, its position and its stamp,
    /// the caller says what its offset is.
    #[inline(always)]
    pub(crate) fn block<E: Entry>(
        &mut self,
        times: &[i64],
        offsets: &mut [E],
        may_be_in_row: bool,
        mut proved: impl FnMut(usize, usize, usize),
        mut alone: impl FnMut(usize, usize, i64) -> E,
    ) {
        let Some(&first) = times.first() else { return };
        if self.stamps.is_empty() {
            return offsets.fill(E::NONE);
        }
        self.walk_to(first);
        let may_be_in_row = may_be_in_row && self.is_exact;
        if may_be_in_row && self.take::<E, BLOCK>(times, offsets) {
            proved(0, self.at + 1 - BLOCK, BLOCK);
            return;
        }
        for ((at, times), offsets) in (0..).step_by(QUARTER).zip(times.chunks(QUARTER)).zip(offsets.chunks_mut(QUARTER))
        {
            self.walk_to(times[0]);
            if may_be_in_row && self.take::<E, QUARTER>(times, offsets) {
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

    /// Takes `N` samples from the one that is nearest to the first time on, if it is proved that the times take them.
    #[inline(always)]
    fn take<E: Entry, const N: usize>(&mut self, times: &[i64], offsets: &mut [E]) -> bool {
        let (Some(times), Some(offsets)) = (times.first_chunk::<N>(), offsets.first_chunk_mut::<N>()) else {
            return false;
        };
        let Some(around) = self.at.checked_sub(1).and_then(|before| self.stamps[before..].get(..N + 2)) else {
            return false;
        };
        let (Some(here), Some(after)) = (around[1..].first_chunk::<N>(), around[2..].first_chunk::<N>()) else {
            return false;
        };
        let proved = is_in_row(times, around[0], here, after, self.near, offsets);
        if proved {
            self.watch.rises(self.at - 1, self.at + N + 1);
            self.at += N - 1;
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

/// Supposes that the times take the samples `here` one by one, and says whether that is proved.
///
/// Signs of sums tell, so the loop has no branch and vectorises on every processor.
#[inline(always)]
fn is_in_row<E: Entry, const N: usize>(
    times: &[i64; N],
    before: i64,
    here: &[i64; N],
    after: &[i64; N],
    near: i64,
    offsets: &mut [E; N],
) -> bool {
    let long = 2 * near + 1;
    let mut fails = here[0].wrapping_sub(before).wrapping_sub(long);
    for i in 0..N {
        let offset = here[i].wrapping_sub(times[i]);
        fails |= offset.wrapping_add(near); // below -near: < 0
        fails |= near.wrapping_sub(offset); // above near: < 0
        fails |= after[i].wrapping_sub(here[i]).wrapping_sub(long); // a step of twice `near` or less: < 0
        offsets[i] = E::of(offset);
    }
    fails >= 0
}

/// Whether all values lie less than `extent` apart. Both lists are in order; false where one is empty.
pub(crate) fn lie_within(extent: i64, a: &[i64], b: &[i64]) -> bool {
    let (Some(a), Some(b)) = (a.first().zip(a.last()), b.first().zip(b.last())) else {
        return false;
    };
    (a.1.max(b.1)).checked_sub(*a.0.min(b.0)).is_some_and(|apart| apart < extent)
}
