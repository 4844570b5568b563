//! Ticks as they happen (sync.md section 6): final ones come out in order; `close` trims once.
//!
//! A tick is final when every stream is complete past `t_k + T/2`: it has passed it, or the latency bound has gone by on
//! the rig clock. In three corners the rules of section 3 look further ahead, and the tick waits until they are decided
//! too, by the same two means: a sampled stream's nearest sample within a period longer than T/2; the far side of an
//! interpolated stream's bracket; and a sample so far behind its tick that a reference sample still to come may be its
//! nearer one. So a final tick is what the batch core says of it, and trimming at close is its only revision.
//!
//! A stream "has passed" a time when its highest stamp less its reorder bound lies there; with a bound of 0 a stream is
//! taken to come in order. A sample that lies where ticks are final already is `late`: it is counted, changes nothing,
//! and is not part of the figures at close.
//!
//! A stream that reports a hardware trigger index is matched by it (section 3.6), and a tick waits for the stream until
//! a sample of its pulse or of a later one is there, or until the latency bound has gone by since `t_k + T/2`: a stream
//! that slipped by n periods is seen to be so if n periods are within that bound. A sample without an index voids it
//! from there on; then ticks that are final stay as they are, and the figures at close are by time throughout.
//!
//! # Memory
//!
//! What ticks to come may need: a few samples a stream, as long as `advance` is told the time. The figures at close
//! need every stamp, 8 bytes a sample (16 with an index): about 410 MB for ten hours of seven streams at 60 Hz and an
//! IMU at 1 kHz. Who does not close a monitor sets `keep` to false and pays nothing for it.

use std::collections::VecDeque;

use crate::error::SyncError;
use crate::measure::{Figures, Kind, Settings, Stream, measure};
use crate::order::ABSENT;
use crate::pulses::Pulses;
use crate::track::{Reach, Received, Track, insert};

/// Streams that one monitor can hold: as many as an int64 has bits to say which of them matched.
const STREAMS_MAX: usize = 63;

/// One required stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorStream {
    /// Its name, unlike all others.
    pub name: String,
    /// How it is judged. Events are kept for the figures at close, and no tick waits for them.
    pub kind: Kind,
    /// Nominal period in ns, needed for sampled and interpolated streams.
    pub period_ns: Option<i64>,
    /// A sample is expected at every so many ticks, 1 or more.
    pub decimate: i64,
    /// The tick number modulo `decimate` at which one is expected.
    pub phase: i64,
    /// How far below its highest stamp a later sample may lie, ns. What it costs is that much more delay of final ticks.
    pub reorder_ns: i64,
    /// Triggered: the device reports a hardware trigger index with every sample.
    pub indexed: bool,
}

/// What is known before the first sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorConfig {
    /// The required streams.
    pub streams: Vec<MonitorStream>,
    /// The reference stream, or the name of the edges.
    pub reference: String,
    /// The ticks are trigger edges, pushed by `push_edge`, and not a stream's samples.
    pub edges: bool,
    /// T in ns, 1 or more.
    pub period_ns: i64,
    /// How late after its stamp a sample may be pushed, on the rig clock.
    pub latency_ns: i64,
    /// See `Settings`.
    pub trim_max_ns: i64,
    /// See `Settings`.
    pub ceiling_ns: i64,
    /// Every stamp is kept, so that `close` has figures to give.
    pub keep: bool,
}

impl MonitorConfig {
    /// With the defaults of the document: trimmed by at most 1 s, a ceiling of 2.0 ms. Stamps are kept.
    pub fn new(streams: Vec<MonitorStream>, reference: impl Into<String>, period_ns: i64, latency_ns: i64) -> Self {
        let reference = reference.into();
        let (trim_max_ns, ceiling_ns) = (1_000_000_000, 2_000_000);
        Self { streams, reference, edges: false, period_ns, latency_ns, trim_max_ns, ceiling_ns, keep: true }
    }
}

/// A tick that nothing within its bounds will change any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinalTick<'a> {
    /// Its number: the first is 0, skipped ones are absent.
    pub tick: i64,
    /// Its time.
    pub reference_ns: i64,
    /// R, where two or more triggered and sampled streams matched.
    pub residual: Option<i64>,
    /// Signed offset of every stream, in the order of the configuration; 0 for an interpolated one that is bracketed.
    pub offsets: &'a [Option<i64>],
}

