//! The live monitor against the batch core on random streams: drops, repeats, bursts, reordering within the bound.

mod chance;

use chance::Random;
use firsthand_sync::{
    ABSENT, FinalTick, Kind, Monitor, MonitorConfig, MonitorStream, Settings, Stream, SyncError, measure,
};

const T: i64 = 1000;

fn stream(name: &str, kind: Kind, period_ns: i64) -> MonitorStream {
    MonitorStream {
        name: name.into(),
        kind,
        period_ns: Some(period_ns),
        decimate: 1,
        phase: 0,
        reorder_ns: 0,
        indexed: false,
    }
}

struct Scene {
    config: MonitorConfig,
    /// (arrival, stream, time), in order of arrival; the stream after the last is the edges.
    pushes: Vec<(i64, usize, i64)>,
}

/// Streams of all kinds with much jitter, losses and repeats. `loose`: samples overtake each other within the latency.
fn scene(random: &mut Random, edges: bool, loose: bool) -> Scene {
    let latency = 700 + random.below(3000);
    let mut streams = vec![
        stream("head", Kind::Triggered, T),
        stream("wrist", Kind::Triggered, T),
        stream("depth", Kind::Triggered, 2 * T),
        stream("imu", Kind::Sampled, 170),
        stream("slow", Kind::Sampled, 1700),
        stream("glove", Kind::Interpolated, 900),
        stream("contact", Kind::Event, T),
    ];
    streams[2].decimate = 2;
    for stream in &mut streams {
        stream.reorder_ns = if loose { latency } else { 0 };
    }
    let kinds: Vec<(i64, i64)> = streams.iter().map(|s| (s.period_ns.unwrap_or(T), s.reorder_ns)).collect();
    let mut config = MonitorConfig::new(streams, "head", T, latency);
    config.trim_max_ns = random.below(4) * T;
    let mut columns = kinds;
    if edges {
        (config.edges, config.reference) = (true, "edges".into());
        columns.push((T, 0));
    }
    let jitter = [1, 300, 900, 1400][random.below(4) as usize];
    let mut pushes = Vec::new();
    for (at, (period, _)) in columns.iter().enumerate() {
        let edge = at == config.streams.len();
        let (first, count) = (random.below(3 * T), random.below(40_000) / period);
        let mut times: Vec<i64> = (0..count).map(|i| first + i * period + random.below(jitter) - jitter / 2).collect();
        times.retain(|_| !random.one_in(9));
        let repeats: Vec<i64> = times.iter().copied().filter(|_| random.one_in(15)).collect();
        times.extend(repeats);
        times.sort_unstable();
        let burst = random.below(2 * T) + 1;
        let mut before = i64::MIN;
        for t in times {
            // Either at once, or as late as may be, or together with its neighbours.
            let late =
                [0, random.below(latency + 1), (burst - t.rem_euclid(burst)).min(latency)][random.below(3) as usize];
            let arrival = if loose && !edge { t + late } else { before.max(t + late).min(t + latency) };
            before = arrival;
            pushes.push((arrival, at, t));
        }
    }
    pushes.sort_by_key(|&(arrival, at, t)| (arrival, if loose { t.wrapping_mul(7919) % 13 } else { 0 }, at, t));
    Scene { config, pushes }
}

/// Tick number, time, residual and offsets.
type Row = (i64, i64, i64, Vec<i64>);

fn row(tick: &FinalTick) -> Row {
    let offsets = tick.offsets.iter().map(|offset| offset.unwrap_or(ABSENT)).collect();
    (tick.tick, tick.reference_ns, tick.residual.unwrap_or(ABSENT), offsets)
}

fn check(seed: u64) -> Result<usize, SyncError> {
    let mut random = Random(seed);
    let (edges, loose) = (random.one_in(3), random.one_in(3));
    let Scene { config, pushes } = scene(&mut random, edges, loose);
    let mut monitor = Monitor::new(config.clone())?;
    let mut live: Vec<Row> = Vec::new();
    let mut times = vec![Vec::new(); config.streams.len() + 1];
    for &(arrival, at, t) in &pushes {
        times[at].push(t);
        if at == config.streams.len() {
            monitor.push_edge(t);
        } else {
            monitor.push(at, t);
        }
        // Sometimes the clock is asked, sometimes not, sometimes between two samples.
        match random.below(4) {
            0 => monitor.advance(ABSENT, |tick| live.push(row(tick))),
            1 => monitor.advance(arrival, |tick| live.push(row(tick))),
            _ => {}
        }
    }
    monitor.advance(i64::MAX, |tick| live.push(row(tick)));
    assert_eq!(monitor.late(), 0, "seed {seed}");
    assert!(live.is_sorted_by_key(|row| row.1), "seed {seed}");

    let streams: Vec<Stream> = config
        .streams
        .iter()
        .zip(&times)
        .map(|(s, times)| Stream {
            period: s.period_ns,
            decimate: s.decimate,
            phase: Some(s.phase),
            ..Stream::new(&s.name, s.kind, times)
        })
        .collect();
    let mut settings = Settings { period: Some(T), trim_max: config.trim_max_ns, ..Settings::new(&config.reference) };
    settings.edges = edges.then_some(times[config.streams.len()].as_slice());
    let batch = measure(&streams, &settings)?;
    assert_eq!(monitor.close()?, batch, "seed {seed}");

    let expected: Vec<Row> = (0..batch.tick.len())
        .map(|k| {
            let offsets = batch.offsets.iter().map(|column| column.at(k)).collect();
            (batch.tick[k], batch.reference_times[k], batch.residual_series.at(k), offsets)
        })
        .collect();
    assert_eq!(live.len(), batch.trimmed_start + expected.len() + batch.trimmed_end, "seed {seed}");
    let untrimmed = &live[batch.trimmed_start..live.len() - batch.trimmed_end];
    for (live, expected) in untrimmed.iter().zip(&expected) {
        assert_eq!(live, expected, "seed {seed}, edges {edges}, loose {loose}");
    }
    Ok(expected.len())
}

