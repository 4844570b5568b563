//! One stream's row: its samples matched to the ticks, counted, and summed up.

use std::ops::Range;

use crate::bracket::Bracket;
use crate::by_index::by_index;
use crate::by_time::{ByTime, Taken};
use crate::column::{Column, Entry, NARROW};
use crate::measure::{Kind, Plan, Stream, StreamFigures, complete_index};
use crate::nearest::Nearest;
use crate::order::{ABSENT, NotInOrder, Ordered};
use crate::quantile::{summary, summary_of_distances};
use crate::tally::{Ranked, STRETCH, Tally};
use crate::ticks::{self, Missing};

/// How a stream is matched.
enum Way<'a> {
    /// It is the reference: every tick is its own.
    Itself,
    ByTime(ByTime<'a>),
    Nearest(Nearest<'a>),
    Bracket(Bracket<'a>),
    /// All at once, before.
    Done,
}

impl Way<'_> {
    /// Appends the offsets to the ticks of `range`.
    fn chunk<E: Entry>(&mut self, plan: &Plan, range: Range<usize>, all: &mut Vec<E>) -> Result<(), NotInOrder> {
        if matches!(self, Self::Itself | Self::Done) {
            return Ok(());
        }
        let (ticks, known) = (&plan.present[range.clone()], all.len());
        all.resize(known + ticks.len(), E::NONE);
        match self {
            Self::ByTime(way) => way.chunk(&plan.ticks, range, &mut all[known..]),
            Self::Nearest(way) => way.chunk(ticks, &mut all[known..]),
            Self::Bracket(way) => way.chunk(ticks, &mut all[known..]),
            Self::Itself | Self::Done => Ok(()),
        }
    }
}

/// One stream while it is measured.
pub(crate) struct Row<'a> {
    stream: &'a Stream<'a>,
    times: &'a [i64],
    backwards: usize,
    /// Repeats that are left out of `times` already.
    left_out: usize,
    inside: Range<usize>,
    way: Way<'a>,
    taken: Taken,
    offsets: Column,
    tally: Option<Tally>,
}

impl<'a> Row<'a> {
    /// Nothing matched yet.
    pub(crate) fn new(stream: &'a Stream<'a>, ordered: &'a Ordered, plan: &Plan, is_reference: bool) -> Self {
        let times = ordered.times.as_ref();
        let judged = &plan.present[plan.judged.clone()];
        let inside = plan.span.map_or(0..0, |span| span.positions(times));
        let nominal = || stream.period.unwrap_or_else(|| ticks::median_step(times));
        let column = |reach: i64| {
            if reach < NARROW {
                Column::Narrow(Vec::with_capacity(judged.len()))
            } else {
                Column::Wide(Vec::with_capacity(judged.len()))
            }
        };
        let mut taken = Taken::default();
        let (way, offsets, reach) = match stream.kind {
            _ if is_reference => (Way::Itself, Column::Zero(judged.len()), None),
            Kind::Event => (Way::Done, Column::Wide(vec![ABSENT; judged.len()]), None),
            Kind::Triggered => match (complete_index(stream, ordered), plan.pulses) {
                (Some(index), Some(pulses)) => {
                    let all;
                    (all, taken) = by_index(plan.present, pulses, plan.judged.clone(), times, index, &inside);
                    (Way::Done, Column::of(all), None)
                }
                _ => {
                    let by_time = ByTime::new(times, inside.clone(), &plan.ticks);
                    (Way::ByTime(by_time), column(plan.period / 2), Some(plan.period / 2))
                }
            },
            Kind::Sampled => {
                let reach = nominal();
                (Way::Nearest(Nearest::new(judged, times, reach)), column(reach), Some(reach))
            }
            Kind::Interpolated => {
                let max_gap = stream.max_gap.unwrap_or_else(|| nominal().saturating_mul(2));
                (Way::Bracket(Bracket::new(times, max_gap)), column(0), None)
            }
        };
        let tally = reach.filter(|_| matches!(offsets, Column::Narrow(_))).map(Tally::new);
        let (backwards, left_out) = (ordered.backwards, ordered.duplicate);
        Self { stream, times, backwards, left_out, inside, way, taken, offsets, tally }
    }

    /// Matches the ticks of `range`, after those of the call before.
    pub(crate) fn chunk(&mut self, plan: &Plan, range: Range<usize>) -> Result<(), NotInOrder> {
        match &mut self.offsets {
            Column::Zero(_) => {}
            Column::Narrow(all) => self.way.chunk(plan, range, all)?,
            Column::Wide(all) => self.way.chunk(plan, range, all)?,
        }
        self.count(STRETCH);
        Ok(())
    }

