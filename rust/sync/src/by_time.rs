//! Triggered streams matched by time (sync.md section 3.4): each the other's nearest, and less than half a period apart.
//!
//! Most of it is `in_row`: a tick and a sample that are proved there are each the other's nearest. The rest is looked at
//! tick by tick.

use std::ops::Range;

use crate::column::{Entry, NARROW};
use crate::in_row::{BLOCK, InRow, Near};
use crate::order::{NotInOrder, Watch};
use crate::simd::kernel;

/// How many samples of a triggered stream were matched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// All of them.
    pub matched: usize,
    /// Those inside the span themselves (a match may lie up to half a period outside).
    pub inside: usize,
}

impl Taken {
    /// Counts the samples of `positions` as matched.
    #[inline(always)]
    pub(crate) fn add(&mut self, positions: Range<usize>, inside: &Range<usize>) {
        self.matched += positions.len();
        self.inside += positions.end.min(inside.end).saturating_sub(positions.start.max(inside.start));
    }
}

/// The ticks that streams are matched to: distinct, in order, no two of them more than 2^63 - 1 ns apart.
#[derive(Debug, Clone)]
pub(crate) struct Ticks<'a> {
    times: &'a [i64],
    period: i64,
    /// Below half a period, and as much less as a narrow column takes.
    near: Near,
    /// The first tick of block 0.
    first: usize,
    /// Whether the ticks of a block and their neighbours are as far apart as samples in a row ask for.
    spaced: Vec<bool>,
}

impl<'a> Ticks<'a> {
    /// The ticks of `span` are going to be matched; all ticks compete for a sample.
    pub(crate) fn new(times: &'a [i64], span: &Range<usize>, period: i64) -> Self {
        let near = Near::within((period / 8 * 3).min(NARROW - 1));
        Self { times, period, near, first: span.start, spaced: spaced_blocks(times, span, near) }
    }

    /// Whether `distance` to tick `at` is below half a period and below that to both its neighbours; of equal ones the
    /// earlier tick is the nearer. Distances have one minimum, so neighbours tell.
    #[inline(always)]
    fn is_nearest(&self, at: usize, stamp: i64) -> bool {
        let distance = self.times[at].abs_diff(stamp);
        let earlier = at.checked_sub(1).map(|before| self.times[before].abs_diff(stamp));
        let later = self.times.get(at + 1).map(|t| t.abs_diff(stamp));
        2 * u128::from(distance) < self.period.unsigned_abs().into()
            && earlier.is_none_or(|earlier| distance < earlier)
            && later.is_none_or(|later| distance <= later)
    }
}

kernel! {
    /// Which blocks of ticks are spaced together with their neighbours.
    fn spaced_blocks(times: &[i64], span: &Range<usize>, near: Near) -> Vec<bool> {
        let block = |at: usize| &times[at.saturating_sub(1)..(at + BLOCK + 1).min(times.len())];
        span.clone().step_by(BLOCK).map(|at| near.spaces(block(at))).collect()
    }
}

/// Goes through the samples of one stream along with the ticks.
#[derive(Debug, Clone)]
pub(crate) struct ByTime<'a> {
    samples: InRow<'a>,
    /// Positions inside the span.
    inside: Range<usize>,
    pub(crate) taken: Taken,
}

impl<'a> ByTime<'a> {
    /// Starts at the first tick of the span. The stamps are in order and may repeat, of which the first counts.
    pub(crate) fn new(stamps: &'a [i64], inside: Range<usize>, ticks: &Ticks) -> Self {
        let first = ticks.times.get(ticks.first).copied().unwrap_or(0);
        Self { samples: InRow::new(stamps, ticks.times, first, ticks.near), inside, taken: Taken::default() }
    }

    /// The offsets of the samples that the ticks of `range` take. Ranges follow each other and begin at whole blocks.
    pub(crate) fn chunk<E: Entry>(
        &mut self,
        ticks: &Ticks,
        range: Range<usize>,
        offsets: &mut [E],
    ) -> Result<(), NotInOrder> {
        chunk_of(self, ticks, range, offsets)
    }

    /// What was seen of the stream.
    pub(crate) fn watch(&mut self) -> &mut Watch {
        &mut self.samples.watch
    }

    /// Positions of the samples that repeat the one before, of those that were seen.
    pub(crate) fn repeats(&self) -> &[usize] {
        self.samples.watch.repeats()
    }
}

