//! As-of joins: for each reference stamp the nearest of other stamps, which may be taken twice.

use std::cell::Cell;

use crate::error::SyncError;
use crate::in_row::{BLOCK, InRow, Near};
use crate::locate::Locator;
use crate::nearest::Nearest;
use crate::order::{ABSENT, NotInOrder, Watch};
use crate::simd::kernel;

/// Where no sample matches, in columns of positions.
pub const NO_MATCH: u32 = u32::MAX;

/// For each of `reference` the nearest of `times` within `tolerance`, like an as-of join.
///
/// Both are in order; equal stamps are allowed. Ties: the earlier, of equal stamps the first. `positions`
/// ([`NO_MATCH`] for none) and `offsets`, `time - reference` in ns ([`ABSENT`] for none), have one entry for each of
/// `reference`; whatever is in them is overwritten.
///
/// # Errors
/// [`SyncError::NotSorted`], [`SyncError::Extent`]; [`SyncError::OutOfRange`] for a negative tolerance or 2^32 - 1
/// times or more; [`SyncError::ColumnLength`] for columns of another length.
pub fn nearest(
    reference: &[i64],
    times: &[i64],
    tolerance: i64,
    positions: &mut [u32],
    offsets: &mut [i64],
) -> Result<(), SyncError> {
    for (column, entries) in [("positions", positions.len()), ("offsets", offsets.len())] {
        if entries != reference.len() {
            let name = "reference".into();
            return Err(SyncError::ColumnLength { name, column, entries, samples: reference.len() });
        }
    }
    if tolerance < 0 {
        let (what, value) = ("tolerance_ns".into(), tolerance.into());
        return Err(SyncError::OutOfRange { what, value, allowed: "0 or more" });
    }
    if times.len() >= NO_MATCH as usize {
        let (what, value) = ("the number of times".into(), times.len() as i128);
        return Err(SyncError::OutOfRange { what, value, allowed: "below 2^32 - 1" });
    }
    let dense = times.len() > 2 * reference.len();
    // Whoever repeats is no fault here: a watch that has seen too many repeats says so like one that saw a fall.
    let joined = if dense {
        by_guess(reference, times, tolerance, positions, offsets)
    } else {
        by_row(reference, times, tolerance, positions, offsets)
    };
    if joined.is_ok() && differences_fit(reference, times) {
        return Ok(());
    }
    for (what, values) in [("reference stamps", reference), ("stamps", times)] {
        if let Some(fall) = values.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(SyncError::NotSorted { what, position: fall + 1 });
        }
    }
    if !differences_fit(reference, times) {
        return Err(SyncError::Extent { name: "times".into() });
    }
    one_by_one(reference, times, tolerance, positions, offsets);
    Ok(())
}

/// Whether no two stamps, which are in order, are more than 2^63 - 1 ns apart.
fn differences_fit(reference: &[i64], times: &[i64]) -> bool {
    let ends = [reference.first(), reference.last(), times.first(), times.last()];
    let (least, most) = (ends.into_iter().flatten().min(), ends.into_iter().flatten().max());
    least.zip(most).is_none_or(|(least, most)| most.checked_sub(*least).is_some())
}

kernel! {
    /// Of a dense stream.
    fn by_guess(
        reference: &[i64], times: &[i64], tolerance: i64, positions: &mut [u32], offsets: &mut [i64]
    ) -> Result<(), NotInOrder> {
        let mut ticks_seen = Watch::new(reference.len());
        let mut nearest = Nearest::new(reference, times, tolerance);
        let columns = positions.chunks_mut(BLOCK).zip(offsets.chunks_mut(BLOCK));
        for ((ticks, (positions, offsets)), end) in reference.chunks(BLOCK).zip(columns).zip((BLOCK..).step_by(BLOCK)) {
            ticks_seen.look(reference, end.min(reference.len()))?;
            if times.is_empty() {
                offsets.fill(ABSENT);
            } else {
                nearest.look_ahead(ticks)?;
                nearest.group(ticks, offsets, |i, found| positions[i] = found as u32);
            }
            for (position, offset) in positions.iter_mut().zip(offsets) {
                *position = if *offset == ABSENT { NO_MATCH } else { *position };
            }
        }
        nearest.watch.look(times, times.len())
    }
}

