//! The fit to trigger edges against the truth of simulated devices (sync.md section 1).

#![expect(clippy::print_stdout, reason = "the accuracy is a figure to be read: run with --nocapture")]

mod simulated;

use firsthand_sync::clock::{ClockConfig, UNBOUNDED_NS, map_clock};
use firsthand_sync::unwrap::Counter;
use firsthand_sync::{EdgeConfig, EdgeMap, EdgeMapped, EdgeReadings, Exposure, SyncError, map_clock_by_edges};
use simulated::{Crystal, MIN_DELAY_NS, MS, Random, Reading, SECOND, Transport, USB, readings};

const AFTER_EDGE_NS: i64 = 3 * MS;

/// A take of a triggered camera: what it said, and the edges as they were stamped.
#[derive(Debug, Clone)]
struct Take {
    readings: Vec<Reading>,
    edges: Vec<(i64, i64)>,
}

/// Edges jitter by `jitter_ns` (one sigma) where they are stamped.
fn take(transport: &Transport, hz: i64, seconds: i64, jitter_ns: f64, random: &mut Random) -> (Crystal, Take) {
    let crystal = Crystal::any(random);
    let readings = readings(&crystal, transport, hz, seconds, random);
    let edge = |r: &Reading| r.truth_ns - AFTER_EDGE_NS + (random.normal() * jitter_ns) as i64;
    let edges = readings.iter().map(edge).collect::<Vec<_>>().into_iter().enumerate();
    let edges = edges.map(|(index, time_ns)| (index as i64, time_ns)).collect();
    (crystal, Take { readings, edges })
}

fn config(calibrated: bool) -> EdgeConfig {
    let clock = ClockConfig {
        counter: Counter { bits: 32, tick_num: 1000, tick_den: 1 },
        min_delay_ns: if calibrated { MIN_DELAY_NS } else { 0 },
        min_delay_bound_ns: if calibrated { 200_000 } else { 0 },
        ..ClockConfig::default()
    };
    EdgeConfig { clock, calibrated, bound_ns: 0 }
}

/// What the device's counter shows: 32 bits of a microsecond, which wrap.
fn ticks(reading: &Reading) -> i64 {
    (reading.device_ns / 1000) % (1 << 32)
}

fn exposure(index: Option<i64>) -> Option<Exposure> {
    Some(Exposure { trigger_index: index, after_edge_ns: AFTER_EDGE_NS })
}

/// The exposures of a take with their pulse numbers or without, each edge given before its reading.
fn run(map: &mut EdgeMap, take: &Take, indexed: bool) -> Result<Vec<EdgeMapped>, SyncError> {
    for &(index, time_ns) in &take.edges {
        map.push_edge(index, time_ns)?;
    }
    let index = |i: usize| Some(i as i64).filter(|_| indexed);
    let push = |(i, r): (usize, &Reading)| map.push(ticks(r), Some(r.arrival_ns), exposure(index(i)));
    Ok(take.readings.iter().enumerate().map(push).collect())
}

/// How well a map did, over all readings or from a time on.
#[derive(Debug, Default)]
struct Tally {
    errors: Vec<i64>,
    bounds: Vec<i64>,
    windows: usize,
    bad_windows: usize,
    refused: u64,
    splits: u64,
}

impl Tally {
    /// A window is a second of the take, as in `clock_truth.rs`.
    fn add(&mut self, map: &EdgeMap, mapped: &[EdgeMapped], readings: &[Reading]) {
        let (mut second, mut good) = (i64::MIN, true);
        for (m, r) in mapped.iter().zip(readings) {
            if r.truth_ns / SECOND != second {
                self.windows += usize::from(second != i64::MIN);
                self.bad_windows += usize::from(!good);
                (second, good) = (r.truth_ns / SECOND, true);
            }
            let error = (m.mapped.rig_ns - r.truth_ns).abs();
            good &= error <= m.mapped.uncertainty_ns;
            self.errors.push(error);
            self.bounds.push(m.mapped.uncertainty_ns);
        }
        self.windows += 1;
        self.bad_windows += usize::from(!good);
        self.refused += map.refused();
        self.splits += map.splits();
    }

