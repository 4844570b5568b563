//! Residuals of the ticks, plain and guarded, their order statistics and the worst pair (sync.md section 4).

use std::ops::Range;

use crate::column::{Column, NONE};
use crate::order::ABSENT;
use crate::quantile::{Summary, summary};
use crate::reach::{LANES, Reach, Worst};
use crate::simd::kernel;
use crate::tally::{Ranked, STRETCH, Tally};

/// One stream's part in the residuals.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// The stream.
    pub name: &'a str,
    /// Offsets to the ticks in ns, none where it has no match.
    pub offsets: &'a Column,
    /// Triggered or sampled: a member of `S_k`. Others (interpolated) join the guarded residual only.
    pub in_plain: bool,
    /// The uncertainty `u` of its stamps, ns, from 0 to 2^60.
    pub uncertainty: i64,
    /// The clock map it shares with the streams that name the same one.
    pub clock: Option<&'a str>,
}

/// Which of the two residuals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residual {
    /// `R`: the worst disagreement.
    Plain,
    /// `G`: with uncertainties, and interpolated streams at the tick.
    Guarded,
}

/// Order statistics of one residual over the ticks where it is defined; None where it is nowhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Residuals {
    /// Ticks where it is defined.
    pub ticks: usize,
    /// Rank 1/2, ns.
    pub median: Option<i64>,
    /// Rank 99/100, ns.
    pub p99: Option<i64>,
    /// Rank 999/1000, ns.
    pub p999: Option<i64>,
    /// The largest, ns.
    pub max: Option<i64>,
    /// Ticks where it is greater than the ceiling.
    pub over_ceiling: usize,
    /// The first of them.
    pub first_over_tick: Option<i64>,
    /// The last of them.
    pub last_over_tick: Option<i64>,
    /// The earliest tick of the largest.
    pub worst_tick: Option<i64>,
    /// The stream at the minimum there, then the one at the maximum.
    pub worst_pair: Option<(String, String)>,
}

/// One residual of all ticks, made chunk by chunk while the offsets are in the cache.
#[derive(Debug, Clone)]
pub struct Series {
    which: Residual,
    values: Column,
    tally: Tally,
}

impl Series {
    /// Of `ticks` ticks that are about `period` ns apart.
    pub fn new(which: Residual, ticks: usize, period: i64) -> Self {
        let values = Column::Narrow(Vec::with_capacity(ticks));
        Self { which, values, tally: Tally::new(period.saturating_mul(2)) }
    }

    /// Goes on with the ticks of `range`, of which every member has its offset.
    ///
    /// `R` is max - min over the members of `S_k`; `G` the largest `|t_i - t_j| + u_i + u_j`, without the u of two
    /// streams of one clock map, at most 2^63 - 1. Both are absent where there are fewer than two members.
    pub fn chunk(&mut self, members: &[Member], range: Range<usize>) {
        if self.chunk_in_32_bits(members, &range) {
            return;
        }
        let pairs = range.map(|tick| worst_pair(members, tick, self.which));
        let slow: Vec<i64> = pairs.map(|pair| pair.map_or(ABSENT, |(value, _)| value)).collect();
        self.values.extend_wide(&slow);
    }

    /// Says whether it could be done.
    fn chunk_in_32_bits(&mut self, members: &[Member], range: &Range<usize>) -> bool {
        let Column::Narrow(values) = &mut self.values else { return false };
        let known = values.len();
        values.resize(known + range.len(), NONE);
        let fits = match self.which {
            Residual::Plain => plain(members, range, &mut values[known..]),
            Residual::Guarded => guarded(members, range, &mut values[known..]),
        };
        if fits {
            self.tally.add_from(values, STRETCH);
        } else {
            values.truncate(known);
        }
        fits
    }

    /// Nothing comes after the ticks that were.
    pub fn end(&mut self) {
        if let Column::Narrow(values) = &self.values {
            self.tally.add_from(values, 1);
        }
    }

