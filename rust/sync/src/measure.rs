//! The batch core: streams of stamps to the figures that a verdict rests on (sync.md sections 3 and 4).
//!
//! The order of work is that of the document: order, tick numbers, span, matching, residuals, order statistics.
//! What the data lacks (no samples, one sample, nothing in common) makes figures that say so, never an error.
//!
//! Where the document leaves a choice:
//!
//! - The period is the one given, else that of the reference stream, else the median step; of fewer than two stamps it
//!   is 0, and every rule is applied with that 0. The same holds for the nominal period of a free-running stream.
//! - A stream without samples takes no part in the span and is missing at every tick.
//! - A sample is inside the span by the same inequalities as a tick. One that is matched counts as matched wherever it
//!   lies itself.
//! - A match at a tick of another phase is a match but was not expected.
//! - Absent ticks are not expected of streams other than the reference: they neither count in a run nor break it.
//! - `extra` and `trimmed` are counted for triggered streams only; nothing is expected of an event stream.
//! - An index counts where every sample of the stream has one, and every sample of the reference stream.
//! - An interpolated stream's offset is 0 where it is bracketed; statistics of that would say nothing and are None.

use std::ops::Range;
use std::str::FromStr;

use crate::by_time::Ticks;
use crate::column::Column;
use crate::error::SyncError;
use crate::order::{ABSENT, Ordered, order};
use crate::residual::{Member, Residual, Residuals, Series};
use crate::row::Row;
use crate::ticks::{self, Missing, Presence, Span};

/// Ticks that are matched and compared before the next ones: so few that their offsets stay in the nearest caches.
pub(crate) const CHUNK: usize = 1024;

/// How a stream is judged (sync.md section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One sample per tick, or per `decimate`-th tick.
    Triggered,
    /// Free-running; judged at its nearest sample.
    Sampled,
    /// Free-running; judged by the samples on both sides.
    Interpolated,
    /// Sparse; never matched.
    Event,
}

impl Kind {
    /// The word for it in specs and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Triggered => "triggered",
            Self::Sampled => "sampled",
            Self::Interpolated => "interpolated",
            Self::Event => "event",
        }
    }
}

impl FromStr for Kind {
    type Err = SyncError;

    fn from_str(word: &str) -> Result<Self, SyncError> {
        let mut kinds = [Self::Triggered, Self::Sampled, Self::Interpolated, Self::Event].into_iter();
        kinds.find(|kind| kind.as_str() == word).ok_or_else(|| SyncError::UnknownKind(word.to_owned()))
    }
}

/// One required stream. Times are int64 ns of the rig's timebase at mid-exposure, in arrival order.
#[derive(Debug, Clone, Copy)]
pub struct Stream<'a> {
    /// Its name, unlike all others.
    pub name: &'a str,
    /// How it is judged.
    pub kind: Kind,
    /// The stamps; every sample has one.
    pub times: &'a [i64],
    /// Its nominal period, ns; else the median step.
    pub period: Option<i64>,
    /// Triggered: a sample is expected at every so many ticks.
    pub decimate: i64,
    /// Triggered: the tick number modulo `decimate` at which one is expected; else that of most matches.
    pub phase: Option<i64>,
    /// Interpolated: the widest bracket, ns; else two nominal periods.
    pub max_gap: Option<i64>,
    /// Triggered: the hardware trigger index of each sample, [`ABSENT`] where the device gave none.
    pub trigger_index: Option<&'a [i64]>,
    /// The uncertainty `u` of its stamps, ns.
    pub uncertainty: i64,
    /// The clock map it shares with the streams that name the same one.
    pub clock: Option<&'a str>,
}

impl<'a> Stream<'a> {
    /// A stream with nothing but a name, a kind and stamps.
    pub fn new(name: &'a str, kind: Kind, times: &'a [i64]) -> Self {
        Self {
            name,
            kind,
            times,
            period: None,
            decimate: 1,
            phase: None,
            max_gap: None,
            trigger_index: None,
            uncertainty: 0,
            clock: None,
        }
    }
}

