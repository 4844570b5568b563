//! Arbitrary bytes as streams: no panic, no overflow, no memory beyond what the input accounts for.
//!
//! Bytes become columns of int64, parameters and orders of calls, half of them small and regular, half of them at the
//! ends of everything. Debug builds check every addition. `FUZZ_ROUNDS` says how many inputs are tried, `FUZZ_SEED`
//! which comes first: a failure names its seed, and `FUZZ_ROUNDS=1 FUZZ_SEED=n` runs it alone.

mod chance;

use chance::Random;
use firsthand_sync::{
    ABSENT, Beside, ClockConfig, ClockMap, Counter, Figures, Kind, Monitor, MonitorConfig, MonitorStream, Settings,
    Stream, SyncError, join, map_clock, measure, quantile, scan_stamps,
};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Bytes that any call may need whatever its input: histograms and chunks that stay in the cache, names, sentences.
const CONSTANT: usize = 512 << 10;
/// Bytes that a call may need for each byte of its input.
const FACTOR: usize = 24;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// A column: nothing, noise, or a regular stream with things done to it.
fn column(random: &mut Random) -> Vec<i64> {
    let first = random.odd();
    column_from(random, first, 3)
}

/// A column that begins there, or is noise once in so many times.
fn column_from(random: &mut Random, first: i64, noise: i64) -> Vec<i64> {
    let length = random.among(&[0, 1, 2, 3, 20, 100, 700, 3000]);
    if random.one_in(noise) {
        return (0..length).map(|_| random.odd()).collect();
    }
    let (first, step) = (first.wrapping_add(random.below(2000)), usually(random, &[1, 7, 1000, 16_666_667, 1 << 40]));
    let jitter = random.among(&[1, 3, 500, 9_000_000]);
    let mut out: Vec<i64> =
        (0..length).map(|i| first.wrapping_add(step.wrapping_mul(i)).wrapping_add(random.below(jitter))).collect();
    for _ in 0..random.below(noise.min(6)) {
        if out.is_empty() {
            break;
        }
        let at = random.below(out.len() as i64) as usize;
        match random.below(10 + noise) {
            0 => out[at] = random.odd(),
            1 | 5..7 => drop(out.remove(at)),
            2 => out.insert(at, out[at]),
            3 => out.rotate_left(at),
            _ => out.swap(at, 0),
        }
    }
    out
}

/// A parameter that is usually one a caller would give.
fn parameter(random: &mut Random) -> i64 {
    if random.one_in(5) { random.odd() } else { random.among(&[1, 10, 1000, 16_666_667, 1_000_000_000]) }
}

/// One of those, or any parameter.
fn usually(random: &mut Random, values: &[i64]) -> i64 {
    if random.one_in(5) { parameter(random) } else { random.among(values) }
}

fn perhaps<T>(random: &mut Random, make: impl FnOnce(&mut Random) -> T) -> Option<T> {
    random.one_in(2).then(|| make(random))
}

fn kind(random: &mut Random) -> Kind {
    random.among(&[Kind::Triggered, Kind::Triggered, Kind::Sampled, Kind::Interpolated, Kind::Event])
}

const NAMES: [&str; 6] = ["head", "wrist", "depth", "imu", "glove", "contact"];

fn check_figures(figures: &Figures, given: usize) {
    let ticks = figures.tick.len();
    assert!(ticks <= given);
    assert!(figures.tick.windows(2).all(|pair| pair[0] < pair[1]) || figures.tick.last() == Some(&i64::MAX));
    assert_eq!(figures.reference_times.len(), ticks);
    assert_eq!(figures.residual_series.len(), ticks);
    for (_, row) in &figures.streams {
        if row.kind == Kind::Triggered {
            assert_eq!(row.samples, row.matched + row.extra + row.duplicate + row.trimmed);
        }
        assert!(row.missing.missing <= row.missing.expected);
    }
    let residual = &figures.residual;
    assert!(residual.median <= residual.p99 && residual.p99 <= residual.p999 && residual.p999 <= residual.max);
    assert!(residual.over_ceiling <= residual.ticks && residual.ticks <= ticks);
}