    fn rank(values: &mut [i64], thousandths: usize) -> i64 {
        values.sort_unstable();
        values.get(values.len() * thousandths / 1000).copied().unwrap_or(0)
    }
}

fn campaign(seeds: u64, seconds: i64) -> Result<(), SyncError> {
    println!(" paired by  Hz  sigma  windows  outside u  median    p99  u median   u p99 (ns)");
    let (mut windows, mut bad) = (0, 0);
    for (indexed, paired) in [(true, "index"), (false, "time")] {
        for hz in [10, 30, 60, 200, 1000] {
            for jitter_ns in [0.0, 100.0, 300.0, 1000.0] {
                let mut tally = Tally::default();
                for seed in 0..seeds {
                    let mut random = Random(seed * 7919 + hz as u64);
                    let (_, take) = take(&USB, hz, seconds, jitter_ns, &mut random);
                    let mut map = EdgeMap::new(config(!indexed))?;
                    let mapped = run(&mut map, &take, indexed)?;
                    tally.add(&map, &mapped, &take.readings);
                }
                let (median, p99) = (Tally::rank(&mut tally.errors, 500), Tally::rank(&mut tally.errors, 990));
                let (u, u99) = (Tally::rank(&mut tally.bounds, 500), Tally::rank(&mut tally.bounds, 990));
                println!(
                    "{paired:>10} {hz:4} {jitter_ns:5} {:8} {:10} {median:7} {p99:6} {u:9} {u99:9}",
                    tally.windows, tally.bad_windows
                );
                assert!(median < 2_000, "{paired}, {hz} Hz, jitter {jitter_ns} ns: median error {median} ns");
                assert_eq!(tally.splits, 0, "{paired}, {hz} Hz, jitter {jitter_ns} ns");
                windows += tally.windows;
                bad += tally.bad_windows;
            }
        }
    }
    println!("truth outside the stated uncertainty in {bad} of {windows} windows");
    assert!(1000 * bad <= windows);
    Ok(())
}

#[test]
fn the_fit_finds_the_truth_within_what_it_states() {
    campaign(2, 20).unwrap();
}

#[test]
#[ignore = "a large campaign: cargo test --release -p firsthand-sync --test edge_fit -- --ignored --nocapture"]
fn the_fit_finds_the_truth_within_what_it_states_in_many_takes() {
    campaign(100, 120).unwrap();
}

#[test]
fn a_device_that_counts_pulses_needs_no_delay() {
    let mut random = Random(1);
    // 40 ms under way at least, and nobody knows.
    let (_, mut take) = take(&USB, 60, 20, 300.0, &mut random);
    take.readings.iter_mut().for_each(|r| r.arrival_ns += 40 * MS);
    let mut map = EdgeMap::new(config(false)).unwrap();
    let mapped = run(&mut map, &take, true).unwrap();
    let (last, truth) = (mapped[1100], take.readings[1100].truth_ns);
    assert!((last.mapped.rig_ns - truth).abs() < 2_000 && last.mapped.uncertainty_ns < 5_000);
    assert!(last.by_arrival.rig_ns - truth > 41 * MS);
    assert_eq!((map.pairs(), map.refused(), map.future()), (1200, 0, 0));
}

#[test]
fn without_count_and_without_delay_nothing_can_be_paired_and_the_map_says_so() {
    let (_, take) = take(&USB, 60, 10, 300.0, &mut Random(2));
    let mut map = EdgeMap::new(config(false)).unwrap();
    let mapped = run(&mut map, &take, false).unwrap();
    assert_eq!(map.pairs(), 0);
    assert!(mapped.iter().all(|m| m.mapped.uncertainty_ns == UNBOUNDED_NS));
}