/// Against what the streams are measured.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// The reference stream, or the name of the edges.
    pub reference: &'a str,
    /// The planned mid-exposures of the recorded trigger edges, ns, where they are the reference.
    pub edges: Option<&'a [i64]>,
    /// The nominal period T, ns.
    pub period: Option<i64>,
    /// How much of a late start or early end is trimmed, ns.
    pub trim_max: i64,
    /// The largest residual that passes, ns.
    pub ceiling: i64,
}

impl<'a> Settings<'a> {
    /// The defaults of the document: trimmed by at most 1 s, a ceiling of 2.0 ms.
    pub fn new(reference: &'a str) -> Self {
        Self { reference, edges: None, period: None, trim_max: 1_000_000_000, ceiling: 2_000_000 }
    }
}

/// Figures of one stream within the span (sync.md section 7 names them).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamFigures {
    /// How it was judged.
    pub kind: Kind,
    /// Samples that were given.
    pub samples: usize,
    /// Expected ticks (absent ones only in the reference's own row), and what is missing of them.
    pub missing: Missing,
    /// Ticks with a match, expected or not.
    pub matched: usize,
    /// Triggered: samples inside the span that nobody matched.
    pub extra: usize,
    /// Triggered: samples outside the span.
    pub trimmed: usize,
    /// Further samples of an equal stamp.
    pub duplicate: usize,
    /// Samples below the running maximum.
    pub backwards: usize,
    /// A sample is expected at every so many ticks.
    pub decimate: i64,
    /// At which tick numbers modulo `decimate`.
    pub phase: i64,
    /// The earliest stamp, ns.
    pub first: Option<i64>,
    /// The latest stamp, ns.
    pub last: Option<i64>,
    /// As given, ns.
    pub uncertainty: i64,
    /// Rank 1/2 of the signed offsets, ns.
    pub offset_median: Option<i64>,
    /// Rank 99/100 of their absolute values, ns.
    pub offset_p99_abs: Option<i64>,
    /// The largest absolute value, ns.
    pub offset_max_abs: Option<i64>,
}

/// What [`measure`] found. Columns have one entry a present tick of the span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    /// The reference stream, or the name of the edges.
    pub reference: String,
    /// T, ns; 0 where it was neither given nor to be had from the stamps.
    pub period: i64,
    /// The span's start, ns; None where no required stream has a sample.
    pub start: Option<i64>,
    /// The span's end, ns.
    pub end: Option<i64>,
    /// Absent ticks between the first and the last present one of the span.
    pub absent: i64,
    /// Present ticks before the span.
    pub trimmed_start: usize,
    /// Present ticks after it.
    pub trimmed_end: usize,
    /// Statistics of R.
    pub residual: Residuals,
    /// Statistics of G.
    pub guarded: Residuals,
    /// Figures by stream, in the order given.
    pub streams: Vec<(String, StreamFigures)>,
    /// Tick numbers.
    pub tick: Vec<i64>,
    /// Times of the ticks, ns.
    pub reference_times: Vec<i64>,
    /// R, ns, none where undefined.
    pub residual_series: Column,
    /// G, ns, likewise; None where no uncertainty and no interpolated stream is there, so that G is R.
    pub guarded_series: Option<Column>,
    /// Signed offsets to the ticks, ns, none without a match; by stream, in the order given.
    pub offsets: Vec<Column>,
}