#[test]
fn final_ticks_and_figures_are_those_of_the_batch_core() -> Result<(), SyncError> {
    let mut judged = 0;
    for seed in 0..600 {
        judged += check(seed)?;
    }
    assert!(judged > 3000, "{judged} ticks judged");
    Ok(())
}

fn pair(latency_ns: i64) -> Result<Monitor, SyncError> {
    let streams = vec![stream("head", Kind::Triggered, T), stream("wrist", Kind::Triggered, T)];
    Monitor::new(MonitorConfig::new(streams, "head", T, latency_ns))
}

fn finals(monitor: &mut Monitor, now_ns: i64) -> Vec<Row> {
    let mut rows = Vec::new();
    monitor.advance(now_ns, |tick| rows.push(row(tick)));
    rows
}

#[test]
fn a_tick_is_final_when_every_stream_has_passed_half_a_period() -> Result<(), SyncError> {
    let mut monitor = pair(100_000)?;
    monitor.push(0, 0);
    monitor.push(1, 30);
    monitor.push(0, 1000);
    assert_eq!(finals(&mut monitor, 1000), []);
    monitor.push(1, 499); // nearer than half a period: the tick may still change
    assert_eq!(finals(&mut monitor, 1000), []);
    monitor.push(1, 500);
    assert_eq!(finals(&mut monitor, 1000), [(0, 0, 30, vec![0, 30])]);
    Ok(())
}

#[test]
fn a_silent_stream_holds_a_tick_up_for_the_latency_and_no_longer() -> Result<(), SyncError> {
    let mut monitor = pair(2000)?;
    for k in 0..5 {
        monitor.push(0, k * T);
    }
    assert_eq!(finals(&mut monitor, 2499), []);
    assert_eq!(finals(&mut monitor, 2500), [(0, 0, ABSENT, vec![0, ABSENT])]);
    monitor.push(1, 499);
    assert_eq!(monitor.late(), 1);
    monitor.push(1, 1000); // within its bound
    assert_eq!(finals(&mut monitor, 3500), [(1, 1000, 0, vec![0, 0])]);
    assert_eq!(monitor.late(), 1);
    let figures = monitor.close()?;
    assert_eq!(figures.streams[1].1.samples, 1);
    Ok(())
}

#[test]
fn a_tick_waits_for_a_rival_that_may_still_come() -> Result<(), SyncError> {
    let mut monitor = pair(100_000)?;
    monitor.push(0, 0);
    monitor.push(1, 450);
    monitor.push(1, 1700);
    monitor.push(0, 500);
    // Head has passed half a period, and its sample at 500 takes the one at 450.
    assert_eq!(finals(&mut monitor, ABSENT), [(0, 0, ABSENT, vec![0, ABSENT])]);
    let mut monitor = pair(1000)?;
    monitor.push(0, 0);
    monitor.push(1, 450);
    monitor.push(1, 1700);
    assert_eq!(finals(&mut monitor, 1899), []); // a tick at 899 would be nearer to 450
    assert_eq!(finals(&mut monitor, 1900), [(0, 0, 450, vec![0, 450])]);
    Ok(())
}

#[test]
fn absent_ticks_are_numbered_over() -> Result<(), SyncError> {
    let mut monitor = pair(1000)?;
    for t in [0, 2500, 3999] {
        monitor.push(0, t);
    }
    let numbers: Vec<i64> = finals(&mut monitor, i64::MAX).iter().map(|row| row.0).collect();
    assert_eq!(numbers, [0, 3, 4]);
    Ok(())
}

#[test]
fn times_at_the_ends_of_int64_are_no_overflow() -> Result<(), SyncError> {
    let mut monitor = pair(i64::MAX)?;
    for t in [ABSENT, ABSENT + 1, 0, i64::MAX - 1, i64::MAX] {
        monitor.push(0, t);
        monitor.push(1, t);
        monitor.push(9, t);
        monitor.advance(t, |_| {});
    }
    assert!(matches!(monitor.close(), Err(SyncError::Extent { .. })));
    Ok(())
}

#[test]
fn what_cannot_be_monitored_is_refused_at_once() {
    let head = || stream("head", Kind::Triggered, T);
    let config = |streams, reference: &str| MonitorConfig::new(streams, reference, T, 0);
    let free = |kind| MonitorStream { period_ns: None, ..stream("imu", kind, T) };
    for bad in [
        config(vec![head()], "haed"),
        config(vec![head(), head()], "head"),
        config(vec![stream("imu", Kind::Sampled, T)], "imu"),
        config(vec![head(), free(Kind::Sampled)], "head"),
        config(vec![head(), free(Kind::Interpolated)], "head"),
        config(vec![MonitorStream { decimate: 0, ..head() }], "head"),
        config(vec![MonitorStream { reorder_ns: -1, ..head() }], "head"),
        MonitorConfig { period_ns: 0, ..config(vec![head()], "head") },
        MonitorConfig { latency_ns: -1, ..config(vec![head()], "head") },
        MonitorConfig { edges: true, ..config(vec![head()], "head") },
    ] {
        assert!(Monitor::new(bad.clone()).is_err(), "{bad:?}");
    }
}