    /// Order statistics; `numbers` are the tick numbers.
    pub fn summarise(&self, numbers: &[i64], ceiling: i64, members: &[Member]) -> Residuals {
        let fractions = [(1, 2), (99, 100), (999, 1000)];
        let statistics = match &self.values {
            Column::Narrow(values) if self.tally.all() == values.len() => {
                let ranked = self.tally.ranked(values, fractions.map(Ranked::Distance));
                ranked.zip(self.tally.most()).map(|(ranked, most)| Summary { count: self.tally.count(), most, ranked })
            }
            values => summary(&values.to_vec(), fractions),
        };
        let Some(Summary { count, most: max, ranked: [median, p99, p999] }) = statistics else {
            return Residuals::default();
        };
        let mut out = Residuals {
            ticks: count,
            median: Some(median),
            p99: Some(p99),
            p999: Some(p999),
            max: Some(max),
            ..Residuals::default()
        };
        if max > ceiling {
            let over = self.values.above(ceiling);
            out.over_ceiling = over.count;
            out.first_over_tick = over.first.map(|i| numbers[i]);
            out.last_over_tick = over.last.map(|i| numbers[i]);
        }
        if let Some(worst) = self.values.above(max - 1).first {
            out.worst_tick = Some(numbers[worst]);
            out.worst_pair = worst_pair(members, worst, self.which).map(|(_, (a, b))| (a.into(), b.into()));
        }
        out
    }

    /// The residuals, ns.
    pub fn into_column(self) -> Column {
        self.values
    }
}

kernel! {
    /// Fills in `out`, or says that it cannot be done in 32 bits.
    fn plain(members: &[Member], range: &Range<usize>, out: &mut [i32]) -> bool {
        let mut fits = true;
        for (start, out) in range.clone().step_by(LANES).zip(out.chunks_mut(LANES)) {
            let ticks = start..start + out.len();
            let (mut all, mut worst) = (Reach::nowhere(), Worst::none());
            for member in members.iter().filter(|m| m.in_plain) {
                fits &= join(&mut all, member, &ticks, 0);
            }
            all.spread(&mut worst);
            out.copy_from_slice(&worst.0[..out.len()]);
        }
        fits
    }
}

kernel! {
    /// As [`plain`].
    fn guarded(members: &[Member], range: &Range<usize>, out: &mut [i32]) -> bool {
        let clocks = by_clock(members);
        let mut fits = true;
        for (start, out) in range.clone().step_by(LANES).zip(out.chunks_mut(LANES)) {
            let ticks = start..start + out.len();
            let (mut other_clocks, mut worst) = (Reach::nowhere(), Worst::none());
            for clock in &clocks {
                let mut widened = Reach::nowhere();
                for member in clock {
                    fits &= join(&mut widened, member, &ticks, member.uncertainty);
                }
                if clock.len() > 1 {
                    let mut bare = Reach::nowhere();
                    for member in clock {
                        fits &= join(&mut bare, member, &ticks, 0);
                    }
                    bare.spread(&mut worst);
                }
                widened.meet(&other_clocks, &mut worst);
                other_clocks.absorb(&widened);
            }
            out.copy_from_slice(&worst.0[..out.len()]);
        }
        fits
    }
}

#[inline(always)]
fn join(reach: &mut Reach, member: &Member, ticks: &Range<usize>, uncertainty: i64) -> bool {
    match member.offsets {
        Column::Zero(_) => reach.join_zero(uncertainty),
        Column::Narrow(offsets) => offsets.get(ticks.clone()).is_some_and(|offsets| reach.join(offsets, uncertainty)),
        Column::Wide(_) => false,
    }
}

/// The members, together with those of the same clock map.
fn by_clock<'m, 'a>(members: &'m [Member<'a>]) -> Vec<Vec<&'m Member<'a>>> {
    let mut clocks: Vec<Vec<&Member>> = Vec::new();
    for member in members {
        let same = clocks.iter_mut().find(|group| member.clock.is_some() && group[0].clock == member.clock);
        match same {
            Some(group) => group.push(member),
            None => clocks.push(vec![member]),
        }
    }
    clocks
}