/// Measures required streams against the reference.
///
/// # Errors
/// A call that makes no sense: two streams of one name, an unknown or unfit reference, parameters out of their range,
/// samples without a stamp, stamps more than 2^63 - 1 ns apart.
pub fn measure(streams: &[Stream], settings: &Settings) -> Result<Figures, SyncError> {
    let reference = check(streams, settings)?;
    let edges = settings.edges.map(|edges| order(edges, None));
    // Streams nearly always come in order. So a stream is taken as it came and looked over while it is matched; one that
    // turns out not to be in order is put in order, and all is begun again.
    let mut ordered: Vec<Ordered> =
        streams.iter().enumerate().map(|(at, s)| taken_up(s, reference == Some(at))).collect();
    loop {
        match attempt(streams, &ordered, settings, reference, edges.as_ref()) {
            Ok((mut figures, judged)) => {
                // The list that was made in order to be matched to is handed on; nobody needs it any more.
                let present = edges.or_else(|| reference.map(|at| ordered.swap_remove(at)));
                let present = present.map_or(Vec::new(), |ordered| ordered.times.into_owned());
                figures.reference_times = cut(present, &judged);
                return Ok(figures);
            }
            Err(Stop::Refused(error)) => return Err(error),
            Err(Stop::NotInOrder(at)) => ordered[at] = order(streams[at].times, streams[at].trigger_index),
        }
    }
}

/// Why an attempt ended.
enum Stop {
    Refused(SyncError),
    /// The stream at this position must be put in order.
    NotInOrder(usize),
}

impl From<SyncError> for Stop {
    fn from(error: SyncError) -> Self {
        Self::Refused(error)
    }
}

/// A stream in order, or as it came where matching looks it over.
fn taken_up<'a>(stream: &Stream<'a>, is_reference: bool) -> Ordered<'a> {
    if is_reference || stream.kind == Kind::Event || stream.trigger_index.is_some() {
        order(stream.times, stream.trigger_index)
    } else {
        Ordered::as_it_came(stream.times)
    }
}

/// The entries of `range`.
fn cut(mut values: Vec<i64>, range: &Range<usize>) -> Vec<i64> {
    values.truncate(range.end);
    values.drain(..range.start.min(values.len()));
    values
}

/// Measures streams that are supposed to be in order. Returns the positions of the ticks that are judged as well; their
/// times are left for the caller to fill in.
fn attempt(
    streams: &[Stream],
    ordered: &[Ordered],
    settings: &Settings,
    reference: Option<usize>,
    edges: Option<&Ordered>,
) -> Result<(Figures, Range<usize>), Stop> {
    check_stamps(streams, ordered, settings, edges)?;
    let present: &[i64] = match (edges, reference) {
        (Some(edges), _) => &edges.times,
        (None, Some(at)) => &ordered[at].times,
        (None, None) => &[],
    };
    let period = settings
        .period
        .or_else(|| reference.and_then(|at| streams[at].period))
        .unwrap_or_else(|| ticks::median_step(present));
    let numbers = ticks::numbers(present, period);
    let pulses = match reference {
        None => Some(numbers.as_slice()),
        Some(at) => complete_index(&streams[at], &ordered[at]),
    };
    let span = Span::of(&presences(streams, ordered), period, settings.trim_max);
    let all = 0..present.len();
    let judged = span.map_or(all.end..all.end, |span| span.positions(present));
    let ticks = Ticks::new(present, &judged, period);
    let plan = Plan { present, numbers: &numbers, pulses, judged: judged.clone(), period, span, ticks };

    let rows = streams.iter().zip(ordered).enumerate();
    let mut rows: Vec<Row> = rows.map(|(at, (s, o))| Row::new(s, o, &plan, reference == Some(at))).collect();
    let mut plain = Series::new(Residual::Plain, judged.len(), period);
    let guard_differs = streams.iter().any(|s| s.kind != Kind::Event && (s.uncertainty > 0 || !in_plain(s.kind)));
    let mut guarded = guard_differs.then(|| Series::new(Residual::Guarded, judged.len(), period));
    for start in judged.clone().step_by(CHUNK) {
        let range = start..(start + CHUNK).min(judged.end);
        for (at, row) in rows.iter_mut().enumerate() {
            row.chunk(&plan, range.clone()).map_err(|_| Stop::NotInOrder(at))?;
        }
        let members = members(streams, &rows);
        let range = range.start - judged.start..range.end - judged.start;
        plain.chunk(&members, range.clone());
        if let Some(guarded) = &mut guarded {
            guarded.chunk(&members, range);
        }
    }
    for (at, row) in rows.iter_mut().enumerate() {
        row.end().map_err(|_| Stop::NotInOrder(at))?;
    }

    plain.end();
    guarded.iter_mut().for_each(Series::end);

    let tick = &numbers[judged.clone()];
    let members = members(streams, &rows);
    let residual = plain.summarise(tick, settings.ceiling, &members);
    let of_guarded = guarded.as_ref().map(|series| series.summarise(tick, settings.ceiling, &members));
    let streams = streams.iter().zip(&rows).map(|(s, row)| (s.name.to_owned(), row.figures(&plan))).collect();
    let figures = Figures {
        reference: settings.reference.to_owned(),
        period,
        start: span.map(|s| s.start),
        end: span.map(|s| s.end),
        absent: Missing::of_reference(tick).missing,
        trimmed_start: judged.start,
        trimmed_end: present.len() - judged.end,
        guarded: of_guarded.unwrap_or_else(|| residual.clone()),
        residual,
        streams,
        reference_times: Vec::new(),
        residual_series: plain.into_column(),
        guarded_series: guarded.map(Series::into_column),
        offsets: rows.into_iter().map(Row::into_column).collect(),
        tick: cut(numbers, &judged),
    };
    Ok((figures, judged))
}

