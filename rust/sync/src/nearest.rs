//! The nearest samples of a dense stream (sync.md section 3.7), such as a 1 kHz IMU at 60 Hz ticks.
//!
//! Where a sample lies is guessed from the rate, corrected once by how far off the guess was, and proved by its two
//! neighbours. Guesses of a group start from one place that is known, so that none waits for the one before; what is not
//! proved is searched for. The guess decides only how long the search takes, never what it finds.

use crate::column::Entry;
use crate::in_row::lie_within;
use crate::locate::Locator;
use crate::order::{NotInOrder, Watch};
use crate::simd::kernel;

/// Ticks whose samples are guessed from one known place.
const GROUP: usize = 16;
/// Binary places of a rate.
const PLACES: u32 = 32;
/// Ticks of a group lie less than this after the known place, and so much is a rate at most: products fit into 63 bits.
const FAR: i64 = 1 << 31;

/// Goes through the samples of one stream along with the ticks.
#[derive(Debug, Clone)]
pub(crate) struct Nearest<'a> {
    /// In order; may repeat, of which the first counts.
    stamps: &'a [i64],
    /// A sample is taken within this, ns.
    reach: i64,
    /// Samples per ns, with [`PLACES`] binary places; 0 where no guess can be made.
    rate: i64,
    /// Nearest to the tick before.
    at: usize,
    locator: Locator<'a>,
    pub(crate) watch: Watch,
    pub(crate) matched: usize,
}

impl<'a> Nearest<'a> {
    /// Starts before the first of `ticks`, which are in order.
    pub(crate) fn new(ticks: &[i64], stamps: &'a [i64], reach: i64) -> Self {
        let rate = match stamps {
            [first, .., last] if lie_within(1 << 62, ticks, stamps) => {
                let rate = ((stamps.len() as u128) << PLACES) / u128::from(last.abs_diff(*first).max(1));
                if rate < FAR as u128 { rate as i64 } else { 0 }
            }
            _ => 0,
        };
        let at = ticks.first().map_or(0, |&t| stamps.partition_point(|&s| s < t)).min(stamps.len().saturating_sub(1));
        let (locator, watch) = (Locator::new(stamps), Watch::new(stamps.len()));
        Self { stamps, reach, rate, at, locator, watch, matched: 0 }
    }

    /// The offsets of the samples nearest to the ticks, ties: the earlier. Calls follow each other in time.
    pub(crate) fn chunk<E: Entry>(&mut self, ticks: &[i64], offsets: &mut [E]) -> Result<(), NotInOrder> {
        if self.stamps.is_empty() {
            offsets.fill(E::NONE);
            return Ok(());
        }
        chunk_of(self, ticks, offsets)
    }

    /// Looks at the stream as far as a group of ticks will need it about: in one go, so that its samples are in the cache
    /// when they are asked for one here and one there.
    #[inline(always)]
    pub(crate) fn look_ahead(&mut self, ticks: &[i64]) -> Result<(), NotInOrder> {
        let Guess { from, known, rate } = self.guess(ticks);
        let ahead = ticks.last().map_or(0, |last| steps(last.wrapping_sub(known), rate).max(0)) + from;
        self.watch.look(self.stamps, (ahead as usize + 2).min(self.stamps.len()))
    }

    /// Finds the nearest samples of a group of ticks. `found` is told the position of each, in the order of the ticks.
    #[inline(always)]
    pub(crate) fn group<E: Entry>(&mut self, ticks: &[i64], offsets: &mut [E], mut found: impl FnMut(usize, usize)) {
        let guess = self.guess(ticks);
        let reach = self.reach.unsigned_abs();
        let (mut last, mut matched) = (self.at, 0);
        for (i, (&t, offset)) in ticks.iter().zip(offsets).enumerate() {
            let (at, apart) = self.proved(t, &guess).unwrap_or_else(|| self.searched(t));
            let near = apart.unsigned_abs() <= reach;
            *offset = if near { E::of(apart) } else { E::NONE };
            matched += usize::from(near);
            last = at;
            found(i, at);
        }
        self.at = last;
        self.matched += matched;
    }

    /// From where the samples of a group of ticks are guessed.
    #[inline(always)]
    fn guess(&self, ticks: &[i64]) -> Guess {
        let known = self.stamps[self.at];
        let near = ticks.last().is_some_and(|last| last.wrapping_sub(known) < FAR)
            && ticks.first().is_some_and(|first| first.wrapping_sub(known) > -FAR);
        Guess { from: self.at as i64, known, rate: if near { self.rate } else { 0 } }
    }

