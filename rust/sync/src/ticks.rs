//! Ticks: the reference's samples or edges, numbered, and which of them are judged (sync.md sections 3.2 and 3.3).

use std::ops::Range;

use crate::column::Column;
use crate::order::ABSENT;
use crate::quantile::quantile;
use crate::simd::kernel;

/// Ticks that are passed over at once where no number is skipped.
const BLOCK: usize = 32;

/// The median step between distinct stamps, ns; 0 where there is none. Stamps are in order; repeats count once.
pub fn median_step(times: &[i64]) -> i64 {
    let all = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let steps: Vec<i64> = all.filter(|&step| step != 0).collect();
    quantile(&steps, (1, 2)).unwrap_or(0)
}

kernel! {
    /// The number of each present tick: the first is 0, each step advances by `max(1, round(step / period))`, halves up.
    ///
    /// `times`: distinct, in order, at most 2^63 - 1 ns apart, so no number is beyond int64. A period of 0 (unknown, which
    /// is so of fewer than two stamps) counts like 1.
    pub fn numbers(times: &[i64], period: i64) -> Vec<i64> {
        let period = period.max(1);
        // A step below one and a half periods is one tick: no division for nearly every step.
        let single = period.saturating_add(period / 2);
        let mut out = Vec::with_capacity(times.len());
        out.extend(times.first().map(|_| 0));
        let mut number = 0_i64;
        // Neighbours share a stamp, so blocks overlap by one.
        for block in (0..times.len()).step_by(BLOCK).map(|at| &times[at..(at + BLOCK + 1).min(times.len())]) {
            let longer = |pair: &[i64]| pair[1].saturating_sub(pair[0]) >= single;
            if !block.windows(2).fold(false, |any, pair| any | longer(pair)) {
                out.extend((1..block.len() as i64).map(|step| number.saturating_add(step)));
                number = number.saturating_add(block.len() as i64 - 1);
                continue;
            }
            out.extend(block.windows(2).map(|pair| {
                let step = pair[1].saturating_sub(pair[0]);
                let (whole, rest) = (step / period, step % period);
                let ticks = (whole + i64::from(rest >= period - rest)).max(1);
                number = number.saturating_add(ticks);
                number
            }));
        }
        out
    }
}

/// First and last sample of one required stream, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presence {
    /// The earliest stamp.
    pub first: i64,
    /// The latest stamp.
    pub last: i64,
    /// Sampled or interpolated: there is no half-period allowance.
    pub free_running: bool,
}

/// The stretch of time that is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Latest first sample of the required streams, at most `trim_max` after the earliest first.
    pub start: i64,
    /// Earliest last sample, at most `trim_max` before the latest last.
    pub end: i64,
    free_start: i64,
    free_end: i64,
    period: i64,
}

impl Span {
    /// The span of the required streams that have samples; None where there is none.
    pub fn of(streams: &[Presence], period: i64, trim_max: i64) -> Option<Self> {
        let earliest = streams.iter().map(|s| s.first).min()?;
        let latest = streams.iter().map(|s| s.last).max()?;
        let start_of = |free_only: bool| {
            let firsts = streams.iter().filter(|s| s.free_running || !free_only).map(|s| s.first);
            firsts.max().map_or(i64::MIN, |first| first.min(earliest.saturating_add(trim_max)))
        };
        let end_of = |free_only: bool| {
            let lasts = streams.iter().filter(|s| s.free_running || !free_only).map(|s| s.last);
            lasts.min().map_or(i64::MAX, |last| last.max(latest.saturating_sub(trim_max)))
        };
        let (start, end) = (start_of(false), end_of(false));
        Some(Self { start, end, free_start: start_of(true), free_end: end_of(true), period })
    }

    /// Whether `t` lies before the start: by half a period or more, or before a free-running stream's first sample.
    pub fn is_before(&self, t: i64) -> bool {
        2 * (i128::from(self.start) - i128::from(t)) >= i128::from(self.period) || t < self.free_start
    }

    /// Whether `t` lies after the end, likewise.
    pub fn is_after(&self, t: i64) -> bool {
        2 * (i128::from(t) - i128::from(self.end)) >= i128::from(self.period) || t > self.free_end
    }

