//! Residuals of the ticks, plain and guarded, their order statistics and the worst pair (sync.md section 4).

use std::ops::Range;

use crate::order::ABSENT;
use crate::quantile::{Summary, summary};
use crate::reach::{CHUNK, Reach, Worst};

/// One stream's part in the residuals.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// The stream.
    pub name: &'a str,
    /// Offsets to the ticks in ns, [`ABSENT`] where it has no match.
    pub offsets: &'a [i64],
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

/// `R` of every tick: max - min over the members of `S_k`, [`ABSENT`] where there are fewer than two.
pub fn plain(members: &[Member], ticks: usize) -> Vec<i64> {
    let plain: Vec<&Member> = members.iter().filter(|m| m.in_plain).collect();
    by_chunks(members, ticks, Residual::Plain, |range, worst| {
        let mut all = Reach::nowhere();
        let fits = plain.iter().all(|m| all.join(&m.offsets[range.clone()], 0));
        all.spread(worst);
        fits
    })
}

/// `G` of every tick: the largest `|t_i - t_j| + u_i + u_j`, without the u of two streams of one clock map.
///
/// [`ABSENT`] where there are fewer than two members; saturates at 2^63 - 1.
pub fn guarded(members: &[Member], ticks: usize) -> Vec<i64> {
    let clocks = by_clock(members);
    by_chunks(members, ticks, Residual::Guarded, |range, worst| {
        let mut other_clocks = Reach::nowhere();
        let mut fits = true;
        for clock in &clocks {
            let mut widened = Reach::nowhere();
            fits &= clock.iter().all(|m| widened.join(&m.offsets[range.clone()], m.uncertainty));
            if clock.len() > 1 {
                let mut bare = Reach::nowhere();
                fits &= clock.iter().all(|m| bare.join(&m.offsets[range.clone()], 0));
                bare.spread(worst);
            }
            widened.meet(&other_clocks, worst);
            other_clocks.absorb(&widened);
        }
        fits
    })
}

