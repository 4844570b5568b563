//! What the live page shows: ticks as they become final, rates, offsets, anything wrong as it happens.

use std::collections::VecDeque;

use firsthand_sync::monitor::{FinalTick, Monitor, MonitorConfig, MonitorStream};
use firsthand_sync::{Kind, SyncError};
use serde::Deserialize;

use crate::counts::Counts;
use crate::device::{ABSENT, DeviceInfo, StreamInfo};
use crate::error::{RecordError, RecordResult};
use crate::live::{Page, StreamPage};

/// Final ticks that "recent" means.
const RECENT_TICKS: usize = 60;
/// Least time between two readings of the counters for the rates.
const RATE_STEP_NS: i64 = 50_000_000;
/// What rates are taken over.
const RATE_OVER_NS: i64 = 1_000_000_000;

/// How the take is judged live, as JSON of the daemon.
#[derive(Debug, Clone, Deserialize)]
pub struct Plan {
    /// Name of the reference stream; a name that is no stream means the trigger edges.
    pub reference: String,
    /// T; without one there are no live ticks.
    pub period_ns: Option<i64>,
    /// The ceiling; the value itself passes.
    pub ceiling_ns: i64,
    /// How late after its stamp a sample may come.
    pub latency_ns: i64,
    /// Constant from edge to planned mid-exposure.
    #[serde(default)]
    pub edge_offset_ns: i64,
    /// Wait for the disk instead of losing samples, for sources that can wait.
    #[serde(default)]
    pub lossless: bool,
    /// Streams; those that are not required are not watched for ticks.
    pub streams: Vec<PlanStream>,
}

/// One stream of the plan.
#[derive(Debug, Clone, Deserialize)]
pub struct PlanStream {
    /// Its name.
    pub name: String,
    /// `triggered`, `sampled`, `interpolated` or `event`.
    pub kind: String,
    /// Nominal period.
    #[serde(default)]
    pub period_ns: Option<i64>,
    /// Expected at every so many ticks.
    #[serde(default = "one")]
    pub decimate: i64,
    /// At which of them.
    #[serde(default)]
    pub phase: Option<i64>,
    /// Whether ticks wait for it.
    #[serde(default = "yes")]
    pub required: bool,
}

fn one() -> i64 {
    1
}

fn yes() -> bool {
    true
}

impl Plan {
    /// Reads a plan. Streams that no device has are nothing to watch; the verdict says what is missing.
    ///
    /// # Errors
    /// [`RecordError::Invalid`]: not JSON of that form.
    pub fn parse(json: &str) -> RecordResult<Self> {
        serde_json::from_str(json)
            .map_err(|e| RecordError::Invalid(format!("the plan is not a JSON object of the form expected: {e}")))
    }
}

#[derive(Debug, Clone)]
struct StreamWatch {
    name: String,
    /// Position in the monitor.
    watched: Option<usize>,
    received: u64,
    last_ns: i64,
    offset_ns: Option<i64>,
    missing: u64,
    /// Start of the worker that sent the last sample of the take.
    incarnation: Option<i64>,
    /// Over the last second, as of the last `clock`.
    rate_mhz: i64,
}

/// Watches one rig. Takes come and go; rates run on.
pub struct Watch {
    plan: Plan,
    required: Vec<MonitorStream>,
    streams: Vec<StreamWatch>,
    monitor: Option<Monitor>,
    /// Time and received samples per stream, oldest first.
    rates: VecDeque<(i64, Vec<u64>)>,
    recent: VecDeque<i64>,
    page: Page,
}

impl Watch {
    /// Watches the streams of `devices` in their order.
    ///
    /// # Errors
    /// [`RecordError::Invalid`] for a plan that the monitor refuses.
    pub fn new(plan: Plan, devices: &[DeviceInfo]) -> RecordResult<Self> {
        let mut required = Vec::new();
        let mut streams = Vec::new();
        for stream in devices.iter().flat_map(|d| &d.streams) {
            let planned = plan.streams.iter().find(|s| s.name == stream.name && s.required);
            let mut watched = None;
            if let Some(planned) = planned
                && let Some(monitored) = monitor_stream(planned, &plan, stream)?
            {
                watched = Some(required.len());
                required.push(monitored);
            }
            streams.push(StreamWatch {
                name: stream.name.clone(),
                watched,
                received: 0,
                last_ns: ABSENT,
                offset_ns: None,
                missing: 0,
                incarnation: None,
                rate_mhz: 0,
            });
        }
        let mut watch = Self {
            plan,
            required,
            streams,
            monitor: None,
            rates: VecDeque::new(),
            recent: VecDeque::new(),
            page: Page::default(),
        };
        // Refused now, so that no take fails to start over it.
        watch.fresh_monitor()?;
        Ok(watch)
    }