    /// Counts the offsets that were not counted yet, if there are as many as `least`.
    fn count(&mut self, least: usize) {
        if let (Some(tally), Column::Narrow(offsets)) = (&mut self.tally, &self.offsets) {
            tally.add_from(offsets, least);
        }
    }

    /// Counts what is left and looks at the rest of the stream, after the last tick.
    pub(crate) fn end(&mut self) -> Result<(), NotInOrder> {
        self.count(1);
        let watch = match &mut self.way {
            Way::ByTime(way) => way.watch(),
            Way::Nearest(way) => &mut way.watch,
            Way::Bracket(way) => &mut way.watch,
            Way::Itself | Way::Done => return Ok(()),
        };
        watch.look_wide(self.times)
    }

    /// Its offsets to the ticks so far.
    pub(crate) fn offsets(&self) -> &Column {
        &self.offsets
    }

    /// Its offsets to the ticks.
    pub(crate) fn into_column(self) -> Column {
        self.offsets
    }

    /// What there is to say of it.
    pub(crate) fn figures(&self, plan: &Plan) -> StreamFigures {
        let numbers = &plan.numbers[plan.judged.clone()];
        let (taken, repeats): (Taken, &[usize]) = match &self.way {
            Way::Itself => (Taken { matched: numbers.len(), ..Taken::default() }, &[]),
            Way::ByTime(way) => (way.taken, way.repeats()),
            Way::Nearest(way) => (Taken { matched: way.matched, ..Taken::default() }, way.watch.repeats()),
            Way::Bracket(way) => (Taken { matched: way.matched, ..Taken::default() }, way.watch.repeats()),
            Way::Done => (self.taken, &[]),
        };
        let mut row =
            StreamFigures { matched: taken.matched, duplicate: self.left_out + repeats.len(), ..self.untouched() };
        match (self.stream.kind, &self.way) {
            (Kind::Event, _) => return row,
            (_, Way::Itself) => {
                row.missing = Missing::of_reference(numbers);
                row.trimmed = plan.present.len() - row.matched;
            }
            _ => {
                if row.decimate > 1 {
                    let most = || ticks::phase_of_most(numbers, &self.offsets, row.decimate);
                    row.phase = self.stream.phase.unwrap_or_else(most);
                }
                row.missing = Missing::of_stream(numbers, &self.offsets, row.decimate, row.phase, row.matched);
            }
        }
        if self.stream.kind == Kind::Triggered && !matches!(self.way, Way::Itself) {
            let repeated = |position: usize| repeats.partition_point(|&at| at < position);
            let inside = self.inside.len() - (repeated(self.inside.end) - repeated(self.inside.start));
            row.extra = inside - taken.inside;
            row.trimmed = self.times.len() - repeats.len() - row.matched - row.extra;
        }
        self.offset_statistics(&mut row);
        row
    }

    /// Order statistics of the offsets that are there.
    fn offset_statistics(&self, row: &mut StreamFigures) {
        let (median, p99) = ((1, 2), (99, 100));
        match (&self.offsets, &self.tally) {
            _ if self.stream.kind == Kind::Interpolated => {}
            (Column::Zero(0), _) => {}
            (Column::Zero(_), _) => {
                (row.offset_median, row.offset_p99_abs, row.offset_max_abs) = (Some(0), Some(0), Some(0));
            }
            (Column::Narrow(values), Some(tally)) => {
                let ranked = tally.ranked(values, [Ranked::Value(median), Ranked::Distance(p99)]);
                row.offset_median = ranked.map(|[median, _]| median);
                row.offset_p99_abs = ranked.map(|[_, p99]| p99);
                row.offset_max_abs = tally.most();
            }
            (values, _) => {
                let values = values.to_vec();
                let distances = summary_of_distances(&values, [p99]);
                row.offset_median = summary(&values, [median]).map(|offsets| offsets.ranked[0]);
                row.offset_p99_abs = distances.map(|distances| distances.ranked[0]);
                row.offset_max_abs = distances.map(|distances| distances.most);
            }
        }
    }

    /// The row of a stream with nothing matched.
    fn untouched(&self) -> StreamFigures {
        let triggered = self.stream.kind == Kind::Triggered;
        StreamFigures {
            kind: self.stream.kind,
            samples: self.stream.times.len(),
            missing: Missing::default(),
            matched: 0,
            extra: 0,
            trimmed: 0,
            duplicate: 0,
            backwards: self.backwards,
            decimate: if triggered { self.stream.decimate } else { 1 },
            phase: 0,
            first: self.times.first().copied(),
            last: self.times.last().copied(),
            uncertainty: self.stream.uncertainty,
            offset_median: None,
            offset_p99_abs: None,
            offset_max_abs: None,
        }
    }
}