impl FinalTick<'_> {
    /// Bit `i` says whether stream `i` matched.
    #[must_use]
    pub fn matched(&self) -> i64 {
        self.offsets.iter().enumerate().filter(|(_, offset)| offset.is_some()).map(|(i, _)| 1_i64 << i).sum()
    }
}

/// Matches streams as their samples come in.
#[derive(Debug, Clone)]
pub struct Monitor {
    config: MonitorConfig,
    /// One for each stream (None for events), then one for the edges where they are the reference.
    tracks: Vec<Option<Track>>,
    /// What was received of each stream of events, where stamps are kept.
    events: Vec<Received>,
    reference: usize,
    /// Ticks that are not final, in order.
    pending: VecDeque<i64>,
    /// Time and number of the last final tick.
    last: Option<(i64, i64)>,
    /// The highest pulse of a final tick.
    last_pulse: Option<i64>,
    now_ns: Option<i128>,
    offsets: Vec<Option<i64>>,
    late: u64,
}

impl Monitor {
    /// A monitor that has seen nothing.
    ///
    /// # Errors
    ///
    /// Parameters outside their range; a reference that is no triggered stream with a sample at every tick; names that
    /// are not distinct.
    pub fn new(config: MonitorConfig) -> Result<Self, SyncError> {
        check(&config)?;
        let mut tracks: Vec<Option<Track>> = config.streams.iter().map(track_of).collect();
        let named = config.streams.iter().position(|stream| stream.name == config.reference);
        let reference = named.filter(|_| !config.edges).unwrap_or(tracks.len());
        if config.edges {
            tracks.push(Some(Track::new(Reach::HalfPeriod, 0)));
        }
        if config.keep {
            tracks = tracks.into_iter().map(|track| track.map(Track::kept)).collect();
        }
        let offsets = vec![None; config.streams.len()];
        let events = vec![Received::default(); config.streams.len()];
        let (pending, last, last_pulse, now_ns, late) = (VecDeque::new(), None, None, None, 0);
        let monitor = Self { config, tracks, events, reference, pending, last, last_pulse, now_ns, offsets, late };
        monitor.figures()?; // what `measure` refuses whatever the samples, it refuses now
        Ok(monitor)
    }

    /// Takes a sample of a stream in, by its position in the configuration: its time on the rig timebase, ns. Samples
    /// without a stamp and of unknown streams are not judged and not kept.
    #[inline]
    pub fn push(&mut self, stream: usize, time_ns: i64) {
        self.push_indexed(stream, time_ns, ABSENT);
    }

    /// As `push`, with the hardware trigger index that the device reported, `ABSENT` for none.
    #[inline]
    pub fn push_indexed(&mut self, stream: usize, time_ns: i64, index: i64) {
        let by_index = self.is_by_index(stream);
        if time_ns == ABSENT {
            return;
        }
        let Some(Some(track)) = self.tracks.get_mut(stream) else {
            self.keep_event(stream, time_ns);
            return;
        };
        if !track.push(time_ns, index, by_index) {
            self.late += 1;
        } else if stream == self.reference {
            insert(&mut self.pending, time_ns);
        }
    }

    fn keep_event(&mut self, stream: usize, time_ns: i64) {
        if let Some(received) = self.events.get_mut(stream).filter(|_| self.config.keep) {
            received.times.push(time_ns);
        }
    }

    /// Says that the trigger indices of a stream are void for this take, as after a restart of its worker: it is
    /// matched by time from now on, and throughout in the figures at close.
    pub fn void_index(&mut self, stream: usize) {
        if let Some(Some(track)) = self.tracks.get_mut(stream) {
            track.forget_index();
        }
    }

    /// Takes a trigger edge in, as its planned mid-exposure, where edges are the reference.
    pub fn push_edge(&mut self, time_ns: i64) {
        if self.config.edges {
            self.push(self.reference, time_ns);
        }
    }