    /// Whether samples wait for the disk instead of being lost.
    pub fn lossless(&self) -> bool {
        self.plan.lossless
    }

    /// Begins the ticks of a take.
    ///
    /// # Errors
    /// [`RecordError::Invalid`], which `new` has ruled out.
    pub fn start_take(&mut self, take: &str) -> RecordResult<()> {
        self.monitor = self.fresh_monitor()?;
        self.recent.clear();
        self.page = Page { take: take.to_owned(), recording: true, ..Page::default() };
        for stream in &mut self.streams {
            stream.offset_ns = None;
            stream.missing = 0;
            stream.incarnation = None;
        }
        Ok(())
    }

    /// Ends the ticks of a take: everything pending becomes final and is appended to `ticks`.
    pub fn stop_take(&mut self, ticks: &mut Vec<[i64; 3]>) {
        self.finish_ticks(i64::MAX, ticks);
        self.monitor = None;
        self.page.recording = false;
    }

    /// Counts samples that came, previews too.
    pub fn received(&mut self, stream: usize, count: u64) {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.received += count;
        }
    }

    /// Takes in a sample of the running take: its rig time, its trigger index, and which start of the worker sent it.
    pub fn sample(&mut self, stream: usize, rig_ns: i64, trigger_index: i64, incarnation: i64) {
        let Some(watched) = self.streams.get_mut(stream) else { return };
        watched.last_ns = rig_ns;
        if let (Some(monitor), Some(number)) = (&mut self.monitor, watched.watched) {
            if watched.incarnation.replace(incarnation).is_some_and(|before| before != incarnation) {
                monitor.void_index(number); // sync.md section 3.6: it rejoins by time
            }
            monitor.push_indexed(number, rig_ns, trigger_index);
        }
    }

    /// Takes in a trigger edge.
    pub fn edge(&mut self, time_ns: i64) {
        if let Some(monitor) = &mut self.monitor {
            monitor.push_edge(time_ns.saturating_add(self.plan.edge_offset_ns));
        }
    }

    /// Appends the ticks that are final at `now_ns` to `ticks`: number, reference, residual.
    pub fn finish_ticks(&mut self, now_ns: i64, ticks: &mut Vec<[i64; 3]>) {
        let Self { monitor: Some(monitor), page, streams, recent, plan, required, .. } = self else { return };
        monitor.advance(now_ns, |tick: &FinalTick<'_>| {
            ticks.push([tick.tick, tick.reference_ns, tick.residual.unwrap_or(ABSENT)]);
            page.tick = tick.tick;
            page.final_ns = tick.reference_ns;
            page.residual_ns = tick.residual;
            if let Some(residual) = tick.residual {
                page.max_ns = page.max_ns.max(Some(residual));
                page.over += u64::from(residual > plan.ceiling_ns);
            }
            recent.push_back(tick.residual.unwrap_or(ABSENT));
            if recent.len() > RECENT_TICKS {
                recent.pop_front();
            }
            for stream in &mut *streams {
                let Some(number) = stream.watched else { continue };
                // Between the ticks at which a decimated stream is expected, its last offset stands.
                let Some(plan) = required.get(number) else { continue };
                if (tick.tick - plan.phase).rem_euclid(plan.decimate) == 0 {
                    stream.offset_ns = tick.offsets.get(number).copied().flatten();
                    stream.missing += u64::from(plan.kind == Kind::Triggered && stream.offset_ns.is_none());
                }
            }
        });
        page.late = monitor.late();
        page.recent_max_ns = recent.iter().copied().max().filter(|r| *r != ABSENT);
    }

    /// Notes the time for the rates.
    pub fn clock(&mut self, now_ns: i64) {
        if self.rates.back().is_some_and(|(last, _)| now_ns < *last) {
            self.rates.clear();
        }
        if self.rates.back().is_none_or(|(last, _)| now_ns.saturating_sub(*last) >= RATE_STEP_NS) {
            self.rates.push_back((now_ns, self.streams.iter().map(|s| s.received).collect()));
        }
        while self.rates.get(1).is_some_and(|(second, _)| now_ns.saturating_sub(*second) >= RATE_OVER_NS) {
            self.rates.pop_front();
        }
        if let Some((since, then)) = self.rates.front() {
            let span = now_ns.saturating_sub(*since);
            for (stream, before) in self.streams.iter_mut().zip(then) {
                stream.rate_mhz = rate_mhz(stream.received.saturating_sub(*before), span);
            }
        }
        self.page.updated_ns = now_ns;
    }

    /// The page as it is now. `splits`: steps of each stream's clock in this take.
    pub fn page(&mut self, counts: &[Counts], splits: &[u64], malformed: u64, disk: String) -> &Page {
        self.page.malformed = malformed;
        self.page.disk = disk;
        for (number, stream) in self.streams.iter().enumerate() {
            let counts = counts.get(number).copied().unwrap_or_default();
            let page = StreamPage {
                received: counts.received,
                written: counts.written,
                durable: counts.durable,
                lost_queue: counts.lost_queue,
                lost_disk: counts.lost_disk,
                sequence_gaps: counts.sequence_gaps,
                missing: stream.missing,
                splits: splits.get(number).copied().unwrap_or(0),
                rate_mhz: stream.rate_mhz,
                offset_ns: stream.offset_ns,
                last_ns: stream.last_ns,
                frozen_run: counts.frozen_run,
            };
            match self.page.streams.get_mut(&stream.name) {
                Some(there) => *there = page,
                None => drop(self.page.streams.insert(stream.name.clone(), page)),
            }
        }
        &self.page
    }

    /// Bytes that the text of a page may need, the take's own text apart.
    pub fn page_room(&self) -> usize {
        4096 + self.streams.iter().map(|s| 512 + 6 * s.name.len()).sum::<usize>()
    }

    fn fresh_monitor(&mut self) -> RecordResult<Option<Monitor>> {
        let plan = &self.plan;
        let Some(period_ns) = plan.period_ns.filter(|_| !self.required.is_empty()) else { return Ok(None) };
        let mut config = MonitorConfig::new(self.required.clone(), plan.reference.clone(), period_ns, plan.latency_ns);
        config.ceiling_ns = plan.ceiling_ns;
        // The verdict is the batch's, from the evidence: nobody closes this one, and a rig records for hours.
        config.keep = false;
        // A reference that is none of the streams is the trigger's edges.
        config.edges = self.required.iter().all(|stream| stream.name != plan.reference);
        Monitor::new(config).map(Some).map_err(|e| refused(&e))
    }
}

