//! The order of one stream (sync.md section 3.1): sorted, without repeats, with what was wrong counted.
//!
//! Streams nearly always arrive in order and without repeats, so that case costs one read and no copy.

use std::borrow::Cow;

/// The int64 that stands for "there is none" in every column of times and indices.
pub const ABSENT: i64 = i64::MIN;

/// How many neighbouring stamps are compared before the outcome is looked at.
const STRIDE: usize = 256;

/// One stream in order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ordered<'a> {
    /// Distinct stamps, strictly increasing, int64 ns.
    pub times: Cow<'a, [i64]>,
    /// The entry of each of `times` in the second column (a trigger index), where one was given.
    pub index: Option<Cow<'a, [i64]>>,
    /// Samples below the running maximum, in arrival order.
    pub backwards: usize,
    /// Further samples of an equal stamp; the first that arrived stays.
    pub duplicate: usize,
}

/// Puts the stamps of one stream, given in arrival order, into order of time.
///
/// `index`, where given, has one entry a stamp and is carried along.
pub fn order<'a>(times: &'a [i64], index: Option<&'a [i64]>) -> Ordered<'a> {
    let Some(first_fall) = next_fall(times, 0) else {
        return Ordered { times: Cow::Borrowed(times), index: index.map(Cow::Borrowed), backwards: 0, duplicate: 0 };
    };
    without_repeats(times, index, first_fall).unwrap_or_else(|| sorted(times, index))
}

/// The first position after `from` whose stamp is not above the one before it.
fn next_fall(times: &[i64], from: usize) -> Option<usize> {
    let mut at = from;
    while at + 1 < times.len() {
        let end = (at + STRIDE).min(times.len() - 1);
        let (before, after) = (&times[at..end], &times[at + 1..=end]);
        // Sums and bit operations only, so that it vectorises on every processor: int64 comparisons do not on SSE2.
        // The sign of `falls` tells, unless the difference overflowed, which needs a stamp beyond 2^62.
        let (mut falls, mut far) = (0_i64, times[at] ^ (times[at] << 1));
        for (a, b) in before.iter().zip(after) {
            falls |= b.wrapping_sub(*a).wrapping_sub(1);
            far |= b ^ (b << 1);
        }
        if (falls | far) < 0
            && let Some(fall) = before.iter().zip(after).position(|(a, b)| b <= a)
        {
            return Some(at + 1 + fall);
        }
        at = end;
    }
    None
}

/// Leaves out repeats of stamps that are in order; None where they are not in order.
fn without_repeats<'a>(times: &[i64], index: Option<&[i64]>, first_fall: usize) -> Option<Ordered<'a>> {
    let mut kept = Vec::with_capacity(times.len());
    let mut kept_index = index.map(|_| Vec::with_capacity(times.len()));
    let (mut from, mut fall) = (0, Some(first_fall));
    loop {
        let to = fall.unwrap_or(times.len());
        kept.extend_from_slice(&times[from..to]);
        if let (Some(all), Some(kept)) = (index, kept_index.as_mut()) {
            kept.extend_from_slice(&all[from..to]);
        }
        let Some(repeat) = fall else { break };
        if times[repeat] < times[repeat - 1] {
            return None;
        }
        from = repeat + 1;
        fall = next_fall(times, repeat);
    }
    let duplicate = times.len() - kept.len();
    Some(Ordered { times: Cow::Owned(kept), index: kept_index.map(Cow::Owned), backwards: 0, duplicate })
}

/// The general case: sorts, the earlier arrival first among equals, then leaves out repeats.
fn sorted<'a>(times: &[i64], index: Option<&[i64]>) -> Ordered<'a> {
    let mut highest = i64::MIN;
    let mut backwards = 0;
    for &t in times {
        backwards += usize::from(t < highest);
        highest = highest.max(t);
    }
    let (kept, kept_index) = match index {
        None => {
            let mut all = times.to_vec();
            all.sort(); // the stable sort is quick on stamps that are nearly in order
            all.dedup();
            (all, None)
        }
        Some(index) => {
            let mut all: Vec<(i64, i64)> = times.iter().copied().zip(index.iter().copied()).collect();
            all.sort_by_key(|&(t, _)| t);
            all.dedup_by_key(|&mut (t, _)| t);
            let (kept, kept_index) = all.into_iter().unzip();
            (kept, Some(Cow::Owned(kept_index)))
        }
    };
    let duplicate = times.len() - kept.len();
    Ordered { times: Cow::Owned(kept), index: kept_index, backwards, duplicate }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(times: &[i64]) -> (Vec<i64>, usize, usize) {
        let o = order(times, None);
        (o.times.into_owned(), o.backwards, o.duplicate)
    }

    #[test]
    fn a_stream_in_order_is_not_copied() {
        let times = [1, 2, 5];
        assert!(matches!(order(&times, None).times, Cow::Borrowed(_)));
        assert!(matches!(order(&[], None).times, Cow::Borrowed(_)));
    }

    #[test]
    fn repeats_are_left_out_and_counted() {
        assert_eq!(figures(&[1, 1, 2, 3, 3, 3, 4]), (vec![1, 2, 3, 4], 0, 3));
        assert_eq!(figures(&[7, 7]), (vec![7], 0, 1));
    }

    #[test]
    fn backwards_counts_below_the_running_maximum() {
        // 2 and 3 lie below 5; the second 5 does not.
        assert_eq!(figures(&[1, 5, 2, 3, 5, 6]), (vec![1, 2, 3, 5, 6], 2, 1));
    }

    #[test]
    fn the_first_arrival_of_equal_stamps_stays() {
        let o = order(&[5, 3, 5, 3], Some(&[50, 30, 51, 31]));
        assert_eq!(o.times.as_ref(), [3, 5]);
        assert_eq!(o.index.as_deref(), Some(&[30, 50][..]));
        assert_eq!((o.backwards, o.duplicate), (2, 2));
        let o = order(&[3, 3, 4], Some(&[1, 2, 3]));
        assert_eq!(o.index.as_deref(), Some(&[1, 3][..]));
    }

    #[test]
    fn falls_are_found_at_every_place_and_at_the_ends_of_int64() {
        for n in [1, 2, 255, 256, 257, 700] {
            let straight: Vec<i64> = (0..n).map(|i| i * 3).collect();
            assert_eq!(next_fall(&straight, 0), None);
            for at in 1..straight.len() {
                let mut bent = straight.clone();
                bent[at] = bent[at - 1];
                assert_eq!(next_fall(&bent, 0), Some(at));
            }
        }
        assert_eq!(next_fall(&[i64::MIN, i64::MAX], 0), None);
        assert_eq!(next_fall(&[i64::MAX, i64::MIN], 0), Some(1));
        assert_eq!(next_fall(&[i64::MIN, 0, i64::MAX, i64::MAX], 0), Some(3));
    }
}