    /// Position and offset of a guessed sample if it is the nearest: the middle between it and the sample before lies
    /// before the tick, that between it and the sample after does not. Of equal stamps it is the first.
    #[inline(always)]
    fn proved(&self, t: i64, guess: &Guess) -> Option<(usize, i64)> {
        let first = steps(t.wrapping_sub(guess.known), guess.rate).wrapping_add(guess.from);
        // Samples that are lacking make the guess too high by as many: how far off it is in time tells.
        let off = t.wrapping_sub(*self.stamps.get(first as usize)?);
        let at = first.wrapping_add(steps(off, guess.rate)) as usize;
        let [before, here, after] = *self.stamps.get(at.wrapping_sub(1)..)?.first_chunk()?;
        let apart = here.wrapping_sub(t);
        let later = t.wrapping_sub(before).wrapping_sub(apart);
        let earlier = after.wrapping_sub(t).wrapping_add(apart);
        (guess.rate != 0 && later > 0 && earlier >= 0 && before != here).then_some((at, apart))
    }

    #[inline(never)]
    fn searched(&mut self, t: i64) -> (usize, i64) {
        let at = self.locator.nearest(t).unwrap_or(0);
        (at, self.stamps[at].wrapping_sub(t))
    }
}

/// A sample that is known, and how many go by in a time from it on.
struct Guess {
    from: i64,
    known: i64,
    rate: i64,
}

kernel! {
    fn chunk_of<E: Entry>(nearest: &mut Nearest, ticks: &[i64], offsets: &mut [E]) -> Result<(), NotInOrder> {
        for (ticks, offsets) in ticks.chunks(GROUP).zip(offsets.chunks_mut(GROUP)) {
            nearest.look_ahead(ticks)?;
            nearest.group(ticks, offsets, |_, _| {});
        }
        Ok(())
    }
}

/// How many samples go by in `time`, to the nearest whole one.
#[inline(always)]
fn steps(time: i64, rate: i64) -> i64 {
    (time.wrapping_mul(rate).wrapping_add(1 << (PLACES - 1))) >> PLACES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::ABSENT;

    /// The document word by word: all pairs.
    fn slowly(ticks: &[i64], stamps: &[i64], reach: i64) -> Vec<i64> {
        let nearest = |t: i64| stamps.iter().copied().min_by_key(|s| (s.abs_diff(t), *s));
        let within =
            |t: i64| nearest(t).filter(|s| s.abs_diff(t) <= reach as u64).map_or(ABSENT, |s| s.wrapping_sub(t));
        ticks.iter().map(|&t| within(t)).collect()
    }

    fn check(ticks: &[i64], stamps: &[i64], reach: i64) {
        let expected = slowly(ticks, stamps, reach);
        for chunk in [GROUP, 3 * GROUP, 1000] {
            let mut nearest = Nearest::new(ticks, stamps, reach);
            let mut offsets = vec![7_i64; ticks.len()];
            for (ticks, offsets) in ticks.chunks(chunk).zip(offsets.chunks_mut(chunk)) {
                nearest.chunk(ticks, offsets).unwrap();
            }
            assert_eq!(offsets, expected);
            assert_eq!(nearest.matched, offsets.iter().filter(|&&o| o != ABSENT).count());
        }
    }

    #[test]
    fn it_is_the_document_whatever_the_rates() {
        let ticks: Vec<i64> = (0..200).map(|i| i * 16_667 + (i * 7919) % 900).collect();
        for step in [50, 1000, 16_667, 40_000] {
            let last = ticks[199] / step + 3;
            let stamps: Vec<i64> = (-2..last).map(|i| i * step + (i * 104_729) % (step / 3)).collect();
            for reach in [step / 2, step, 5] {
                check(&ticks, &stamps, reach);
                let holes: Vec<i64> = stamps.iter().copied().filter(|s| s / 70_000 % 3 != 1).collect();
                check(&ticks, &holes, reach);
                let twice: Vec<i64> =
                    holes.iter().flat_map(|&s| [s].repeat(1 + usize::from(s % 7 == 0 && s < 90_000))).collect();
                check(&ticks, &twice[twice.len().saturating_sub(60)..], reach);
            }
        }
        check(&[0, 10, 20, 100], &[5, 15, 27], 7);
        check(&[0, 10, 20, 100], &[], 7);
        check(&[3], &[3], 0);
        check(&[], &[3], 0);
    }

    #[test]
    fn ends_of_int64_do_not_overflow() {
        let (low, high) = (i64::MIN + 1, i64::MAX);
        check(&[low, -1], &[low, low + 5, -1], i64::MAX);
        check(&[0, high], &[0, high - 3, high], 4);
        let far: Vec<i64> = (0..60).map(|i| i * (1 << 57)).collect();
        check(&far, &far, 1);
        let near_end: Vec<i64> = (0..60).map(|i| high - 6400 + 100 * i).collect();
        let dense: Vec<i64> = (0..640).map(|i| high - 6400 + 10 * i).collect();
        check(&near_end, &dense, 100);
    }
}
