//! The order of one stream (sync.md section 3.1): sorted, without repeats, with what was wrong counted.
//!
//! Streams nearly always arrive in order and without repeats, so that case costs one read and no copy.

use std::borrow::Cow;

use crate::simd::kernel;

/// The int64 that stands for "there is none" in every column of times and indices.
pub const ABSENT: i64 = i64::MIN;

/// How many neighbouring stamps are compared before the outcome is looked at.
const STRIDE: usize = 256;

/// One stream in order of time, or as it came where nobody has looked yet.
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

impl<'a> Ordered<'a> {
    /// The stream as it came. A [`Watch`] must find out whether it is in order.
    pub(crate) fn as_it_came(times: &'a [i64]) -> Self {
        Self { times: Cow::Borrowed(times), index: None, backwards: 0, duplicate: 0 }
    }
}

kernel! {
    /// The first position after `from` whose stamp is not above the one before it.
    fn next_fall(times: &[i64], from: usize) -> Option<usize> {
        next_fall_before(times, from, times.len())
    }
}

/// As [`next_fall`], of positions below `to`.
#[inline(always)]
fn next_fall_before(times: &[i64], from: usize, to: usize) -> Option<usize> {
    let mut at = from;
    while at + 1 < to {
        let end = (at + STRIDE).min(to - 1);
        let (before, after) = (&times[at..end], &times[at + 1..=end]);
        // A step less one has an upper bit unless it is from 1 to 2^40 ns (18 minutes). So few of such steps go round int64
        // at most once, and then the last stamp is below the first. Bit operations vectorise on every processor.
        let mut upper = 0_i64;
        for (a, b) in before.iter().zip(after) {
            upper |= b.wrapping_sub(*a).wrapping_sub(1);
        }
        if (upper >> 40 != 0 || times[end] < times[at])
            && let Some(fall) = before.iter().zip(after).position(|(a, b)| b <= a)
        {
            return Some(at + 1 + fall);
        }
        at = end;
    }
    None
}

/// Looks a stream over while it is used, so that it goes through memory once: is it in order, and where does it repeat
/// itself?
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    /// Every stamp below this position is in order.
    seen: usize,
    /// Positions of the further samples of an equal stamp.
    repeats: Vec<usize>,
    most_repeats: usize,
}

/// A stream is not in order, or repeats itself so much that it is better put in order first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotInOrder;

impl Watch {
    /// Nothing seen yet of a stream of so many samples.
    pub(crate) fn new(samples: usize) -> Self {
        Self { seen: 0, repeats: Vec::new(), most_repeats: 16 + samples / 64 }
    }

    /// Looks at every stamp below `to`.
    #[inline(always)]
    pub(crate) fn look(&mut self, times: &[i64], to: usize) -> Result<(), NotInOrder> {
        let mut at = self.seen.saturating_sub(1);
        while let Some(fall) = next_fall_before(times, at, to) {
            if times[fall] < times[fall - 1] || self.repeats.len() == self.most_repeats {
                return Err(NotInOrder);
            }
            self.repeats.push(fall);
            at = fall;
        }
        self.seen = self.seen.max(to);
        Ok(())
    }

    /// Looks at every stamp.
    pub(crate) fn look_wide(&mut self, times: &[i64]) -> Result<(), NotInOrder> {
        look_at_all(self, times)
    }

    /// Takes note that the stamps `from..to` are known to rise.
    #[inline(always)]
    pub(crate) fn rises(&mut self, from: usize, to: usize) {
        if from < self.seen {
            self.seen = self.seen.max(to);
        }
    }

    /// Where the stream repeats itself, of what was seen.
    pub(crate) fn repeats(&self) -> &[usize] {
        &self.repeats
    }
}

kernel! {
    fn look_at_all(watch: &mut Watch, times: &[i64]) -> Result<(), NotInOrder> {
        watch.look(times, times.len())
    }
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
    fn a_watch_sees_what_order_sees() {
        let mut times: Vec<i64> = (0..2000).map(|i| i * 5).collect();
        for at in [1, 300, 301, 1999] {
            times[at] = times[at - 1];
        }
        for steps in [&[2000][..], &[1, 2, 255, 300, 301, 302, 1999, 2000], &[600, 400, 2000]] {
            let mut watch = Watch::new(times.len());
            assert!(steps.iter().all(|&to| watch.look(&times, to).is_ok()));
            assert_eq!(watch.repeats(), [1, 300, 301, 1999], "{steps:?}");
        }
        let mut watch = Watch::new(times.len());
        watch.rises(3, 9); // not joined to anything seen
        assert!(watch.look(&times, 3).is_ok());
        watch.rises(2, 290);
        assert!(watch.look(&times, 2000).is_ok());
        assert_eq!(watch.repeats(), [1, 300, 301, 1999]);
        times[1500] = 3;
        let mut watch = Watch::new(times.len());
        assert!(watch.look(&times, 1500).is_ok());
        assert_eq!(watch.look(&times, 1501), Err(NotInOrder));
        assert_eq!(Watch::new(700).look(&[4; 700], 700), Err(NotInOrder));
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