/// The columns of one call, and how many bytes they are.
fn batch(random: &mut Random) -> Result<(), SyncError> {
    let count = 1 + random.below(NAMES.len() as i64 - 1) as usize;
    let first = random.odd();
    let columns: Vec<(Vec<i64>, Option<Vec<i64>>)> = (0..count)
        .map(|_| {
            let times = column_from(random, first, 30);
            let index = perhaps(random, |random| (0..times.len() as i64).map(|i| i + random.below(2)).collect());
            (times, index)
        })
        .collect();
    let edges = perhaps(random, |random| column_from(random, first, 30));
    let streams: Vec<Stream> = columns
        .iter()
        .zip(NAMES)
        .map(|((times, index), name)| Stream {
            period: perhaps(random, parameter),
            decimate: usually(random, &[1, 1, 2, 3]),
            phase: perhaps(random, |random| random.below(3)),
            max_gap: perhaps(random, parameter),
            trigger_index: index.as_deref(),
            uncertainty: usually(random, &[0, 7, 1 << 60]),
            clock: random.among(&[None, Some("x"), Some("y")]),
            ..Stream::new(name, kind(random), times)
        })
        .collect();
    let settings = Settings {
        reference: if edges.is_some() { "edges" } else { NAMES[0] },
        edges: edges.as_deref(),
        period: perhaps(random, parameter),
        trim_max: parameter(random),
        ceiling: parameter(random),
    };
    let samples: usize = streams.iter().map(|s| s.times.len()).sum::<usize>() + edges.as_ref().map_or(0, Vec::len);
    let figures = bounded(samples * 8, || measure(&streams, &settings))?;
    check_figures(&figures, samples);
    Ok(())
}

fn monitor(random: &mut Random) -> Result<(), SyncError> {
    let count = 1 + random.below(NAMES.len() as i64 - 1) as usize;
    let edges = random.one_in(3);
    let mut stream = |(at, name): (usize, &&str)| {
        let kind = if at == 0 { Kind::Triggered } else { kind(random) };
        MonitorStream {
            name: (*name).to_owned(),
            kind,
            period_ns: Some(parameter(random)),
            decimate: usually(random, &[1, 1, 2]),
            phase: 0,
            reorder_ns: usually(random, &[0, 0, 1000]),
            indexed: random.one_in(3),
        }
    };
    let streams: Vec<MonitorStream> = NAMES.iter().take(count).enumerate().map(&mut stream).collect();
    let mut config = MonitorConfig::new(streams, NAMES[0], parameter(random), parameter(random));
    config.keep = random.one_in(2);
    if edges {
        (config.edges, config.reference) = (true, "edges".to_owned());
    }
    let keep = config.keep;
    let mut monitor = Monitor::new(config)?;
    let first = random.odd();
    let columns: Vec<Vec<i64>> = (0..=count).map(|_| column_from(random, first, 15)).collect();
    let samples: usize = columns.iter().map(Vec::len).sum();
    // 8 B a sample in the window, 16 with its index, as much again where they are kept, and tables grow by doubling.
    let (mut finals, mut last) = (0, None);
    let figures = bounded(samples * 16, || {
        let mut places = vec![0_usize; columns.len()];
        let mut pulse = 0;
        for _ in 0..samples {
            let at = random.below(columns.len() as i64) as usize;
            let Some(&time) = columns[at].get(places[at]) else { continue };
            places[at] += 1;
            pulse += i64::from(at == 0);
            if at == count {
                monitor.push_edge(time);
            } else {
                let index = if random.one_in(50) { random.odd() } else { pulse + random.below(2) };
                monitor.push_indexed(at, time, index);
            }
            match random.below(60) {
                0 => monitor.void_index(at),
                1 => monitor.push(at, random.odd()),
                _ => {}
            }
            if random.one_in(3) {
                let now = if random.one_in(20) { random.odd() } else { time };
                monitor.advance(now, |tick| {
                    assert!(last.is_none_or(|last| last < tick.reference_ns));
                    last = Some(tick.reference_ns);
                    finals += 1;
                });
            }
            assert!(monitor.held() <= 3 * samples + 60);
        }
        monitor.close()
    });
    assert!(finals <= 2 * samples);
    match figures {
        Ok(figures) => check_figures(&figures, 2 * samples),
        Err(SyncError::NotKept) => assert!(!keep),
        Err(_) => {}
    }
    Ok(())
}

fn stamps(random: &mut Random) -> Result<(), SyncError> {
    let times = column(random);
    let beside = |random: &mut Random, times: &[i64]| {
        perhaps(random, |random| times.iter().map(|t| t.wrapping_add(random.odd() >> 40)).collect::<Vec<i64>>())
    };
    let (sequence, arrival) = (beside(random, &times), beside(random, &times));
    let beside = Beside {
        sequence: sequence.as_deref(),
        arrival: arrival.as_deref(),
        period: perhaps(random, parameter),
        tick: perhaps(random, parameter),
        silence_max: parameter(random),
    };
    let scan = bounded(times.len() * 8, || scan_stamps(&times, &beside))?;
    assert!(scan.samples <= times.len() && scan.distinct + scan.duplicate == scan.samples);
    assert!(scan.steps.len() <= 16 && scan.jump_count + scan.wrap_count + scan.tai_utc_count < times.len().max(1));
    Ok(())
}