/// The largest disagreement at one tick and its pair: the stream at the minimum, then the one at the maximum.
///
/// Of equal stamps the lower is the one with the lower name; of all pairs that attain the value the lowest names win.
pub fn worst_pair<'a>(members: &[Member<'a>], tick: usize, which: Residual) -> Option<(i64, (&'a str, &'a str))> {
    let mut there: Vec<(i64, &Member<'a>)> = members
        .iter()
        .filter(|m| m.in_plain || which == Residual::Guarded)
        .map(|m| (m.offsets.at(tick), m))
        .filter(|(offset, _)| *offset != ABSENT)
        .collect();
    there.sort_by_key(|(offset, m)| (*offset, m.name));
    let mut best: Option<(i128, (&str, &str))> = None;
    for (i, (low, a)) in there.iter().enumerate() {
        for (high, b) in &there[i + 1..] {
            let mut value = i128::from(*high) - i128::from(*low);
            if which == Residual::Guarded && (a.clock.is_none() || a.clock != b.clock) {
                value += i128::from(a.uncertainty) + i128::from(b.uncertainty);
            }
            let pair = (a.name, b.name);
            if best.is_none_or(|(most, names)| value > most || (value == most && pair < names)) {
                best = Some((value, pair));
            }
        }
    }
    best.map(|(value, pair)| (value.min(i64::MAX.into()) as i64, pair))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::CHUNK;

    /// A stream of a test: name, offsets, uncertainty, clock.
    type Given<'a> = (&'a str, &'a [i64], i64, Option<&'a str>);

    fn series(
        which: Residual,
        given: &[Given],
        plain: impl Fn(&str) -> bool,
    ) -> (Vec<i64>, Residuals, Vec<(i64, String)>) {
        let columns: Vec<Column> = given.iter().map(|(_, offsets, ..)| Column::of(offsets.to_vec())).collect();
        let member = |(&(name, _, uncertainty, clock), offsets)| Member {
            name,
            offsets,
            in_plain: plain(name),
            uncertainty,
            clock,
        };
        let members: Vec<Member> = given.iter().zip(&columns).map(member).collect();
        let ticks = columns.first().map_or(2, Column::len);
        let mut series = Series::new(which, ticks, 100);
        for start in (0..ticks).step_by(CHUNK) {
            series.chunk(&members, start..(start + CHUNK).min(ticks));
        }
        series.end();
        let numbers: Vec<i64> = (0..ticks as i64).map(|i| 3 + i + i / 2).collect();
        let statistics = series.summarise(&numbers, 10, &members);
        let pairs = (0..ticks).filter_map(|tick| worst_pair(&members, tick, which));
        let pairs = pairs.map(|(value, (a, b))| (value, format!("{a}-{b}"))).collect();
        (series.into_column().to_vec(), statistics, pairs)
    }

    fn plain(given: &[Given]) -> Vec<i64> {
        series(Residual::Plain, given, |_| true).0
    }

    fn guarded(given: &[Given]) -> Vec<i64> {
        series(Residual::Guarded, given, |_| true).0
    }

    #[test]
    fn plain_is_the_spread_of_two_or_more() {
        assert_eq!(plain(&[("a", &[0, 0, ABSENT], 0, None), ("b", &[-5, ABSENT, 3], 0, None)]), [5, ABSENT, ABSENT]);
        assert_eq!(plain(&[]), [ABSENT, ABSENT]);
    }

    #[test]
    fn one_clock_needs_no_guard() {
        let given: [Given; 3] = [("a", &[0], 100, Some("x")), ("b", &[7], 100, Some("x")), ("c", &[1], 10, None)];
        // a-b: 7; a-c: 1 + 110; b-c: 6 + 110
        let (values, _, pairs) = series(Residual::Guarded, &given, |_| true);
        assert_eq!((values, pairs), (vec![116], vec![(116, "c-b".to_owned())]));
        // streams without a clock never share one
        assert_eq!(guarded(&[("a", &[0], 5, None), ("b", &[0], 6, None)]), [11]);
    }

    #[test]
    fn interpolated_streams_join_the_guarded_only() {
        let given: [Given; 2] = [("a", &[0, 0], 1, None), ("glove", &[0, 0], 50, None)];
        assert_eq!(series(Residual::Plain, &given, |name| name == "a").0, [ABSENT, ABSENT]);
        assert_eq!(series(Residual::Guarded, &given, |name| name == "a").0, [51, 51]);
    }

    #[test]
    fn pairs_are_named_by_time_then_name() {
        let pairs = |given: &[Given]| series(Residual::Plain, given, |_| true).2;
        let same: [Given; 3] = [("c", &[0], 0, None), ("b", &[0], 0, None), ("a", &[0], 0, None)];
        assert_eq!(pairs(&same), [(0, "a-b".to_owned())]);
        let apart: [Given; 3] = [("z", &[-1], 0, None), ("b", &[4], 0, None), ("a", &[4], 0, None)];
        assert_eq!(pairs(&apart), [(5, "z-a".to_owned())]);
    }

    #[test]
    fn the_quick_way_is_every_pair() {
        let n = 1200;
        let column = |k: i64| -> Vec<i64> {
            let far = |i| if i == 700 { k << 40 } else { 0 }; // the second chunk of ticks does not fit 32 bits
            (0..n).map(|i| if (i * 7 + k) % 5 == 0 { ABSENT } else { (i * k * 131) % 997 - 400 + far(i) }).collect()
        };
        let near = |k: i64| -> Vec<i64> { column(k).into_iter().map(|v| if v > 1 << 30 { 0 } else { v }).collect() };
        for columns in [(1..6).map(column).collect::<Vec<_>>(), (1..6).map(near).collect()] {
            let clocks = [Some("x"), None, Some("x"), Some("y"), None];
            let names = ["a", "b", "c", "d", "e"];
            for uncertainties in [[0, 77, 4, 81, 8], [0, 0, 1 << 40, 0, 0]] {
                let given: Vec<Given> =
                    (0..5).map(|k| (names[k], columns[k].as_slice(), uncertainties[k], clocks[k])).collect();
                for which in [Residual::Plain, Residual::Guarded] {
                    let (values, statistics, pairs) = series(which, &given, |name| name != "d");
                    let there: Vec<i64> = values.into_iter().filter(|&v| v != ABSENT).collect();
                    assert_eq!(there, pairs.iter().map(|(value, _)| *value).collect::<Vec<_>>(), "{which:?}");
                    let mut sorted = there.clone();
                    sorted.sort_unstable();
                    assert_eq!((statistics.ticks, statistics.max), (there.len(), sorted.last().copied()));
                    assert_eq!(statistics.median, Some(sorted[there.len().div_ceil(2) - 1]));
                    assert_eq!(statistics.p99, Some(sorted[(there.len() * 99).div_ceil(100) - 1]));
                }
            }
        }
    }

    #[test]
    fn offsets_of_centuries_saturate() {
        let given: [Given; 2] = [("a", &[0], 1 << 60, None), ("b", &[i64::MAX - 1], 1 << 60, None)];
        assert_eq!((guarded(&given), plain(&given)), (vec![i64::MAX], vec![i64::MAX - 1]));
    }

    #[test]
    fn the_ceiling_itself_passes() {
        let given: [Given; 2] = [("a", &[0, 0, 0, 0], 0, None), ("b", &[10, 11, -12, 12], 0, None)];
        let r = series(Residual::Plain, &given, |_| true).1;
        assert_eq!((r.over_ceiling, r.first_over_tick, r.last_over_tick), (3, Some(4), Some(7)));
        assert_eq!((r.max, r.worst_tick, r.median), (Some(12), Some(6), Some(11)));
        assert_eq!(r.worst_pair, Some(("b".into(), "a".into())));
    }
}