fn refused(error: &SyncError) -> RecordError {
    RecordError::Invalid(format!("the plan cannot be watched: {error}"))
}

/// None for what has no live ticks: events, and free-running streams without a stated period.
fn monitor_stream(planned: &PlanStream, plan: &Plan, stream: &StreamInfo) -> RecordResult<Option<MonitorStream>> {
    let kind: Kind = planned.kind.parse().map_err(|e: SyncError| refused(&e))?;
    // 0 says "none" in the plan as in the monitor's Python face.
    let period_ns = planned.period_ns.filter(|p| *p > 0);
    if kind == Kind::Event || (kind != Kind::Triggered && period_ns.is_none()) {
        return Ok(None);
    }
    Ok(Some(MonitorStream {
        name: planned.name.clone(),
        kind,
        period_ns,
        decimate: planned.decimate,
        phase: planned.phase.unwrap_or(0),
        reorder_ns: stream.reorder_bound.max(0).saturating_mul(period_ns.or(plan.period_ns).unwrap_or(0)),
        indexed: stream.has_trigger_index,
    }))
}

/// Thousandths of samples a second.
fn rate_mhz(samples: u64, span_ns: i64) -> i64 {
    if span_ns <= 0 {
        return 0;
    }
    let scaled = i128::from(samples) * 1_000_000_000_000;
    i64::try_from(scaled / i128::from(span_ns)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_integers_of_millihertz() {
        assert_eq!(rate_mhz(60, 1_000_000_000), 60_000);
        assert_eq!(rate_mhz(1, 3_000_000_000), 333);
        assert_eq!(rate_mhz(u64::MAX, 1), i64::MAX);
        assert_eq!(rate_mhz(5, 0), 0);
    }
}