/// The ticks and which of them are judged.
pub(crate) struct Plan<'a> {
    /// Times of the present ticks.
    pub(crate) present: &'a [i64],
    /// Their numbers.
    pub(crate) numbers: &'a [i64],
    /// Their pulse numbers, where the reference has them.
    pub(crate) pulses: Option<&'a [i64]>,
    /// Positions of those in the span.
    pub(crate) judged: Range<usize>,
    pub(crate) period: i64,
    pub(crate) span: Option<Span>,
    pub(crate) ticks: Ticks<'a>,
}

/// The streams' parts in the residuals; events have none.
fn members<'a>(streams: &[Stream<'a>], rows: &'a [Row]) -> Vec<Member<'a>> {
    let judged = streams.iter().zip(rows).filter(|(stream, _)| stream.kind != Kind::Event);
    let member = |(stream, row): (&Stream<'a>, &'a Row)| Member {
        name: stream.name,
        offsets: row.offsets(),
        in_plain: in_plain(stream.kind),
        uncertainty: stream.uncertainty,
        clock: stream.clock,
    };
    judged.map(member).collect()
}

/// Whether streams of this kind are members of `S_k`.
fn in_plain(kind: Kind) -> bool {
    kind != Kind::Interpolated
}

/// The trigger indices of the distinct stamps, where every sample has one, the repeated ones too.
pub(crate) fn complete_index<'a>(stream: &Stream, ordered: &'a Ordered) -> Option<&'a [i64]> {
    let complete = stream.trigger_index.is_some_and(|index| !index.contains(&ABSENT));
    ordered.index.as_deref().filter(|_| complete)
}

/// First and last samples of the streams that have a say in the span.
fn presences(streams: &[Stream], ordered: &[Ordered]) -> Vec<Presence> {
    let present = streams.iter().zip(ordered).filter(|(stream, _)| stream.kind != Kind::Event);
    present
        .filter_map(|(stream, ordered)| {
            let free_running = stream.kind != Kind::Triggered;
            let (first, last) = (*ordered.times.first()?, *ordered.times.last()?);
            Some(Presence { first, last, free_running })
        })
        .collect()
}