#[test]
fn the_rate_is_that_of_the_crystal() {
    let (crystal, take) = take(&USB, 60, 20, 300.0, &mut Random(3));
    let mut map = EdgeMap::new(config(true)).unwrap();
    run(&mut map, &take, false).unwrap();
    let at = take.readings.last().map_or(0, |r| r.truth_ns);
    let ppb = crystal.device_ns(at + SECOND / 2) - crystal.device_ns(at - SECOND / 2) - SECOND;
    assert!((map.rate_ppb() + ppb).abs() < 1_000, "{} for {ppb} ppb", map.rate_ppb());
}

#[test]
fn pulses_and_pictures_that_are_missing_shift_nothing() {
    for indexed in [true, false] {
        let (_, mut take) = take(&USB, 60, 20, 300.0, &mut Random(4));
        let mut numbered: Vec<_> = take.readings.iter().copied().zip(0..).collect();
        // Pulses that gave no picture, and edges that the rig did not see.
        numbered.retain(|&(_, index)| index % 37 != 5 && !(500..530).contains(&index));
        take.edges.retain(|&(index, _)| index % 41 != 7);
        let mut map = EdgeMap::new(config(!indexed)).unwrap();
        take.edges.iter().for_each(|&(index, time_ns)| map.push_edge(index, time_ns).unwrap());
        for (r, index) in numbered.into_iter() {
            let m = map.push(ticks(&r), Some(r.arrival_ns), exposure(Some(index).filter(|_| indexed))).mapped;
            assert!((m.rig_ns - r.truth_ns).abs() <= m.uncertainty_ns, "pulse {index}: {m:?}");
            assert!(index < 200 || m.uncertainty_ns < 5_000, "pulse {index}: {m:?}");
        }
        assert_eq!((map.refused(), map.splits()), (0, 0));
    }
}

#[test]
fn a_step_of_the_device_clock_splits_the_fit_and_bends_nothing() {
    for indexed in [true, false] {
        // Pulses are 16.7 ms apart; one step is as long as three of them.
        for step in [100_000, MS, -MS, -5 * MS, 50_000_001, 700 * MS, -37 * SECOND, 3600 * SECOND] {
            let transport = Transport { spike_every: 0, ..USB };
            let (_, take) = take(&transport, 60, 20, 300.0, &mut Random(5));
            let mut stepped = take.clone();
            stepped.readings[600..].iter_mut().for_each(|r| r.device_ns += step);
            let before = run(&mut EdgeMap::new(config(!indexed)).unwrap(), &take, indexed).unwrap();
            let mut map = EdgeMap::new(config(!indexed)).unwrap();
            let mapped = run(&mut map, &stepped, indexed).unwrap();
            assert_eq!(mapped[..600], before[..600], "{step}");
            let splits: Vec<_> = (0..mapped.len()).filter(|&i| mapped[i].mapped.split).collect();
            assert!(!splits.is_empty() && splits.iter().all(|i| (600..860).contains(i)), "{step}: {splits:?}");
            for (i, (m, r)) in mapped.iter().zip(&stepped.readings).enumerate() {
                // A step back is a delay at first.
                let covered = (m.mapped.rig_ns - r.truth_ns).abs() <= m.mapped.uncertainty_ns;
                assert!(covered || (600..609).contains(&i), "{step}, reading {i}: {m:?} {r:?}");
            }
            let last = mapped[1190].mapped;
            assert!((last.rig_ns - stepped.readings[1190].truth_ns).abs() < 2_000, "{step}: {last:?}");
        }
    }
}

