//! Which sample belongs to which tick (sync.md sections 3.4, 3.6 and 3.7).
//!
//! Each way of matching fills one column, the stream's signed offsets to the ticks of the span in ns, [`ABSENT`] where
//! nothing matched. Stamps and ticks are distinct and in order, and no two of them are more than 2^63 - 1 ns apart.

use std::ops::Range;

use crate::error::SyncError;
use crate::locate::Locator;
use crate::order::ABSENT;

/// Ticks that are judged by one comparison of whole blocks.
const BLOCK: usize = 32;

/// Where no sample matches, in columns of positions.
pub const NO_MATCH: u32 = u32::MAX;

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
    #[inline]
    fn add(&mut self, positions: Range<usize>, inside: &Range<usize>) {
        self.matched += positions.len();
        self.inside += positions.end.min(inside.end).saturating_sub(positions.start.max(inside.start));
    }
}

/// Matches by time: each the other's nearest, ties: the earlier, and less than half a period apart.
///
/// `span`: the positions of the ticks to match. All ticks compete for a sample, those outside the span too. `inside`:
/// the positions of the stamps inside the span. `offsets`: one entry for each tick of the span.
pub fn by_time(
    ticks: &[i64],
    span: Range<usize>,
    stamps: &[i64],
    inside: &Range<usize>,
    period: i64,
    offsets: &mut [i64],
) -> Taken {
    let mut taken = Taken::default();
    if stamps.is_empty() || span.is_empty() {
        offsets.fill(ABSENT);
        return taken;
    }
    let blocks_are_exact = lie_within(1 << 61, ticks, stamps);
    let mut near = stamps.partition_point(|&s| s < ticks[span.start]).saturating_sub(1);
    let mut tick = span.start;
    while tick < span.end {
        near = nearest_from(stamps, near, ticks[tick]);
        let out = &mut offsets[tick - span.start..];
        if blocks_are_exact
            && let Some(out) = out.first_chunk_mut()
            && let (Some(ticks), Some(stamps)) = (neighbourhood(ticks, tick), neighbourhood(stamps, near))
            && block_by_time(ticks, stamps, period, out)
        {
            taken.add(near..near + BLOCK, inside);
            tick += BLOCK;
            near += BLOCK - 1;
            continue;
        }
        for out in out.iter_mut().take(BLOCK) {
            let t = ticks[tick];
            near = nearest_from(stamps, near, t);
            *out = ABSENT;
            if is_mutual(ticks, tick, stamps[near], period) {
                *out = stamps[near].wrapping_sub(t);
                taken.add(near..near + 1, inside);
            }
            tick += 1;
        }
    }
    taken
}

/// Walks up to the nearest stamp (ties: the earlier), from one that is not above it.
#[inline]
fn nearest_from(stamps: &[i64], mut at: usize, t: i64) -> usize {
    while let [this, next, ..] = stamps[at..]
        && next.abs_diff(t) < this.abs_diff(t)
    {
        at += 1;
    }
    at
}

/// Whether the sample is near enough and the tick is the sample's nearest; distances have one minimum, so the
/// neighbours tell.
#[inline]
fn is_mutual(ticks: &[i64], tick: usize, stamp: i64, period: i64) -> bool {
    let distance = ticks[tick].abs_diff(stamp);
    let earlier = tick.checked_sub(1).map(|before| ticks[before].abs_diff(stamp));
    let later = ticks.get(tick + 1).map(|t| t.abs_diff(stamp));
    2 * u128::from(distance) < period.unsigned_abs().into()
        && earlier.is_none_or(|earlier| distance < earlier)
        && later.is_none_or(|later| distance <= later)
}

/// Whether all values lie less than `extent` apart. Both lists are in order and not empty.
fn lie_within(extent: i64, a: &[i64], b: &[i64]) -> bool {
    let (Some(a), Some(b)) = (a.first().zip(a.last()), b.first().zip(b.last())) else {
        return false;
    };
    (a.1.max(b.1)).checked_sub(*a.0.min(b.0)).is_some_and(|apart| apart < extent)
}

/// A block of values with one neighbour on either side.
type Neighbourhood = [i64; BLOCK + 2];

