//! Streams that the consumer interpolates (sync.md section 3.7): what matters is a sample on either side of a tick.

use crate::column::Entry;
use crate::locate::Locator;
use crate::order::{NotInOrder, Watch};

/// Goes through the samples of one stream along with the ticks.
#[derive(Debug, Clone)]
pub(crate) struct Bracket<'a> {
    /// In order; may repeat.
    stamps: &'a [i64],
    max_gap: i64,
    locator: Locator<'a>,
    pub(crate) watch: Watch,
    pub(crate) matched: usize,
}

impl<'a> Bracket<'a> {
    /// Samples on both sides may be `max_gap` apart, ns.
    pub(crate) fn new(stamps: &'a [i64], max_gap: i64) -> Self {
        Self { stamps, max_gap, locator: Locator::new(stamps), watch: Watch::new(stamps.len()), matched: 0 }
    }

    /// 0 where a tick is bracketed, for the stream joins at the tick itself. One sample at the tick is on both sides.
    pub(crate) fn chunk<E: Entry>(&mut self, ticks: &[i64], offsets: &mut [E]) -> Result<(), NotInOrder> {
        let mut last = 0;
        for (&t, offset) in ticks.iter().zip(offsets) {
            let bracketed = self.locator.last_not_above(t).is_some_and(|low| {
                last = low;
                let high = if self.stamps[low] == t { Some(&t) } else { self.stamps.get(low + 1) };
                high.is_some_and(|high| high.abs_diff(self.stamps[low]) <= self.max_gap.unsigned_abs())
            });
            *offset = if bracketed { E::of(0) } else { E::NONE };
            self.matched += usize::from(bracketed);
        }
        self.watch.look(self.stamps, (last + 2).min(self.stamps.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::NONE;

    #[test]
    fn both_sides_must_be_there_and_near() {
        let mut offsets = [7; 4];
        let mut bracket = Bracket::new(&[5, 15, 27], 10);
        bracket.chunk(&[0, 10], &mut offsets[..2]).unwrap();
        bracket.chunk(&[15, 20], &mut offsets[2..]).unwrap();
        assert_eq!((offsets, bracket.matched), ([NONE, 0, 0, NONE], 2));
        let mut bracket = Bracket::new(&[5, 5, 4], 10);
        assert_eq!(
            bracket.chunk(&[5], &mut offsets[..1]).and_then(|()| bracket.watch.look_wide(&[5, 5, 4])),
            Err(NotInOrder)
        );
    }
}