    /// The positions of those of `times` (in order) that are inside. Before the start takes precedence.
    pub fn positions(&self, times: &[i64]) -> Range<usize> {
        let start = times.partition_point(|&t| self.is_before(t));
        let end = times.partition_point(|&t| !self.is_after(t));
        start..end.max(start)
    }
}

/// What of the expected ticks has no match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missing {
    /// How many ticks were expected.
    pub expected: i64,
    /// How many of them are missing.
    pub missing: i64,
    /// The longest run of consecutive expected ticks that are missing.
    pub longest_run: i64,
    /// The first tick of the earliest run of that length.
    pub longest_run_first: Option<i64>,
    /// The first missing tick.
    pub first: Option<i64>,
    /// The last missing tick.
    pub last: Option<i64>,
}

impl Missing {
    /// Counts a run of `length` missing ticks from `first` to `last`.
    fn add_run(&mut self, length: i64, first: i64, last: i64) {
        self.missing = self.missing.saturating_add(length);
        self.first.get_or_insert(first);
        self.last = Some(last);
        if length > self.longest_run {
            self.longest_run = length;
            self.longest_run_first = Some(first);
        }
    }

    /// The reference's own row: absent numbers between the first and the last present tick of the span.
    pub fn of_reference(numbers: &[i64]) -> Self {
        let mut row = Self::default();
        if let (Some(first), Some(last)) = (numbers.first(), numbers.last()) {
            row.expected = (last - first).saturating_add(1);
            // Neighbours share a number, so blocks overlap by one. Numbers rise, so the ends of a block tell whether any skips.
            let blocks = (0..numbers.len()).step_by(BLOCK).map(|at| &numbers[at..(at + BLOCK + 1).min(numbers.len())]);
            for block in blocks.filter(|block| block[block.len() - 1] - block[0] >= block.len() as i64) {
                for pair in block.windows(2).filter(|pair| pair[1] - pair[0] > 1) {
                    row.add_run(pair[1] - pair[0] - 1, pair[0] + 1, pair[1] - 1);
                }
            }
        }
        row
    }

    /// Another stream's row: the present ticks of the span at its phase. `offsets` has none where nothing matched;
    /// `matched` says how many did.
    pub(crate) fn of_stream(numbers: &[i64], offsets: &Column, decimate: i64, phase: i64, matched: usize) -> Self {
        let mut row = Self::default();
        if decimate == 1 {
            row.expected = numbers.len() as i64;
            if matched < numbers.len() {
                offsets.runs_of_none(|run| {
                    row.add_run(run.len() as i64, numbers[run.start], numbers[run.end - 1]);
                });
            }
            return row;
        }
        let mut run: Option<(i64, i64, i64)> = None;
        for (at, &number) in numbers.iter().enumerate() {
            if number % decimate != phase {
                continue;
            }
            row.expected += 1;
            if offsets.at(at) == ABSENT {
                let (length, first, _) = run.unwrap_or((0, number, number));
                run = Some((length + 1, first, number));
            } else if let Some((length, first, last)) = run.take() {
                row.add_run(length, first, last);
            }
        }
        if let Some((length, first, last)) = run {
            row.add_run(length, first, last);
        }
        row
    }
}

