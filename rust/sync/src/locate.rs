//! Finding places in a long list of stamps, for times that mostly go up.
//!
//! A guess by the mean rate lands within a few samples of the place, whatever the rates; the rest is a short walk. The
//! guess decides only how long the search takes, never what it finds.

/// How many steps are walked from the guess before a binary search takes over.
const WALK: usize = 16;

/// Finds places in `stamps`, which are in order (repeats allowed) and at most 2^63 - 1 ns apart.
#[derive(Debug, Clone)]
pub struct Locator<'a> {
    stamps: &'a [i64],
    /// Samples per ns, with 32 binary places.
    rate: i64,
    at: usize,
}

impl<'a> Locator<'a> {
    /// A locator that knows nothing yet.
    pub fn new(stamps: &'a [i64]) -> Self {
        let rate = match stamps {
            [first, .., last] => ((stamps.len() as u128) << 32) / u128::from(last.abs_diff(*first).max(1)),
            _ => 0,
        };
        Self { stamps, rate: rate.min(i64::MAX as u128) as i64, at: 0 }
    }

    /// Position of the last stamp that is not above `t`; None where all are above.
    #[inline]
    pub fn last_not_above(&mut self, t: i64) -> Option<usize> {
        let here = *self.stamps.get(self.at)?;
        let jump = (i128::from(t.wrapping_sub(here)) * i128::from(self.rate)) >> 32;
        let guess = (self.at as i128 + jump).clamp(0, self.stamps.len() as i128 - 1) as usize;
        let place = walk(self.stamps, guess, t).unwrap_or_else(|| self.stamps.partition_point(|&s| s <= t));
        self.at = place.saturating_sub(1);
        place.checked_sub(1)
    }

    /// Position of the nearest stamp; ties: the earlier, of equal stamps the first. None of nothing.
    #[inline]
    pub fn nearest(&mut self, t: i64) -> Option<usize> {
        let last = self.stamps.len().checked_sub(1)?;
        let low = self.last_not_above(t).unwrap_or(0);
        // Which side is nearer is as good as random, so it is computed, not branched on.
        let later_is_nearer = self.stamps[(low + 1).min(last)].abs_diff(t) < self.stamps[low].abs_diff(t);
        let mut near = low + usize::from(later_is_nearer);
        while near > 0 && self.stamps[near - 1] == self.stamps[near] {
            near -= 1;
        }
        Some(near)
    }
}

/// How many stamps are not above `t`, looked for around `guess`; None where that is far from it.
#[inline]
fn walk(stamps: &[i64], guess: usize, t: i64) -> Option<usize> {
    if stamps[guess] <= t {
        let ahead = &stamps[guess + 1..];
        match ahead.iter().take(WALK).position(|&s| s > t) {
            Some(steps) => Some(guess + 1 + steps),
            None if ahead.len() <= WALK => Some(stamps.len()),
            None => None,
        }
    } else {
        match stamps[..guess].iter().rev().take(WALK).position(|&s| s <= t) {
            Some(steps) => Some(guess - steps),
            None if guess <= WALK => Some(0),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_a_binary_search() {
        let even: Vec<i64> = (0..200).map(|i| i * 7).collect();
        let uneven: Vec<i64> = (0..200).map(|i| i * i * i - 1000).collect();
        let bursts: Vec<i64> = (0..200).map(|i| (i / 50) * 1_000_000 + (i % 3)).collect::<Vec<_>>();
        let mut bursts = bursts;
        bursts.sort_unstable();
        for stamps in [even, uneven, bursts, vec![4], vec![4, 4], vec![i64::MIN / 2, i64::MAX / 2]] {
            let mut locator = Locator::new(&stamps);
            for &s in &stamps {
                for t in [s.saturating_sub(1), s, s + 1, s / 2, -s] {
                    let expected = stamps.partition_point(|&x| x <= t).checked_sub(1);
                    assert_eq!(locator.last_not_above(t), expected, "{t} in {stamps:?}");
                    let nearest = (0..stamps.len()).min_by_key(|&j| (stamps[j].abs_diff(t), stamps[j], j));
                    assert_eq!(locator.nearest(t), nearest);
                }
            }
        }
        assert_eq!(Locator::new(&[]).nearest(3), None);
    }
}