    /// Says that it is `now_ns` on the rig clock, and hands out the ticks that are final, in order. `ABSENT` says
    /// nothing of the clock, `i64::MAX` that nothing more will come.
    pub fn advance(&mut self, now_ns: i64, mut on_final: impl FnMut(&FinalTick)) {
        if now_ns != ABSENT {
            // The end of time, less any latency, is still the end of time.
            let now = if now_ns == i64::MAX { i128::MAX / 4 } else { now_ns.into() };
            self.now_ns = self.now_ns.max(Some(now));
        }
        while let Some(&t) = self.pending.front() {
            if !self.is_final(t) {
                return;
            }
            self.pending.pop_front();
            self.finish(t, &mut on_final);
        }
        let to = self.complete_to(self.reference);
        if to == i128::MIN {
            return;
        }
        // What no tick to come needs is forgotten; so none may come that would have needed it.
        for track in self.tracks.iter_mut().flatten() {
            track.forget_before(to, self.config.period_ns);
        }
        if let Some(Some(reference)) = self.tracks.get_mut(self.reference) {
            reference.close_to(to);
        }
    }

    /// The figures of everything that was pushed and not late, by the batch core. Ticks that are not final are in them:
    /// the recording is over.
    ///
    /// # Errors
    ///
    /// As [`measure`]; [`SyncError::NotKept`] where stamps are not kept.
    pub fn close(&mut self) -> Result<Figures, SyncError> {
        self.advance(i64::MAX, |_| {});
        if !self.config.keep {
            return Err(SyncError::NotKept);
        }
        self.figures()
    }

    /// Samples that came beyond their bound, where ticks were final already.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }

    /// How many samples and ticks are held for ticks to come, kept ones apart.
    #[must_use]
    pub fn held(&self) -> usize {
        self.pending.len() + self.tracks.iter().flatten().map(Track::held).sum::<usize>()
    }

    fn figures(&self) -> Result<Figures, SyncError> {
        let none = Received::default();
        let received = |at: usize| {
            let track = self.tracks.get(at).and_then(Option::as_ref);
            let of_events = self.events.get(at).unwrap_or(&none);
            track.map_or(of_events, |track| track.received.as_ref().unwrap_or(&none))
        };
        let streams: Vec<Stream> =
            self.config.streams.iter().enumerate().map(|(at, s)| batch_stream(s, received(at))).collect();
        let edges = self.config.edges.then(|| received(self.reference).times.as_slice());
        measure(
            &streams,
            &Settings {
                reference: &self.config.reference,
                edges,
                period: Some(self.config.period_ns),
                trim_max: self.config.trim_max_ns,
                ceiling: self.config.ceiling_ns,
            },
        )
    }

    fn complete_to(&self, stream: usize) -> i128 {
        let track = self.tracks.get(stream).and_then(Option::as_ref);
        track.map_or(i128::MAX, |track| track.complete_to(self.now_ns, self.config.latency_ns))
    }

    fn is_final(&self, t: i64) -> bool {
        let half_way = self.half_way(t);
        let pulse = self.pulse_of(t);
        let complete = |(at, track): (usize, &Option<Track>)| {
            let to = self.complete_to(at);
            to >= half_way
                && track.as_ref().is_none_or(|track| to >= track.decided_at(t))
                && self.has_passed(at, t, pulse)
        };
        self.tracks.iter().enumerate().all(complete) && self.complete_to(self.reference) >= self.rival_to(t)
    }

    /// Whether the sample that a stream reports for the pulse of tick `t` is there or will not come any more.
    fn has_passed(&self, stream: usize, t: i64, pulse: Option<i64>) -> bool {
        let (Some(pulse), Some(pulses)) = (pulse, self.pulses_of(stream)) else { return true };
        let gone_by = self.now_ns.map(|now| now - i128::from(self.config.latency_ns));
        gone_by.is_some_and(|to| to >= self.half_way(t)) || pulses.has_passed(pulse, self.complete_to(stream))
    }

    /// Whether a stream is matched by its trigger index: it has one, and so have the ticks.
    #[inline]
    fn is_by_index(&self, stream: usize) -> bool {
        self.pulses_of(stream).is_some()
    }

    fn pulses_of(&self, stream: usize) -> Option<&Pulses> {
        let of = |at: usize| self.tracks.get(at)?.as_ref()?.pulses.as_ref();
        let pulses = of(stream).filter(|_| stream != self.reference)?;
        (self.config.edges || of(self.reference).is_some()).then_some(pulses)
    }

    /// The pulse of the pending tick `t`, where it has one that no earlier tick has had: the number of an edge, the
    /// reference stream's own index.
    fn pulse_of(&self, t: i64) -> Option<i64> {
        let pulse = if self.config.edges {
            Some(self.number_of(t))
        } else {
            self.tracks.get(self.reference)?.as_ref()?.pulses.as_ref()?.at(t)
        };
        pulse.filter(|&pulse| self.last_pulse.is_none_or(|last| pulse > last))
    }