fn clock(random: &mut Random) -> Result<(), SyncError> {
    let (ticks, mut arrivals) = (column(random), column(random));
    arrivals.resize(ticks.len(), ABSENT);
    let config = ClockConfig {
        counter: Counter {
            bits: random.among(&[8, 16, 32, 63, 64, 1, 99]),
            tick_num: usually(random, &[1, 1000]),
            tick_den: usually(random, &[1, 3]),
        },
        min_delay_ns: usually(random, &[0]),
        min_delay_bound_ns: usually(random, &[0]),
        identity: random.one_in(5),
        ..ClockConfig::default()
    };
    let all = bounded(ticks.len() * 16, || map_clock(&ticks, &arrivals, config))?;
    let mut map = ClockMap::new(config)?;
    for (at, (&tick, &arrival)) in ticks.iter().zip(&arrivals).enumerate() {
        if tick != ABSENT {
            let mapped = map.push(tick, (arrival != ABSENT).then_some(arrival));
            let columns =
                (all.device_ns[at], all.rig_ns[at], all.uncertainty_ns[at], all.splits.contains(&(at as i64)));
            assert_eq!((mapped.device_ns, mapped.rig_ns, mapped.uncertainty_ns, mapped.split), columns);
        }
    }
    Ok(())
}

fn joined(reference: &[i64], times: &[i64], tolerance: i64) -> Result<(Vec<u32>, Vec<i64>), SyncError> {
    let (mut positions, mut offsets) = (vec![7; reference.len()], vec![7; reference.len()]);
    join::nearest(reference, times, tolerance, &mut positions, &mut offsets)?;
    Ok((positions, offsets))
}

fn columns(random: &mut Random) -> Result<(), SyncError> {
    let values = column(random);
    let den = 1 + random.below(i64::from(u32::MAX) - 1) as u32;
    let num = 1 + random.below(i64::from(den)) as u32;
    let found = bounded(values.len() * 8, || quantile(&values, (num, den)));
    let mut sorted: Vec<i64> = values.iter().copied().filter(|&v| v != ABSENT).collect();
    sorted.sort_unstable();
    let rank = (sorted.len() as u128 * u128::from(num)).div_ceil(u128::from(den)) as usize;
    assert_eq!(found, sorted.get(rank.wrapping_sub(1)).copied());

    let (mut reference, mut times) = (column(random), values);
    if random.one_in(2) {
        reference.sort_unstable();
        times.sort_unstable();
    }
    let tolerance = parameter(random);
    let given = reference.len() + times.len();
    let (positions, offsets) = bounded(given * 8, || joined(&reference, &times, tolerance))?;
    for ((&t, &at), &offset) in reference.iter().zip(&positions).zip(&offsets) {
        assert_eq!(offset, times.get(at as usize).map_or(ABSENT, |time| time - t));
    }
    Ok(())
}

/// What a call gives, after it has needed no more memory than its input of so many bytes accounts for.
fn bounded<T>(bytes: usize, call: impl FnOnce() -> T) -> T {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let out = call();
    let needed = MEMORY.peak_usage().saturating_sub(before);
    assert!(needed <= CONSTANT + FACTOR * bytes, "{needed} bytes of memory for {bytes} bytes of input");
    out
}

/// One test, so that nobody else asks for memory meanwhile.
#[test]
fn arbitrary_bytes_as_streams() {
    let first = setting("FUZZ_SEED", 1);
    let mut accepted = [0_u64; 5];
    let rounds = setting("FUZZ_ROUNDS", 1500);
    for seed in first..first + rounds {
        let targets = [batch, monitor, stamps, clock, columns];
        for (number, target) in targets.iter().enumerate() {
            let outcome = std::panic::catch_unwind(|| target(&mut Random(seed)));
            match outcome {
                Ok(Ok(())) => accepted[number] += 1,
                Ok(Err(error)) => assert!(error.to_string().len() > 20),
                Err(_) => panic!("input {seed} of target {number}: FUZZ_ROUNDS=1 FUZZ_SEED={seed} runs it alone"),
            }
        }
    }
    // Inputs that are all refused at the door try nothing.
    assert!(rounds < 100 || accepted.iter().all(|n| n * 8 > rounds), "{accepted:?} of {rounds} were taken in");
}