/// The phase of most matched ticks, ties: the lower; 0 where nothing matched (sync.md section 3.5).
pub(crate) fn phase_of_most(numbers: &[i64], offsets: &Column, decimate: i64) -> i64 {
    let matched = numbers.iter().enumerate().filter(|(at, _)| offsets.at(*at) != ABSENT);
    let mut phases: Vec<i64> = matched.map(|(_, number)| number % decimate.max(1)).collect();
    phases.sort_unstable();
    let (mut best, mut most) = (0, 0);
    for same in phases.chunk_by(|a, b| a == b) {
        if same.len() > most {
            (best, most) = (same[0], same.len());
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_up_and_every_step_advances() {
        assert_eq!(numbers(&[0, 10, 25, 39, 40], 10), [0, 1, 3, 4, 5]);
        assert_eq!(numbers(&[0, 15], 10), [0, 2]);
        assert_eq!(numbers(&[0, 14], 10), [0, 1]);
        // an odd period: 1.5 T = 16.5
        assert_eq!(numbers(&[0, 16, 33], 11), [0, 1, 3]);
        assert_eq!(numbers(&[5], 0), [0]);
        assert_eq!(numbers(&[], 10), [0_i64; 0]);
        assert_eq!(numbers(&[-1, i64::MAX - 1], 1), [0, i64::MAX]);
        assert_eq!(numbers(&[0, i64::MAX], i64::MAX), [0, 1]);
    }

    #[test]
    fn the_median_step_is_one_that_occurred() {
        assert_eq!(median_step(&[0, 10, 21, 33, 46]), 11);
        assert_eq!(median_step(&[7]), 0);
    }

    fn presence(first: i64, last: i64, free_running: bool) -> Presence {
        Presence { first, last, free_running }
    }

    #[test]
    fn half_a_period_is_allowed_to_triggered_streams_only() {
        let span = Span::of(&[presence(0, 100, false), presence(14, 96, false)], 10, 1000).unwrap();
        assert_eq!((span.start, span.end), (14, 96));
        assert_eq!(span.positions(&[0, 9, 10, 90, 100, 101]), 2..5);
        let span = Span::of(&[presence(0, 100, false), presence(14, 96, true)], 10, 1000).unwrap();
        assert_eq!(span.positions(&[0, 13, 14, 96, 97]), 2..4);
    }

    #[test]
    fn trimming_is_bounded() {
        let span = Span::of(&[presence(0, 1000, false), presence(500, 600, true)], 10, 100).unwrap();
        assert_eq!((span.start, span.end, span.free_start, span.free_end), (100, 900, 100, 900));
        assert_eq!(Span::of(&[], 10, 100), None);
        let far = Span::of(&[presence(i64::MAX - 5, i64::MAX, false)], 10, i64::MAX).unwrap();
        assert_eq!((far.start, far.end), (i64::MAX - 5, i64::MAX));
    }

    #[test]
    fn streams_that_do_not_overlap_trim_everything() {
        let span = Span::of(&[presence(0, 20, false), presence(50, 70, false)], 10, 1000).unwrap();
        assert_eq!(span.positions(&[0, 10, 20, 30, 50]), 4..4);
    }

    #[test]
    fn runs_count_expected_ticks() {
        let row = Missing::of_reference(&[3, 4, 7, 9]);
        assert_eq!((row.expected, row.missing, row.longest_run), (7, 3, 2));
        assert_eq!((row.longest_run_first, row.first, row.last), (Some(5), Some(5), Some(8)));
        let row = Missing::of_reference(&(0..200).filter(|i| ![1, 32, 33, 64, 198].contains(i)).collect::<Vec<_>>());
        assert_eq!((row.expected, row.missing, row.longest_run, row.longest_run_first), (200, 5, 2, Some(32)));
        assert_eq!((row.first, row.last), (Some(1), Some(198)));
        // Tick 3 is absent: it neither counts nor breaks the run of 2 and 4.
        let of_stream = |numbers: &[i64], offsets: &[i64], decimate| {
            let matched = offsets.iter().filter(|&&offset| offset != ABSENT).count();
            let wide = Missing::of_stream(numbers, &Column::Wide(offsets.into()), decimate, 0, matched);
            assert_eq!(wide, Missing::of_stream(numbers, &Column::of(offsets.into()), decimate, 0, matched));
            wide
        };
        let row = of_stream(&[0, 1, 2, 4, 5], &[0, 0, ABSENT, ABSENT, 0], 1);
        assert_eq!((row.expected, row.missing, row.longest_run, row.longest_run_first), (5, 2, 2, Some(2)));
        let row = of_stream(&[0, 1, 2, 3, 4], &[ABSENT, 0, ABSENT, 0, ABSENT], 2);
        assert_eq!((row.expected, row.missing, row.longest_run), (3, 3, 3));
    }

    #[test]
    fn the_phase_is_that_of_most_matches() {
        assert_eq!(phase_of_most(&[0, 1, 2, 3], &Column::Wide(vec![ABSENT, 0, ABSENT, 0]), 2), 1);
        assert_eq!(phase_of_most(&[0, 1, 2, 3], &Column::Wide(vec![0, 0, 0, 0]), 2), 0);
        assert_eq!(phase_of_most(&[0, 1], &Column::Wide(vec![ABSENT, ABSENT]), 2), 0);
    }
}