kernel! {
    /// Of a stream of about the same rate: blocks in a row, as in `by_time`, of the tick's side only.
    fn by_row(
        reference: &[i64], times: &[i64], tolerance: i64, positions: &mut [u32], offsets: &mut [i64]
    ) -> Result<(), NotInOrder> {
        let mut ticks_seen = Watch::new(reference.len());
        let first = reference.first().copied().unwrap_or(0);
        let near = Near::within(tolerance / 4 * 3);
        let mut samples = InRow::new(times, reference, first, near);
        let columns = positions.chunks_mut(BLOCK).zip(offsets.chunks_mut(BLOCK));
        for ((ticks, (positions, offsets)), end) in reference.chunks(BLOCK).zip(columns).zip((BLOCK..).step_by(BLOCK)) {
            let (start, end) = (end.saturating_sub(BLOCK + 1), end.min(reference.len()));
            let spaced = near.spaces(&reference[start..end]);
            if spaced {
                ticks_seen.rises(start, end);
            }
            ticks_seen.look(reference, end)?;
            if let Some(position) = samples.block(ticks, offsets, spaced) {
                count_from(position, positions);
            } else {
                let places = Cell::from_mut(positions).as_slice_of_cells();
                places.iter().for_each(|place| place.set(NO_MATCH));
                samples.pieces(
                    ticks,
                    offsets,
                    spaced,
                    |from, position, count| {
                        for (place, position) in places[from..from + count].iter().zip(position as u32..) {
                            place.set(position);
                        }
                    },
                    |tick, position, time| {
                        if time.abs_diff(ticks[tick]) > tolerance.unsigned_abs() {
                            return ABSENT;
                        }
                        places[tick].set(position as u32);
                        time.wrapping_sub(ticks[tick])
                    },
                );
            }
            samples.look()?;
        }
        samples.watch.look(times, times.len())
    }
}

/// Fills a block with the numbers from `first` on.
#[inline(always)]
fn count_from(first: usize, positions: &mut [u32]) {
    for (place, position) in positions.iter_mut().zip(first as u32..) {
        *place = position;
    }
}

/// Without guesses: for stamps that repeat themselves all over.
fn one_by_one(reference: &[i64], times: &[i64], tolerance: i64, positions: &mut [u32], offsets: &mut [i64]) {
    let mut locator = Locator::new(times);
    for ((&t, position), offset) in reference.iter().zip(positions).zip(offsets) {
        let near = locator.nearest(t).filter(|&at| times[at].abs_diff(t) <= tolerance.unsigned_abs());
        (*position, *offset) = near.map_or((NO_MATCH, ABSENT), |at| (at as u32, times[at].wrapping_sub(t)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// In columns of its own, from anything.
    fn nearest(reference: &[i64], times: &[i64], tolerance: i64) -> Result<(Vec<u32>, Vec<i64>), SyncError> {
        let (mut positions, mut offsets) = (vec![77; reference.len()], vec![-77; reference.len()]);
        super::nearest(reference, times, tolerance, &mut positions, &mut offsets)?;
        Ok((positions, offsets))
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
    fn dense_times_and_repeats_all_over() {
        let reference: Vec<i64> = (0..100).map(|i| i * 1000).collect();
        let mut dense: Vec<i64> = (0..5000).map(|i| i * 21 + (i * 13) % 17).collect();
        check_nearest(&reference, &dense, 30);
        dense[700] = dense[701];
        check_nearest(&reference, &dense, 3);
        let thrice: Vec<i64> = reference.iter().flat_map(|&t| [t + 3; 3]).collect();
        check_nearest(&reference, &thrice, 10);
        check_nearest(&thrice, &reference, 10);
    }

    #[test]
    fn the_ends_of_int64_are_exact() {
        for base in [i64::MAX - 7000, i64::MIN + 1] {
            let ticks: Vec<i64> = (0..70).map(|i| base + i * 100).collect();
            let stamps: Vec<i64> = (0..70).map(|i| base + i * 100 + i % 3).collect();
            check_nearest(&ticks, &stamps, 50);
        }
        check_nearest(&[-(1 << 62), 0, (1 << 62) - 1], &[-(1 << 62) + 1, (1 << 62) - 1], i64::MAX);
    }

    #[test]
    fn nearest_refuses_what_it_cannot_do() {
        assert!(matches!(nearest(&[2, 1], &[1], 0), Err(SyncError::NotSorted { position: 1, .. })));
        assert!(matches!(super::nearest(&[1], &[1], 0, &mut [], &mut [0]), Err(SyncError::ColumnLength { .. })));
        assert!(matches!(nearest(&[1], &[1], -1), Err(SyncError::OutOfRange { .. })));
        assert!(matches!(nearest(&[i64::MIN], &[i64::MAX], 1), Err(SyncError::Extent { .. })));
        assert_eq!(nearest(&[1], &[], 0), Ok((vec![NO_MATCH], vec![ABSENT])));
    }
}