/// Refuses a call that makes no sense. Returns the position of the reference stream, None where edges are it.
fn check(streams: &[Stream], settings: &Settings) -> Result<Option<usize>, SyncError> {
    for (at, stream) in streams.iter().enumerate() {
        if streams[..at].iter().any(|other| other.name == stream.name) {
            return Err(SyncError::DuplicateName(stream.name.to_owned()));
        }
        check_parameters(stream)?;
    }
    in_range("trim_max_ns", settings.trim_max, 0, i64::MAX, "0 or more")?;
    in_range("ceiling_ns", settings.ceiling, 0, i64::MAX, "0 or more")?;
    in_range("period_ns", settings.period.unwrap_or(1), 1, i64::MAX, "1 or more")?;
    let named = streams.iter().position(|s| s.name == settings.reference);
    if settings.edges.is_some() {
        return match named {
            None => Ok(None),
            Some(_) => Err(SyncError::EdgesNamedAsStream(settings.reference.to_owned())),
        };
    }
    let Some(at) = named else {
        let known = match streams {
            [] => "none".to_owned(),
            _ => streams.iter().map(|s| s.name).collect::<Vec<_>>().join(", "),
        };
        return Err(SyncError::UnknownReference { reference: settings.reference.to_owned(), known });
    };
    let what = match (streams[at].kind, streams[at].decimate) {
        (Kind::Triggered, 1) => return Ok(Some(at)),
        (Kind::Triggered, every) => format!("decimated by {every}"),
        (kind, _) => kind.as_str().to_owned(),
    };
    Err(SyncError::UnfitReference { name: settings.reference.to_owned(), what })
}

fn check_parameters(stream: &Stream) -> Result<(), SyncError> {
    let of = |what: &str| format!("{what} of '{}'", stream.name);
    let phases = stream.decimate.saturating_sub(1);
    in_range(of("decimate"), stream.decimate, 1, i64::MAX, "1 or more")?;
    in_range(of("phase"), stream.phase.unwrap_or(0), 0, phases, "0 or more and below decimate")?;
    in_range(of("period_ns"), stream.period.unwrap_or(1), 1, i64::MAX, "1 or more")?;
    in_range(of("max_gap_ns"), stream.max_gap.unwrap_or(0), 0, i64::MAX, "0 or more")?;
    in_range(of("uncertainty_ns"), stream.uncertainty, 0, 1 << 60, "from 0 to 2^60")?;
    match stream.trigger_index {
        Some(index) if index.len() != stream.times.len() => Err(SyncError::ColumnLength {
            name: stream.name.to_owned(),
            column: "trigger_index",
            entries: index.len(),
            samples: stream.times.len(),
        }),
        _ => Ok(()),
    }
}

fn in_range(
    what: impl Into<String>,
    value: i64,
    least: i64,
    most: i64,
    allowed: &'static str,
) -> Result<(), SyncError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(SyncError::OutOfRange { what: what.into(), value: value.into(), allowed })
}

/// Refuses samples without a stamp, and stamps so far apart that their difference is beyond int64.
///
/// All later arithmetic rests on this: every difference of two stamps fits.
fn check_stamps(
    streams: &[Stream],
    ordered: &[Ordered],
    settings: &Settings,
    edges: Option<&Ordered>,
) -> Result<(), SyncError> {
    let of_edges = edges.zip(settings.edges).map(|(ordered, raw)| (settings.reference, raw, ordered));
    let of_streams = streams.iter().zip(ordered).map(|(stream, ordered)| (stream.name, stream.times, ordered));
    for (name, raw, ordered) in of_streams.chain(of_edges) {
        if ordered.times.first() == Some(&ABSENT) {
            let position = raw.iter().position(|&t| t == ABSENT).unwrap_or(0);
            return Err(SyncError::AbsentStamp { name: name.to_owned(), position });
        }
    }
    let judged = streams.iter().zip(ordered).filter(|(stream, _)| stream.kind != Kind::Event);
    let lists = judged
        .map(|(stream, ordered)| (stream.name, &ordered.times))
        .chain(edges.map(|edges| (settings.reference, &edges.times)));
    let mut extremes: Option<(i64, i64)> = None;
    for (name, times) in lists {
        let (Some(&first), Some(&last)) = (times.first(), times.last()) else { continue };
        let (least, most) = extremes.map_or((first, last), |(a, b)| (a.min(first), b.max(last)));
        if most.checked_sub(least).is_none() {
            return Err(SyncError::Extent { name: name.to_owned() });
        }
        extremes = Some((least, most));
    }
    Ok(())
}