/// The block that starts at `at`, where it and both neighbours are there.
#[inline]
fn neighbourhood(values: &[i64], at: usize) -> Option<&Neighbourhood> {
    values.get(at.checked_sub(1)?..)?.first_chunk()
}

/// Supposes that the block's samples belong to the block's ticks one by one, and says whether exactly that is so.
///
/// A sum of neighbours against twice a value tells on which side of the middle the value is. All conditions are signs
/// of sums, so the loop has no branch and vectorises on every processor. Values lie less than 2^61 apart: no sum of
/// these differences overflows.
#[inline(always)]
fn block_by_time(ticks: &Neighbourhood, stamps: &Neighbourhood, period: i64, offsets: &mut [i64; BLOCK]) -> bool {
    let period = period.min(1 << 62);
    let mut holds = -1_i64;
    for i in 0..BLOCK {
        let (t_before, t, t_after) = (ticks[i], ticks[i + 1], ticks[i + 2]);
        let (s_before, s, s_after) = (stamps[i], stamps[i + 1], stamps[i + 2]);
        let offset = s.wrapping_sub(t);
        let twice = offset.wrapping_add(offset);
        holds &= s_before.wrapping_sub(t).wrapping_add(offset); // the sample before is further from the tick: < 0
        holds &= !s_after.wrapping_sub(t).wrapping_add(offset); // the sample after is not nearer: >= 0
        holds &= t_before.wrapping_sub(s).wrapping_sub(offset); // the tick before is further from the sample: < 0
        holds &= !t_after.wrapping_sub(s).wrapping_sub(offset); // the tick after is not nearer: >= 0
        holds &= twice.wrapping_sub(period); // within half a period on either side: < 0
        holds &= 0_i64.wrapping_sub(twice).wrapping_sub(period);
        offsets[i] = offset;
    }
    holds < 0
}

/// Matches by hardware trigger index: the sample that reports the tick's pulse, wherever it lies in time.
///
/// `pulses` has the pulse number of every present tick, `index` that of every sample. Of equal numbers the earliest
/// tick and the earliest sample count.
pub fn by_index(
    ticks: &[i64],
    pulses: &[i64],
    span: Range<usize>,
    stamps: &[i64],
    index: &[i64],
    inside: &Range<usize>,
    offsets: &mut [i64],
) -> Taken {
    let mut taken = Taken::default();
    offsets.fill(ABSENT);
    let (of_ticks, of_stamps) = (first_of_each(pulses), first_of_each(index));
    let mut samples = of_stamps.iter().peekable();
    for &(pulse, tick) in &of_ticks {
        while samples.next_if(|(reported, _)| *reported < pulse).is_some() {}
        let Some(&&(reported, sample)) = samples.peek() else { break };
        if reported == pulse && span.contains(&tick) {
            offsets[tick - span.start] = stamps[sample].wrapping_sub(ticks[tick]);
            taken.add(sample..sample + 1, inside);
        }
    }
    taken
}

/// The numbers in order, each with the first position that has it.
fn first_of_each(numbers: &[i64]) -> Vec<(i64, usize)> {
    let mut all: Vec<(i64, usize)> = numbers.iter().copied().zip(0..).collect();
    all.sort(); // quick on numbers in order, which they nearly always are
    all.dedup_by_key(|(number, _)| *number);
    all
}

/// A sampled stream: the nearest sample (ties: the earlier) within one nominal period. Returns how many ticks have one.
pub fn sampled(ticks: &[i64], stamps: &[i64], period: i64, offsets: &mut [i64]) -> usize {
    let mut locator = Locator::new(stamps);
    let mut matched = 0;
    for (&t, out) in ticks.iter().zip(offsets) {
        let near = locator.nearest(t).filter(|&at| stamps[at].abs_diff(t) <= period.unsigned_abs());
        *out = near.map_or(ABSENT, |at| stamps[at].wrapping_sub(t));
        matched += usize::from(near.is_some());
    }
    matched
}

