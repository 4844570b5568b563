//! One stream as the live monitor sees it: what was pushed, the part of it that ticks may still need, and how far it
//! is known to be complete.

use std::collections::VecDeque;

use crate::order::ABSENT;
use crate::pulses::Pulses;

/// Which samples a tick may still be waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Nearest sample less than half a period away (sync.md section 3.4).
    HalfPeriod,
    /// Nearest sample within so many ns (3.7, sampled).
    Within(i64),
    /// Samples on both sides, not further apart than so many ns (3.7, interpolated).
    Gap(i64),
}

/// The samples of one stream.
#[derive(Debug, Clone)]
pub(crate) struct Track {
    pub(crate) reach: Reach,
    /// How far below the highest stamp a later one may lie, as the driver states.
    reorder_ns: i64,
    /// Every sample that counts, in order of receipt, where they are kept.
    pub(crate) received: Option<Received>,
    /// Distinct stamps in order that a tick to come may need.
    window: VecDeque<i64>,
    /// Those with a trigger index, as long as every sample has one.
    pub(crate) pulses: Option<Pulses>,
    highest: Option<i64>,
    /// Below this, ticks are final.
    closed_to: i128,
}

/// Samples in order of receipt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Received {
    pub(crate) times: Vec<i64>,
    /// Their trigger indices, where every one has it.
    pub(crate) index: Option<Vec<i64>>,
}

impl Track {
    pub(crate) fn new(reach: Reach, reorder_ns: i64) -> Self {
        let (received, window) = (None, VecDeque::new());
        Self { reach, reorder_ns, received, window, pulses: None, highest: None, closed_to: i128::MIN }
    }

    /// Every sample is to have a trigger index.
    pub(crate) fn indexed(mut self) -> Self {
        self.pulses = Some(Pulses::default());
        self
    }

    /// Every sample is kept from now on.
    pub(crate) fn kept(mut self) -> Self {
        self.received = Some(Received { times: Vec::new(), index: self.pulses.as_ref().map(|_| Vec::new()) });
        self
    }

    /// Takes a sample in; false if it comes too late to be part of anything. `by_index`: it is matched by its index.
    #[inline]
    pub(crate) fn push(&mut self, time_ns: i64, index: i64, by_index: bool) -> bool {
        let late = match &self.pulses {
            Some(pulses) if by_index && index != ABSENT => pulses.is_late(time_ns, index),
            _ => i128::from(time_ns) < self.closed_to,
        };
        if late {
            return false;
        }
        if index == ABSENT {
            self.forget_index();
        }
        if let Some(received) = &mut self.received {
            received.times.push(time_ns);
            received.index.iter_mut().for_each(|column| column.push(index));
        }
        self.highest = self.highest.max(Some(time_ns));
        insert(&mut self.window, time_ns);
        self.pulses.iter_mut().for_each(|pulses| pulses.push(time_ns, index));
        true
    }

    /// The indices say nothing from now on, nor at close.
    pub(crate) fn forget_index(&mut self) {
        self.pulses = None;
        self.received.iter_mut().for_each(|received| received.index = None);
    }

    /// No later sample lies below this, if the stream keeps to its reorder bound or to the latency behind `now_ns`.
    pub(crate) fn complete_to(&self, now_ns: Option<i128>, latency_ns: i64) -> i128 {
        let passed = self.highest.map(|highest| i128::from(highest) - i128::from(self.reorder_ns));
        passed.max(now_ns.map(|now| now - i128::from(latency_ns))).unwrap_or(i128::MIN)
    }

    /// Once the stream is complete to this, no later sample changes what tick `t` takes, half a period apart.
    pub(crate) fn decided_at(&self, t: i64) -> i128 {
        let at = i128::from(t);
        let (before, after) = self.around(t);
        let furthest = match (self.reach, before) {
            (Reach::HalfPeriod, _) => return i128::MIN,
            (Reach::Within(most), None) => at + i128::from(most),
            (Reach::Within(most), Some(before)) => at + i128::from(most).min(at - i128::from(before)),
            (Reach::Gap(_), None) => at,
            (Reach::Gap(_), Some(before)) if before == t => at,
            (Reach::Gap(most), Some(before)) => i128::from(before) + i128::from(most),
        };
        after.map_or(i128::MAX, i128::from).min(furthest + 1)
    }

    /// The sample that tick `t` takes on its own account, as its offset. `period_ns` is T.
    pub(crate) fn offset_at(&self, t: i64, period_ns: i64) -> Option<i64> {
        let (before, after) = self.around(t);
        let nearest = match (before, after) {
            (Some(b), Some(a)) => Some(if a.abs_diff(t) < t.abs_diff(b) { a } else { b }),
            (before, after) => before.or(after),
        };
        match self.reach {
            Reach::HalfPeriod => nearest.filter(|n| 2 * u128::from(n.abs_diff(t)) < period_ns.unsigned_abs().into()),
            Reach::Within(most) => nearest.filter(|n| n.abs_diff(t) <= most.unsigned_abs()),
            Reach::Gap(most) => {
                let narrow = |(b, a): (i64, i64)| a.abs_diff(b) <= most.unsigned_abs();
                (before == Some(t) || before.zip(after).is_some_and(narrow)).then_some(t)
            }
        }
        .map(|sample| sample.wrapping_sub(t))
    }

    /// Refuses what lies below `to` from now on: it would change final ticks.
    pub(crate) fn close_to(&mut self, to: i128) {
        self.closed_to = self.closed_to.max(to);
    }

    /// Forgets the samples that no tick at `t` or later can need.
    pub(crate) fn forget_before(&mut self, t: i128, period_ns: i64) {
        let needed = |window: &VecDeque<i64>| match self.reach {
            // The first one and, for free-running streams, the one before it.
            Reach::HalfPeriod => window.front().is_none_or(|&first| 2 * (t - i128::from(first)) < period_ns.into()),
            _ => window.get(1).is_none_or(|&second| i128::from(second) > t),
        };
        while !needed(&self.window) {
            self.window.pop_front();
        }
    }

    /// How many samples are held for ticks to come.
    pub(crate) fn held(&self) -> usize {
        self.window.len() + self.pulses.as_ref().map_or(0, Pulses::held)
    }

    /// The last sample not after `t` and the first one after it.
    fn around(&self, t: i64) -> (Option<i64>, Option<i64>) {
        let after = self.window.partition_point(|&sample| sample <= t);
        let before = after.checked_sub(1).and_then(|before| self.window.get(before));
        (before.copied(), self.window.get(after).copied())
    }
}

/// Inserts into distinct values in order; new ones nearly always belong at the end.
#[inline]
pub(crate) fn insert(values: &mut VecDeque<i64>, value: i64) {
    if values.back().is_none_or(|&last| last < value) {
        values.push_back(value);
    } else if let Err(at) = values.binary_search(&value) {
        values.insert(at, value);
    }
}
