//! Samples of a stream whose device counts trigger pulses, found by the pulse that they were exposed for
//! (sync.md section 3.6) while they come in.

use std::collections::VecDeque;

/// Most samples that are held for ticks to come: of a stream that runs ahead of its ticks by more, the oldest are matched
/// to none. 17 s at 60 Hz.
pub(crate) const HELD: usize = 1024;

/// The samples that ticks to come may need. Pulse numbers are taken to go up with time, as a counter's do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pulses {
    /// Distinct stamps in order, each with its pulse.
    window: VecDeque<(i64, i64)>,
    /// The pulse of the last final tick, and the sample that was there for it.
    closed: Option<(i64, Option<i64>)>,
    /// The latest sample that is no longer held.
    forgotten: Option<i64>,
}

impl Pulses {
    /// Whether a sample comes too late to be part of anything: it would change a final tick, or its stamp should have
    /// come before that of an earlier pulse.
    pub(crate) fn is_late(&self, time_ns: i64, pulse: i64) -> bool {
        match self.closed {
            Some((last, _)) if pulse < last => true,
            Some((last, matched)) if pulse == last => matched.is_none_or(|matched| time_ns < matched),
            _ => self.forgotten.is_some_and(|forgotten| time_ns <= forgotten),
        }
    }

    /// Takes a sample in. Of equal stamps the first that arrived stays.
    pub(crate) fn push(&mut self, time_ns: i64, pulse: i64) {
        let at = self.window.partition_point(|&(time, _)| time < time_ns);
        if self.window.get(at).is_none_or(|&(time, _)| time != time_ns) {
            self.window.insert(at, (time_ns, pulse));
        }
        if self.window.len() > HELD {
            self.forgotten = self.forgotten.max(self.window.pop_front().map(|(time, _)| time));
        }
    }

    /// The pulse of the sample at this time.
    pub(crate) fn at(&self, time_ns: i64) -> Option<i64> {
        let at = self.window.binary_search_by_key(&time_ns, |&(time, _)| time).ok()?;
        self.window.get(at).map(|&(_, pulse)| pulse)
    }

    /// The earliest sample of this pulse.
    pub(crate) fn time_of(&self, pulse: i64) -> Option<i64> {
        self.window.iter().find(|(_, own)| *own == pulse).map(|&(time, _)| time)
    }

    /// Whether no sample of this pulse will come any more, where none lies below `complete_to` any more: one of it or
    /// of a later pulse is there.
    pub(crate) fn has_passed(&self, pulse: i64, complete_to: i128) -> bool {
        self.window.iter().any(|&(time, own)| own >= pulse && i128::from(time) <= complete_to)
    }

    /// The tick of this pulse is final; `matched` is the sample that was there. None lies below `complete_to` any more.
    pub(crate) fn close(&mut self, pulse: i64, matched: Option<i64>, complete_to: i128) {
        if self.closed.is_some_and(|(last, _)| pulse <= last) {
            return;
        }
        self.closed = Some((pulse, matched));
        // One that another of an equal stamp may follow is held: the first of them counts.
        while let Some(&(time, own)) = self.window.front()
            && own <= pulse
            && i128::from(time) < complete_to
        {
            self.forgotten = self.forgotten.max(Some(time));
            self.window.pop_front();
        }
    }

    /// How many samples are held for ticks to come.
    pub(crate) fn held(&self) -> usize {
        self.window.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_sample_of_a_pulse_is_found_and_a_tick_is_closed_once() {
        let mut pulses = Pulses::default();
        for (time, pulse) in [(30, 3), (10, 1), (20, 1), (20, 2)] {
            pulses.push(time, pulse);
        }
        assert_eq!((pulses.time_of(1), pulses.time_of(2), pulses.at(20)), (Some(10), None, Some(1)));
        assert!(pulses.has_passed(2, 30) && !pulses.has_passed(2, 29));
        pulses.close(1, Some(10), 30);
        assert!(pulses.is_late(25, 0) && pulses.is_late(9, 1) && !pulses.is_late(25, 1));
        assert!(pulses.is_late(20, 3) && !pulses.is_late(21, 3)); // 20 is gone, and was of an earlier pulse
        pulses.close(2, None, 30);
        assert!(pulses.is_late(25, 2) && !pulses.is_late(25, 3));
        pulses.push(25, 2);
        pulses.push(25, 3); // of an equal stamp the first counts, whose tick is final
        assert_eq!(pulses.time_of(3), Some(30));
    }

    #[test]
    fn what_is_held_is_bounded_whatever_comes() {
        let mut pulses = Pulses::default();
        for i in 0..10_000 {
            pulses.push(i * 7919 % 10_007, i64::MAX - i);
        }
        assert_eq!(pulses.held(), HELD);
    }
}