kernel! {
    fn chunk_of<E: Entry>(
        by_time: &mut ByTime, ticks: &Ticks, range: Range<usize>, offsets: &mut [E]
    ) -> Result<(), NotInOrder> {
        let ByTime { samples, inside, taken } = by_time;
        for (tick, offsets) in range.clone().step_by(BLOCK).zip(offsets.chunks_mut(BLOCK)) {
            let times = &ticks.times[tick..tick + offsets.len()];
            let spaced = ticks.spaced[(tick - ticks.first) / BLOCK];
            if let Some(position) = samples.block(times, offsets, spaced) {
                taken.add(position..position + BLOCK, inside);
                continue;
            }
            let mut alone = Taken::default();
            samples.pieces(
                times,
                offsets,
                spaced,
                |_, position, count| taken.add(position..position + count, inside),
                |at, position, stamp| {
                    if !ticks.is_nearest(tick + at, stamp) {
                        return E::NONE;
                    }
                    alone.add(position..position + 1, inside);
                    E::of(stamp.wrapping_sub(times[at]))
                },
            );
            taken.matched += alone.matched;
            taken.inside += alone.inside;
        }
        samples.look()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::ABSENT;

    /// The document word by word: all pairs.
    fn slowly(ticks: &[i64], span: Range<usize>, stamps: &[i64], period: i64) -> Vec<i64> {
        let nearest = |of: i64, among: &[i64]| (0..among.len()).min_by_key(|&i| (among[i].abs_diff(of), among[i], i));
        span.map(|k| {
            let Some(j) = nearest(ticks[k], stamps) else { return ABSENT };
            let mutual = nearest(stamps[j], ticks) == Some(k);
            let near = 2 * u128::from(stamps[j].abs_diff(ticks[k])) < period as u128;
            if mutual && near { stamps[j] - ticks[k] } else { ABSENT }
        })
        .collect()
    }

    fn check(times: &[i64], span: Range<usize>, stamps: &[i64], period: i64) {
        let ticks = Ticks::new(times, &span, period);
        let expected = slowly(times, span.clone(), stamps, period);
        for chunk in [BLOCK, 2 * BLOCK, 64 * BLOCK] {
            let mut by_time = ByTime::new(stamps, 0..stamps.len(), &ticks);
            let mut offsets = vec![7_i64; span.len()];
            for start in span.clone().step_by(chunk) {
                let range = start..(start + chunk).min(span.end);
                let out = &mut offsets[range.start - span.start..range.end - span.start];
                by_time.chunk(&ticks, range, out).unwrap();
            }
            assert_eq!(offsets, expected);
            assert_eq!(by_time.taken.matched, offsets.iter().filter(|&&o| o != ABSENT).count());
            assert_eq!(by_time.taken.inside, by_time.taken.matched);
            by_time.watch().look(stamps, stamps.len()).unwrap();
            let repeats = (1..stamps.len()).filter(|&i| stamps[i] == stamps[i - 1]).collect::<Vec<_>>();
            assert_eq!(by_time.repeats(), repeats);
        }
    }

    #[test]
    fn it_is_the_document_with_drops_and_repeats_everywhere() {
        let ticks: Vec<i64> = (0..150).map(|i| i * 100).collect();
        for spread in [31, 61, 131] {
            let stamps: Vec<i64> = (0..150).map(|i| i * 100 + (i * 37) % spread - spread / 2).collect();
            let mut stamps = stamps;
            stamps.sort_unstable();
            check(&ticks, 0..150, &stamps, 100);
            check(&ticks, 20..140, &stamps, 100);
            for at in 0..150 {
                let (mut fewer_ticks, mut fewer_stamps) = (ticks.clone(), stamps.clone());
                fewer_ticks.remove(at);
                fewer_stamps.remove((at * 7) % 150);
                check(&ticks, 0..150, &fewer_stamps, 100);
                check(&fewer_ticks, 3..149, &stamps, 100);
                check(&fewer_ticks, 0..149, &fewer_stamps, 100);
                let mut twice = stamps.clone();
                twice.insert(at, stamps[at]);
                check(&ticks, 0..150, &twice, 100);
                check(&fewer_ticks, 2..149, &twice, 100);
            }
        }
    }

    #[test]
    fn ties_competitors_and_empty_streams() {
        check(&[0, 100], 0..2, &[50], 100); // half a period is too far
        check(&[0, 100], 0..2, &[50], 102); // a tie: the earlier tick
        check(&[0, 100], 0..2, &[-40, 40, 60], 100); // a tie: the earlier sample
        check(&[0, 10, 100], 0..3, &[4, 5, 6, 99], 100);
        check(&[0, 100], 0..2, &[], 100);
        check(&[0, 100], 1..1, &[3], 100);
        check(&[0], 0..1, &[0], 1);
        check(&[0], 0..1, &[0, 0, 0], 1);
        check(&[0], 0..1, &[0], 0); // no period: nothing is near enough
        check(&[5, 6], 0..2, &[5, 5, 6, 6, 6], 1);
    }

    #[test]
    fn ends_of_int64_do_not_overflow() {
        let (low, high) = (i64::MIN + 1, i64::MAX);
        check(&[low, -1], 0..2, &[low, 0], i64::MAX);
        check(&[0, high], 0..2, &[0, high - 3], i64::MAX);
        let far: Vec<i64> = (0..64).map(|i| i * (1 << 57)).collect();
        check(&far, 0..64, &far, 1 << 57);
        let near_end: Vec<i64> = (0..64).map(|i| high - 6400 + 100 * i).collect();
        let off: Vec<i64> = near_end.iter().map(|t| t - 7).collect();
        check(&near_end, 0..64, &off, 100);
    }

    #[test]
    fn a_stream_that_is_not_in_order_is_noticed() {
        let ticks: Vec<i64> = (0..300).map(|i| i * 100).collect();
        for at in [1, 31, 32, 33, 200, 299] {
            let mut stamps = ticks.clone();
            stamps.swap(at - 1, at);
            let plan = Ticks::new(&ticks, &(0..300), 100);
            let mut by_time = ByTime::new(&stamps, 0..300, &plan);
            let mut offsets = vec![0_i32; 300];
            let seen = by_time.chunk(&plan, 0..300, &mut offsets).and_then(|()| by_time.watch().look(&stamps, 300));
            assert_eq!(seen, Err(NotInOrder), "{at}");
        }
    }

    /// Ticks and stamps that fit one to one, but for one tick and two stamps in the middle of the second
    /// block (the first has no neighbour before it and is matched one by one).
    fn irregular_places() -> impl Iterator<Item = (Vec<i64>, Vec<i64>)> {
        let shifts = || (-5..=5).map(|i| i * 150);
        let all = shifts().flat_map(move |a| shifts().flat_map(move |b| shifts().map(move |c| (a, b, c))));
        all.map(|(tick, earlier, later)| {
            let mut ticks: Vec<i64> = (0..70).map(|i| i * 1000).collect();
            let mut stamps = ticks.clone();
            ticks[45] += tick;
            stamps[44] += earlier;
            stamps[45] += later;
            (ticks, stamps)
        })
    }

    #[test]
    fn one_irregular_place_in_a_block_is_seen() {
        for (ticks, stamps) in irregular_places() {
            if stamps.is_sorted() {
                check(&ticks, 0..70, &stamps, 1600);
                check(&ticks, 0..70, &stamps, 600);
            }
        }
        // blocks whose every offset ties with a neighbour
        let ticks: Vec<i64> = (0..100).map(|i| i * 10).collect();
        for shift in [5, -5] {
            let stamps: Vec<i64> = (0..100).map(|i| i * 10 + shift).collect();
            check(&ticks, 0..100, &stamps, 1000);
        }
    }

    #[test]
    fn the_limits_of_samples_in_a_row_are_exact() {
        // 256 ns are near, so ticks are spaced from 513 ns on.
        let limits = [-258, -257, -256, -255, -1, 0, 1, 254, 255, 256, 257];
        for step in [511, 512, 513, 514, 1000] {
            let ticks: Vec<i64> = (0..100).map(|i| i * step).collect();
            for (at, shift) in [32, 45, 63, 64].into_iter().flat_map(|at| limits.map(|shift| (at, shift))) {
                let (mut one, mut all, mut bent) = (ticks.clone(), ticks.clone(), ticks.clone());
                one[at] += shift;
                all.iter_mut().for_each(|stamp| *stamp += shift);
                bent[at] += shift.signum();
                for stamps in [&one, &all, &bent].into_iter().filter(|stamps| stamps.is_sorted()) {
                    check(&ticks, 0..100, stamps, 1000);
                    check(stamps, 0..100, &ticks, 1000);
                    check(stamps, 0..100, &all, 1000);
                }
            }
        }
    }

    #[test]
    fn stamps_that_go_round_int64_are_not_in_a_row() {
        let ticks: Vec<i64> = (0..64).map(|i| i64::MAX - 6_300_000 + i * 100_000).collect();
        let plan = Ticks::new(&ticks, &(0..64), 100_000);
        let mut stamps: Vec<i64> = ticks.iter().map(|t| t.wrapping_add(20_000)).collect();
        stamps.extend([i64::MIN + 200_000, i64::MAX - 1]);
        let mut by_time = ByTime::new(&stamps, 0..66, &plan);
        let seen = by_time.chunk(&plan, 0..64, &mut [0_i32; 64]).and_then(|()| by_time.watch().look(&stamps, 66));
        assert_eq!(seen, Err(NotInOrder));
    }

    #[test]
    fn samples_outside_the_span_are_told_apart() {
        let ticks = Ticks::new(&[0, 10, 20], &(0..3), 10);
        let mut by_time = ByTime::new(&[-1, 10, 21], 1..2, &ticks);
        by_time.chunk(&ticks, 0..3, &mut [0_i32; 3]).unwrap();
        assert_eq!((by_time.taken.matched, by_time.taken.inside), (3, 1));
    }
}