/// An interpolated stream: samples on both sides (one at the tick is on both) not further apart than `max_gap`.
///
/// It joins at the tick itself, so its offset is 0. Returns how many ticks are bracketed.
pub fn interpolated(ticks: &[i64], stamps: &[i64], max_gap: i64, offsets: &mut [i64]) -> usize {
    let mut locator = Locator::new(stamps);
    let mut matched = 0;
    for (&t, out) in ticks.iter().zip(offsets) {
        let bracketed = locator.last_not_above(t).is_some_and(|low| {
            let high = if stamps[low] == t { Some(&t) } else { stamps.get(low + 1) };
            high.is_some_and(|high| high.abs_diff(stamps[low]) <= max_gap.unsigned_abs())
        });
        *out = if bracketed { 0 } else { ABSENT };
        matched += usize::from(bracketed);
    }
    matched
}

/// For each of `reference` the nearest of `times` within `tolerance`, like an as-of join; times may be taken twice.
///
/// Both are in order; equal stamps are allowed. Ties: the earlier, of equal stamps the first. Returns positions
/// ([`NO_MATCH`] for none) and offsets `time - reference` in ns ([`ABSENT`] for none).
///
/// # Errors
/// [`SyncError::NotSorted`], [`SyncError::Extent`]; [`SyncError::OutOfRange`] for a negative tolerance or 2^32 - 1
/// times or more.
pub fn nearest(reference: &[i64], times: &[i64], tolerance: i64) -> Result<(Vec<u32>, Vec<i64>), SyncError> {
    if tolerance < 0 {
        let (what, value) = ("tolerance_ns".into(), tolerance.into());
        return Err(SyncError::OutOfRange { what, value, allowed: "0 or more" });
    }
    if times.len() >= NO_MATCH as usize {
        let (what, value) = ("the number of times".into(), times.len() as i128);
        return Err(SyncError::OutOfRange { what, value, allowed: "below 2^32 - 1" });
    }
    for (what, values) in [("reference stamps", reference), ("stamps", times)] {
        if !is_in_order(values)
            && let Some(fall) = values.windows(2).position(|pair| pair[1] < pair[0])
        {
            return Err(SyncError::NotSorted { what, position: fall + 1 });
        }
    }
    let mut positions = vec![NO_MATCH; reference.len()];
    let mut offsets = vec![ABSENT; reference.len()];
    if reference.is_empty() || times.is_empty() {
        return Ok((positions, offsets));
    }
    if !lie_within(i64::MAX, reference, times) {
        return Err(SyncError::Extent { name: "times".into() });
    }
    let blocks_are_exact = lie_within(1 << 61, reference, times);
    let mut locator = Locator::new(times);
    let mut tick = 0;
    while tick < reference.len() {
        let near = locator.nearest(reference[tick]).unwrap_or(0);
        let (out, at) = (&mut offsets[tick..], &mut positions[tick..]);
        if blocks_are_exact
            && let (Some(out), Some(at)) = (out.first_chunk_mut(), at.first_chunk_mut::<BLOCK>())
            && let (Some(ticks), Some(stamps)) = (reference[tick..].first_chunk(), neighbourhood(times, near))
            && block_nearest(ticks, stamps, tolerance, out)
        {
            for (i, at) in at.iter_mut().enumerate() {
                *at = (near + i) as u32;
            }
            tick += BLOCK;
            continue;
        }
        for (out, at) in out.iter_mut().zip(at).take(BLOCK) {
            *out = ABSENT; // a block that did not hold has been here
            if let Some(near) = locator.nearest(reference[tick])
                && times[near].abs_diff(reference[tick]) <= tolerance.unsigned_abs()
            {
                *at = near as u32;
                *out = times[near].wrapping_sub(reference[tick]);
            }
            tick += 1;
        }
    }
    Ok((positions, offsets))
}

/// As [`block_by_time`], for the tick's side only.
#[inline(always)]
fn block_nearest(ticks: &[i64; BLOCK], stamps: &Neighbourhood, tolerance: i64, offsets: &mut [i64; BLOCK]) -> bool {
    let tolerance = tolerance.min(1 << 62);
    let mut holds = -1_i64;
    for i in 0..BLOCK {
        let (t, s_before, s, s_after) = (ticks[i], stamps[i], stamps[i + 1], stamps[i + 2]);
        let offset = s.wrapping_sub(t);
        holds &= s_before.wrapping_sub(s); // no repeat: of equal stamps the first counts
        holds &= s_before.wrapping_sub(t).wrapping_add(offset);
        holds &= !s_after.wrapping_sub(t).wrapping_add(offset);
        holds &= !tolerance.wrapping_sub(offset);
        holds &= !tolerance.wrapping_add(offset);
        offsets[i] = offset;
    }
    holds < 0
}