    /// The first time that is half a period or more after `t`.
    fn half_way(&self, t: i64) -> i128 {
        i128::from(t) + (i128::from(self.config.period_ns) + 1) / 2
    }

    /// Below this, a tick still to come would be nearer to a sample that tick `t` takes.
    fn rival_to(&self, t: i64) -> i128 {
        let others = (0..self.config.streams.len()).filter(|&at| at != self.reference && !self.is_by_index(at));
        let triggered =
            others.filter(|&at| self.tracks[at].as_ref().is_some_and(|track| track.reach == Reach::HalfPeriod));
        let taken = triggered.filter_map(|at| self.offset(at, t));
        taken.map(|offset| i128::from(t) + 2 * i128::from(offset)).max().unwrap_or(i128::MIN)
    }

    fn finish(&mut self, t: i64, on_final: &mut impl FnMut(&FinalTick)) {
        let (half_way, rival_to, pulse) = (self.half_way(t), self.rival_to(t), self.pulse_of(t));
        for at in 0..self.offsets.len() {
            self.offsets[at] = if at == self.reference {
                Some(0)
            } else if let Some(pulses) = self.pulses_of(at) {
                pulse.and_then(|pulse| pulses.time_of(pulse)).and_then(|time| time.checked_sub(t))
            } else {
                self.offset(at, t)
            };
        }
        let number = self.number_of(t);
        self.last = Some((t, number));
        self.last_pulse = self.last_pulse.max(pulse);
        on_final(&FinalTick { tick: number, reference_ns: t, residual: self.residual(), offsets: &self.offsets });
        // Ticks nearer than half a period may be pending, none such will come any more.
        let next = self.pending.front().map_or(half_way, |&next| half_way.min(next.into()));
        let (now_ns, latency_ns) = (self.now_ns, self.config.latency_ns);
        for (at, track) in self.tracks.iter_mut().enumerate() {
            let Some(track) = track else { continue };
            let decided_at = if at == self.reference { rival_to } else { track.decided_at(t) };
            track.close_to(half_way.max(decided_at));
            track.forget_before(next, self.config.period_ns);
            let complete_to = track.complete_to(now_ns, latency_ns);
            if let (Some(pulses), Some(pulse)) = (&mut track.pulses, pulse) {
                let offset = self.offsets.get(at).copied().flatten();
                pulses.close(pulse, offset.map(|offset| t.wrapping_add(offset)), complete_to);
            }
        }
    }

    /// The number of the tick at `t`, the first one that is not final.
    fn number_of(&self, t: i64) -> i64 {
        self.last.map_or(0, |(time, number)| number.saturating_add(self.ticks_between(time, t)))
    }

    /// Offset of what the stream has for tick `t`, all ticks and samples considered.
    fn offset(&self, stream: usize, t: i64) -> Option<i64> {
        let track = self.tracks.get(stream)?.as_ref()?;
        let offset = track.offset_at(t, self.config.period_ns)?;
        (track.reach != Reach::HalfPeriod || self.is_nearest_tick(t, offset)).then_some(offset)
    }

    /// Whether no other tick is nearer to the sample at `t + offset`, ties: the earlier.
    fn is_nearest_tick(&self, t: i64, offset: i64) -> bool {
        let distance = offset.unsigned_abs();
        let sample = t.wrapping_add(offset);
        self.last.is_none_or(|(previous, _)| distance < sample.abs_diff(previous))
            && self.pending.iter().find(|&&next| next > t).is_none_or(|next| distance <= sample.abs_diff(*next))
    }

    /// `max(1, round(step / T))`, halves up (sync.md section 3.2).
    fn ticks_between(&self, from: i64, to: i64) -> i64 {
        let period = i128::from(self.config.period_ns);
        let step = i128::from(to) - i128::from(from);
        i64::try_from((2 * step + period).div_euclid(2 * period)).unwrap_or(i64::MAX).max(1)
    }

    fn residual(&self) -> Option<i64> {
        let members = self.config.streams.iter().zip(&self.offsets).filter(|(s, _)| s.kind != Kind::Interpolated);
        let (mut least, mut most, mut count) = (i64::MAX, i64::MIN, 0);
        for offset in members.filter_map(|(_, offset)| *offset) {
            (least, most, count) = (least.min(offset), most.max(offset), count + 1);
        }
        (count >= 2).then(|| most.saturating_sub(least))
    }
}