#[test]
fn a_device_that_miscounts_its_pulses_is_refused_and_moves_nothing() {
    let (_, take) = take(&USB, 60, 20, 300.0, &mut Random(6));
    let mut map = EdgeMap::new(config(true)).unwrap();
    take.edges.iter().for_each(|&(index, time_ns)| map.push_edge(index, time_ns).unwrap());
    for (i, r) in take.readings.iter().enumerate() {
        // From its 500th picture on it says the number of the pulse before.
        let index = i as i64 - i64::from(i >= 500);
        let m = map.push(ticks(r), Some(r.arrival_ns), exposure(Some(index))).mapped;
        assert!((m.rig_ns - r.truth_ns).abs() <= m.uncertainty_ns);
        // Until the pairs before have left the window, time is as true as ever, and the doubt is stated.
        assert!(i >= 620 || (m.rig_ns - r.truth_ns).abs() < 12_000);
        assert_eq!(m.uncertainty_ns > 16 * MS, i >= 500, "picture {i}: {m:?}");
    }
    assert_eq!(map.splits(), 0);
    assert!(map.refused() >= 100, "{}", map.refused());
}

#[test]
fn one_wrong_pair_is_no_pair() {
    let (_, mut take) = take(&USB, 60, 20, 300.0, &mut Random(7));
    for (wrong, off) in [(0, 150_000), (3, 1_000_000), (700, 60_000), (701, -80_000), (900, -5_000_000)] {
        take.edges[wrong].1 += off;
    }
    let mut map = EdgeMap::new(config(true)).unwrap();
    let mapped = run(&mut map, &take, true).unwrap();
    for (i, (m, r)) in mapped.iter().zip(&take.readings).enumerate() {
        let error = (m.mapped.rig_ns - r.truth_ns).abs();
        assert!(error <= m.mapped.uncertainty_ns, "{i}: {m:?}");
        assert!(i < 200 || error < 2_000, "{i}: {m:?}");
    }
    assert_eq!((map.splits(), map.refused()), (0, 3));
}

#[test]
fn the_other_streams_of_the_device_are_mapped_by_its_pairs() {
    // 60 Hz pictures and 200 Hz of an IMU on one clock of 32 bits, which wraps.
    let (crystal, take) = take(&USB, 60, 20, 300.0, &mut Random(8));
    let shift = (1 << 32) * 1000 - crystal.device_ns(take.readings[600].truth_ns);
    let imu = readings(&crystal, &USB, 200, 20, &mut Random(9));
    let pictures = take.readings.iter().enumerate().map(|(i, r)| (*r, exposure(Some(i as i64))));
    let mut all: Vec<_> = pictures.chain(imu.iter().map(|r| (*r, None))).collect();
    all.sort_by_key(|(r, _)| r.arrival_ns);
    let mut map = EdgeMap::new(config(true)).unwrap();
    take.edges.iter().for_each(|&(index, time_ns)| map.push_edge(index, time_ns).unwrap());
    for (i, (r, exposure)) in all.iter().enumerate() {
        let shifted = Reading { device_ns: r.device_ns + shift, ..*r };
        let m = map.push(ticks(&shifted), Some(r.arrival_ns), *exposure).mapped;
        assert!((m.rig_ns - r.truth_ns).abs() <= m.uncertainty_ns, "{i}: {m:?}");
        assert!(i < 300 || (m.rig_ns - r.truth_ns).abs() < 5_000, "{i}: {m:?}");
    }
    assert_eq!((map.arrivals().wraps(), map.splits()), (1, 0));
}

#[test]
fn an_edge_counts_for_a_reading_only_if_it_was_known_by_then() {
    for indexed in [true, false] {
        let (_, take) = take(&USB, 60, 10, 300.0, &mut Random(10));
        let whole = run(&mut EdgeMap::new(config(!indexed)).unwrap(), &take, indexed).unwrap();
        // Told of each edge as it happens: just before the reading that could first have been caused by it.
        let mut map = EdgeMap::new(config(!indexed)).unwrap();
        let mut edges = take.edges.iter().peekable();
        for (i, r) in take.readings.iter().enumerate() {
            while let Some(&(index, time_ns)) = edges.next_if(|(_, ns)| ns + AFTER_EDGE_NS <= r.arrival_ns) {
                map.push_edge(index, time_ns).unwrap();
            }
            let index = Some(i as i64).filter(|_| indexed);
            assert_eq!(map.push(ticks(r), Some(r.arrival_ns), exposure(index)), whole[i]);
        }
        // And a prefix maps as it did.
        for cut in [1, 9, 100, 333] {
            let prefix = Take { readings: take.readings[..cut].to_vec(), ..take.clone() };
            assert_eq!(run(&mut EdgeMap::new(config(!indexed)).unwrap(), &prefix, indexed).unwrap(), whole[..cut]);
        }
    }
}