/// Works on chunks of ticks; where `quickly` says that one does not fit, looks at every pair of it.
fn by_chunks(
    members: &[Member],
    ticks: usize,
    which: Residual,
    quickly: impl Fn(Range<usize>, &mut Worst) -> bool,
) -> Vec<i64> {
    let mut out = vec![ABSENT; ticks];
    for (chunk, out) in out.chunks_mut(CHUNK).enumerate() {
        let range = chunk * CHUNK..chunk * CHUNK + out.len();
        let mut worst = Worst::none();
        if quickly(range.clone(), &mut worst) {
            worst.write(out);
        } else {
            for (out, tick) in out.iter_mut().zip(range) {
                *out = worst_pair(members, tick, which).map_or(ABSENT, |(value, _)| value);
            }
        }
    }
    out
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
        .map(|m| (m.offsets[tick], m))
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

/// Order statistics of a series of [`plain`] or [`guarded`]; `numbers` are the tick numbers.
pub fn summarise(series: &[i64], numbers: &[i64], ceiling: i64, members: &[Member], which: Residual) -> Residuals {
    let Some(Summary { count, most: max, ranked: [median, p99, p999] }) =
        summary(series, [(1, 2), (99, 100), (999, 1000)])
    else {
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
        // ABSENT is below every ceiling.
        out.over_ceiling = series.iter().filter(|&&r| r > ceiling).count();
        out.first_over_tick = series.iter().position(|&r| r > ceiling).map(|i| numbers[i]);
        out.last_over_tick = series.iter().rposition(|&r| r > ceiling).map(|i| numbers[i]);
    }
    if let Some(worst) = series.iter().position(|&r| r == max) {
        out.worst_tick = Some(numbers[worst]);
        out.worst_pair = worst_pair(members, worst, which).map(|(_, (a, b))| (a.into(), b.into()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member<'a>(name: &'a str, offsets: &'a [i64], uncertainty: i64, clock: Option<&'a str>) -> Member<'a> {
        Member { name, offsets, in_plain: true, uncertainty, clock }
    }

    #[test]
    fn plain_is_the_spread_of_two_or_more() {
        let members = [member("a", &[0, 0, ABSENT], 0, None), member("b", &[-5, ABSENT, 3], 0, None)];
        assert_eq!(plain(&members, 3), [5, ABSENT, ABSENT]);
        assert_eq!(plain(&[], 2), [ABSENT, ABSENT]);
    }

    #[test]
    fn one_clock_needs_no_guard() {
        let zero = [0];
        let members =
            [member("a", &zero, 100, Some("x")), member("b", &[7], 100, Some("x")), member("c", &[1], 10, None)];
        // a-b: 7; a-c: 1 + 110; b-c: 6 + 110
        assert_eq!(guarded(&members, 1), [116]);
        assert_eq!(worst_pair(&members, 0, Residual::Guarded), Some((116, ("c", "b"))));
        // streams without a clock never share one
        let members = [member("a", &zero, 5, None), member("b", &zero, 6, None)];
        assert_eq!(guarded(&members, 1), [11]);
    }

    #[test]
    fn interpolated_streams_join_the_guarded_only() {
        let zero = [0, 0];
        let glove = Member { name: "glove", offsets: &zero, in_plain: false, uncertainty: 50, clock: None };
        let members = [member("a", &zero, 1, None), glove];
        assert_eq!(plain(&members, 2), [ABSENT, ABSENT]);
        assert_eq!(guarded(&members, 2), [51, 51]);
    }

    #[test]
    fn pairs_are_named_by_time_then_name() {
        let members = [member("c", &[0], 0, None), member("b", &[0], 0, None), member("a", &[0], 0, None)];
        assert_eq!(worst_pair(&members, 0, Residual::Plain), Some((0, ("a", "b"))));
        let members = [member("z", &[-1], 0, None), member("b", &[4], 0, None), member("a", &[4], 0, None)];
        assert_eq!(worst_pair(&members, 0, Residual::Plain), Some((5, ("z", "a"))));
    }

    #[test]
    fn the_quick_way_is_every_pair() {
        let n = 1200;
        let column = |k: i64| -> Vec<i64> {
            let far = |i| if i == 700 { k << 40 } else { 0 }; // the second chunk of ticks does not fit 32 bits
            (0..n).map(|i| if (i * 7 + k) % 5 == 0 { ABSENT } else { (i * k * 131) % 997 - 400 + far(i) }).collect()
        };
        let columns: Vec<Vec<i64>> = (1..6).map(column).collect();
        let clocks = [Some("x"), None, Some("x"), Some("y"), None];
        let names = ["a", "b", "c", "d", "e"];
        let members: Vec<Member> = (0..5)
            .map(|k| Member {
                name: names[k],
                offsets: &columns[k],
                in_plain: k != 3,
                uncertainty: (k as i64 * 77) % 150,
                clock: clocks[k],
            })
            .collect();
        for (which, series) in
            [(Residual::Plain, plain(&members, n as usize)), (Residual::Guarded, guarded(&members, n as usize))]
        {
            for (i, &value) in series.iter().enumerate() {
                assert_eq!(value, worst_pair(&members, i, which).map_or(ABSENT, |(v, _)| v), "{which:?} {i}");
            }
        }
    }

    #[test]
    fn offsets_of_centuries_saturate() {
        let members = [member("a", &[0], 1 << 60, None), member("b", &[i64::MAX - 1], 1 << 60, None)];
        assert_eq!(guarded(&members, 1), [i64::MAX]);
        assert_eq!(plain(&members, 1), [i64::MAX - 1]);
    }

    #[test]
    fn the_ceiling_itself_passes() {
        let members = [member("a", &[0, 0, 0, 0], 0, None), member("b", &[10, 11, -12, 12], 0, None)];
        let r = summarise(&plain(&members, 4), &[3, 4, 6, 7], 10, &members, Residual::Plain);
        assert_eq!((r.over_ceiling, r.first_over_tick, r.last_over_tick), (3, Some(4), Some(7)));
        assert_eq!((r.max, r.worst_tick, r.median), (Some(12), Some(6), Some(11)));
        assert_eq!(r.worst_pair, Some(("b".into(), "a".into())));
    }
}