fn track_of(stream: &MonitorStream) -> Option<Track> {
    let period_ns = stream.period_ns.unwrap_or(0);
    let reach = match stream.kind {
        Kind::Triggered => Reach::HalfPeriod,
        Kind::Sampled => Reach::Within(period_ns),
        Kind::Interpolated => Reach::Gap(period_ns.saturating_mul(2)),
        Kind::Event => return None,
    };
    let track = Track::new(reach, stream.reorder_ns);
    Some(if stream.indexed && stream.kind == Kind::Triggered { track.indexed() } else { track })
}

fn batch_stream<'a>(stream: &'a MonitorStream, received: &'a Received) -> Stream<'a> {
    Stream {
        period: stream.period_ns,
        decimate: stream.decimate,
        phase: Some(stream.phase),
        trigger_index: received.index.as_deref(),
        ..Stream::new(&stream.name, stream.kind, &received.times)
    }
}

fn check(config: &MonitorConfig) -> Result<(), SyncError> {
    let refuse = |what: String, value: i64, allowed| Err(SyncError::OutOfRange { what, value: value.into(), allowed });
    if config.streams.len() > STREAMS_MAX {
        let count = i64::try_from(config.streams.len()).unwrap_or(i64::MAX);
        return refuse("the number of streams of a monitor".into(), count, "at most 63");
    }
    if config.period_ns < 1 {
        return refuse("period_ns of a monitor".into(), config.period_ns, "1 or more");
    }
    if config.latency_ns < 0 {
        return refuse("latency_ns of a monitor".into(), config.latency_ns, "0 or more");
    }
    for stream in &config.streams {
        let free = matches!(stream.kind, Kind::Sampled | Kind::Interpolated);
        if free && stream.period_ns.is_none_or(|period| period < 1) {
            let what = format!("period_ns of the {} stream '{}'", stream.kind.as_str(), stream.name);
            return refuse(what, stream.period_ns.unwrap_or(0), "1 or more: live, no median step is known");
        }
        if stream.reorder_ns < 0 {
            return refuse(format!("reorder_ns of '{}'", stream.name), stream.reorder_ns, "0 or more");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pulses::HELD;

    const T: i64 = 1000;

    /// The most samples and ticks that were ever held while `count` periods of three streams were pushed, the streams of
    /// `silent` only once, at the start.
    fn most_held(count: i64, silent: &[usize], indexed: bool) -> usize {
        let kinds = [("head", Kind::Triggered, T), ("wrist", Kind::Triggered, T), ("imu", Kind::Sampled, T)];
        let streams = kinds.map(|(name, kind, period)| MonitorStream {
            name: name.into(),
            kind,
            period_ns: Some(period),
            decimate: 1,
            phase: 0,
            reorder_ns: 0,
            indexed,
        });
        let config = MonitorConfig { keep: false, ..MonitorConfig::new(streams.into(), "head", T, 5 * T) };
        let mut monitor = Monitor::new(config).unwrap();
        let mut most = 0;
        for k in 0..count {
            for at in (0..3).filter(|at| k == 0 || !silent.contains(at)) {
                monitor.push_indexed(at, k * T, k);
            }
            monitor.advance(k * T, |_| {});
            most = most.max(monitor.held());
        }
        most
    }

    #[test]
    fn what_is_held_for_ticks_to_come_does_not_grow_while_a_stream_is_silent() {
        for silent in [&[][..], &[0], &[1], &[2], &[1, 2]] {
            let most = most_held(3000, silent, false);
            assert!(most < 30, "{silent:?}: {most}");
            // Which pulse a tick to come has is not known before it is there.
            let most = most_held(3000, silent, true);
            assert!(most < 50 + if silent == [0] { HELD } else { 0 }, "{silent:?}: {most}");
        }
    }

    #[test]
    fn who_does_not_keep_stamps_has_no_figures_at_close() {
        let head = MonitorStream {
            name: "head".into(),
            kind: Kind::Triggered,
            period_ns: None,
            decimate: 1,
            phase: 0,
            reorder_ns: 0,
            indexed: false,
        };
        let config = MonitorConfig { keep: false, ..MonitorConfig::new(vec![head], "head", T, 0) };
        assert_eq!(Monitor::new(config).unwrap().close(), Err(SyncError::NotKept));
    }
}