#[test]
fn a_batch_is_its_readings_one_by_one() {
    let (_, take) = take(&USB, 60, 10, 300.0, &mut Random(11));
    let ticks: Vec<_> = take.readings.iter().map(ticks).collect();
    let arrival_ns: Vec<_> = take.readings.iter().map(|r| r.arrival_ns).collect();
    let index: Vec<_> = (0..take.readings.len() as i64).collect();
    let after = vec![AFTER_EDGE_NS; ticks.len()];
    let columns = EdgeReadings { ticks: &ticks, arrival_ns: &arrival_ns, after_edge_ns: &after, trigger_index: &index };
    let (mapped, map) = map_clock_by_edges(columns, &take.edges, config(true)).unwrap();
    assert_eq!(mapped, run(&mut EdgeMap::new(config(true)).unwrap(), &take, true).unwrap());
    assert_eq!(map.pairs(), 600);
    let by_arrival = map_clock(&ticks, &arrival_ns, config(true).clock).unwrap();
    assert!(mapped.iter().map(|m| m.by_arrival.rig_ns).eq(by_arrival.rig_ns));
    assert!(mapped.iter().map(|m| m.by_arrival.uncertainty_ns).eq(by_arrival.uncertainty_ns));
    let short = EdgeReadings { after_edge_ns: &after[1..], ..columns };
    assert!(map_clock_by_edges(short, &take.edges, config(true)).is_err());
}

#[test]
fn edges_out_of_order_and_bounds_that_make_no_sense_are_refused() {
    let mut map = EdgeMap::new(config(true)).unwrap();
    map.push_edge(3, 1000).unwrap();
    for (index, time_ns) in [(3, 1001), (2, 1001), (4, 1000), (4, i64::MIN)] {
        assert!(map.push_edge(index, time_ns).is_err(), "{index} {time_ns}");
    }
    map.push_edge(7, 1001).unwrap();
    for bound_ns in [-1, SECOND + 1] {
        assert!(EdgeMap::new(EdgeConfig { bound_ns, ..config(true) }).is_err());
    }
}

#[test]
fn nothing_overflows_whatever_is_pushed() {
    let mut random = Random(12);
    let any = |random: &mut Random| match random.below(4) {
        0 => [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX][random.below(7) as usize],
        1 => random.bits() as i64,
        _ => random.below(3 * SECOND as u64) as i64,
    };
    for case in 0..300 {
        let counter = [
            Counter::default(),
            Counter { bits: 32, tick_num: i64::MAX, tick_den: 1 },
            Counter { bits: 64, tick_num: 1, tick_den: i64::MAX },
        ][case % 3];
        let clock = ClockConfig { counter, ..config(true).clock };
        let mut map = EdgeMap::new(EdgeConfig { clock, calibrated: case % 2 == 0, bound_ns: 5 }).unwrap();
        let mut edges: Vec<_> = (0..20).map(|_| any(&mut random)).filter(|&ns| ns != i64::MIN).collect();
        edges.sort_unstable();
        edges.dedup();
        for (index, time_ns) in (0..).zip(edges) {
            map.push_edge(index, time_ns).unwrap();
        }
        for _ in 0..100 {
            let exposure = Exposure {
                trigger_index: Some(random.below(22) as i64).filter(|i| i % 3 > 0),
                after_edge_ns: any(&mut random),
            };
            let arrival = Some(any(&mut random)).filter(|&ns| ns != i64::MIN);
            let m = map.push(any(&mut random), arrival, Some(exposure)).mapped;
            assert!(m.rig_ns == i64::MIN || m.uncertainty_ns >= 0);
        }
    }
}