/// Whether no value is below the one before it.
fn is_in_order(values: &[i64]) -> bool {
    // Signs of differences, as long as none can overflow; see `order`.
    let Some(first) = values.first() else { return true };
    let (mut falls, mut far) = (0_i64, first ^ (first << 1));
    for pair in values.windows(2) {
        falls |= pair[1].wrapping_sub(pair[0]);
        far |= pair[1] ^ (pair[1] << 1);
    }
    if far < 0 { values.is_sorted() } else { falls >= 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document word by word: all pairs.
    fn by_time_slowly(ticks: &[i64], span: Range<usize>, stamps: &[i64], period: i64) -> Vec<i64> {
        let nearest = |of: i64, among: &[i64]| (0..among.len()).min_by_key(|&i| (among[i].abs_diff(of), among[i]));
        span.map(|k| {
            let Some(j) = nearest(ticks[k], stamps) else { return ABSENT };
            let mutual = nearest(stamps[j], ticks) == Some(k);
            let near = 2 * u128::from(stamps[j].abs_diff(ticks[k])) < period as u128;
            if mutual && near { stamps[j] - ticks[k] } else { ABSENT }
        })
        .collect()
    }

    fn check(ticks: &[i64], span: Range<usize>, stamps: &[i64], period: i64) {
        let mut offsets = vec![7; span.len()];
        let taken = by_time(ticks, span.clone(), stamps, &(0..stamps.len()), period, &mut offsets);
        assert_eq!(offsets, by_time_slowly(ticks, span, stamps, period));
        assert_eq!(taken.matched, offsets.iter().filter(|&&o| o != ABSENT).count());
        assert_eq!(taken.inside, taken.matched);
    }

    #[test]
    fn by_time_is_the_document_with_drops_everywhere() {
        let ticks: Vec<i64> = (0..150).map(|i| i * 100).collect();
        let stamps: Vec<i64> = (0..150).map(|i| i * 100 + (i * 37) % 61 - 30).collect();
        check(&ticks, 0..150, &stamps, 100);
        check(&ticks, 20..140, &stamps, 100);
        for drop in 0..150 {
            let (mut fewer_ticks, mut fewer_stamps) = (ticks.clone(), stamps.clone());
            fewer_ticks.remove(drop);
            fewer_stamps.remove((drop * 7) % 150);
            check(&ticks, 0..150, &fewer_stamps, 100);
            check(&fewer_ticks, 3..149, &stamps, 100);
            check(&fewer_ticks, 0..149, &fewer_stamps, 100);
        }
    }

    #[test]
    fn ties_go_to_the_earlier() {
        check(&[0, 10], 0..2, &[5], 100);
        check(&[5], 0..1, &[0, 10], 100);
        // exactly half a period is no match
        check(&[0, 20], 0..2, &[10], 20);
        // blocks whose every offset ties with a neighbour
        let ticks: Vec<i64> = (0..100).map(|i| i * 10).collect();
        let stamps: Vec<i64> = (0..100).map(|i| i * 10 + 5).collect();
        check(&ticks, 0..100, &stamps, 1000);
        let stamps: Vec<i64> = (0..100).map(|i| i * 10 - 5).collect();
        check(&ticks, 0..100, &stamps, 1000);
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
            if stamps.is_sorted_by(|a, b| a < b) {
                check(&ticks, 0..70, &stamps, 1600);
                check(&ticks, 0..70, &stamps, 600);
            }
        }
    }

    #[test]
    fn the_ends_of_int64_are_exact() {
        for base in [i64::MAX - 7000, i64::MIN + 1] {
            let ticks: Vec<i64> = (0..70).map(|i| base + i * 100).collect();
            let stamps: Vec<i64> = (0..70).map(|i| base + i * 100 + i % 3).collect();
            check(&ticks, 0..70, &stamps, 100);
        }
        check(&[-(1 << 62), 0, 1 << 62], 0..3, &[-(1 << 62) + 1, (1 << 62) - 1], i64::MAX);
    }

    #[test]
    fn samples_outside_the_span_are_told_apart() {
        let mut offsets = [0; 3];
        let taken = by_time(&[0, 10, 20], 0..3, &[-1, 10, 21], &(1..2), 10, &mut offsets);
        assert_eq!((taken.matched, taken.inside), (3, 1));
    }

    #[test]
    fn by_index_takes_the_pulse_wherever_it_is() {
        let (ticks, stamps) = ([0, 10, 20, 30], [1, 11, 25, 41]);
        let mut offsets = [0; 3];
        let taken = by_index(&ticks, &[0, 1, 2, 3], 1..4, &stamps, &[0, 2, 2, 3], &(0..4), &mut offsets);
        assert_eq!(offsets, [ABSENT, -9, 11]);
        assert_eq!(taken.matched, 2);
        // A pulse number that two ticks report belongs to the earlier one.
        by_index(&ticks, &[5, 5, 6, 4], 1..4, &stamps, &[4, 5, 6, 7], &(0..4), &mut offsets);
        assert_eq!(offsets, [ABSENT, 5, -29]);
    }

    #[test]
    fn free_running_streams() {
        let mut offsets = [0; 4];
        assert_eq!(sampled(&[0, 10, 20, 100], &[5, 15, 27], 7, &mut offsets), 3);
        assert_eq!(offsets, [5, -5, -5, ABSENT]);
        assert_eq!(interpolated(&[0, 10, 15, 20], &[5, 15, 27], 10, &mut offsets), 2);
        assert_eq!(offsets, [ABSENT, 0, 0, ABSENT]);
        assert_eq!(sampled(&[0, 10, 20, 100], &[], 7, &mut offsets), 0);
    }

    fn check_nearest(reference: &[i64], times: &[i64], tolerance: i64) {
        let (positions, offsets) = nearest(reference, times, tolerance).unwrap();
        for (i, &t) in reference.iter().enumerate() {
            let best = (0..times.len()).min_by_key(|&j| (times[j].abs_diff(t), times[j], j)).unwrap();
            let hit = times[best].abs_diff(t) <= tolerance as u64;
            assert_eq!(positions[i], if hit { best as u32 } else { NO_MATCH });
            assert_eq!(offsets[i], if hit { times[best] - t } else { ABSENT });
        }
    }

    #[test]
    fn nearest_is_the_document_with_repeats() {
        let reference: Vec<i64> = (0..200).map(|i| i * 10 + i % 2).collect();
        let mut times: Vec<i64> = (0..200).map(|i| i * 10 + (i * 7) % 11 - 5).collect();
        times.extend([50, 50, 51, 900, 900]);
        times.sort_unstable();
        for tolerance in [0, 3, 5, 1000] {
            check_nearest(&reference, &times, tolerance);
        }
        for (reference, times) in irregular_places() {
            if times.is_sorted() {
                check_nearest(&reference, &times, 300);
                check_nearest(&reference, &times, 1500);
            }
        }
        // Two of one stamp within a block, and ticks that have one each on both sides of them.
        let reference: Vec<i64> = (0..70).map(|i| i * 1000).collect();
        let mut times = reference.clone();
        (times[44], times[45], times[46]) = (44_400, 45_300, 45_300);
        check_nearest(&reference, &times, 700);
    }

    #[test]
    fn nearest_refuses_what_it_cannot_do() {
        assert!(matches!(nearest(&[2, 1], &[1], 0), Err(SyncError::NotSorted { position: 1, .. })));
        assert!(matches!(nearest(&[1], &[1], -1), Err(SyncError::OutOfRange { .. })));
        assert!(matches!(nearest(&[i64::MIN], &[i64::MAX], 1), Err(SyncError::Extent { .. })));
        assert_eq!(nearest(&[1], &[], 0), Ok((vec![NO_MATCH], vec![ABSENT])));
    }
}
