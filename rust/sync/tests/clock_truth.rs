//! The clock map against the truth of simulated devices, over many seeds (sync.md section 1).

#![expect(clippy::print_stdout, reason = "the accuracy is a figure to be read: run with --nocapture")]

mod simulated;

use std::time::Instant;

use firsthand_sync::SyncError;
use firsthand_sync::clock::{ClockConfig, ClockMap};
use firsthand_sync::unwrap::Counter;
use simulated::{Crystal, MIN_DELAY_NS, MS, Random, Reading, SECOND, Transport, USB, readings};

/// What goes on besides the delay of every reading.
#[derive(Debug, Clone, Copy)]
enum Course {
    Steady,
    /// Silences of 0.5 to 8 s, and now and then one that is longer than the window.
    Gaps,
}

struct Scenario {
    name: &'static str,
    transport: Transport,
    course: Course,
}

const PARETO: Transport = Transport { tail_ns: 100_000.0, pareto: Some((200_000.0, 1.5)), spike_every: 500, ..USB };

const SCENARIOS: [Scenario; 7] = [
    Scenario { name: "usb", transport: USB, course: Course::Steady },
    Scenario { name: "pareto tail", transport: PARETO, course: Course::Steady },
    Scenario { name: "slow tail", transport: Transport { tail_ns: 1e6, ..USB }, course: Course::Steady },
    Scenario {
        name: "control transfers",
        transport: Transport { control: Some((2 * SECOND, SECOND / 4)), ..USB },
        course: Course::Steady,
    },
    Scenario {
        name: "long control",
        transport: Transport { control: Some((9 * SECOND, 2 * SECOND)), ..USB },
        course: Course::Steady,
    },
    Scenario { name: "gaps", transport: USB, course: Course::Gaps },
    Scenario { name: "batches of 10", transport: Transport { batch: 10, ..USB }, course: Course::Steady },
];

fn with_gaps(mut readings: Vec<Reading>, random: &mut Random) -> Vec<Reading> {
    let (mut quiet_from, mut quiet_to) = (0, 0);
    readings.retain(|reading| {
        if reading.truth_ns > quiet_to {
            let long = random.below(6) == 0;
            quiet_from = reading.truth_ns + (random.between(1.0, 15.0) * 1e9) as i64;
            quiet_to = quiet_from + (if long { 12.0 } else { random.between(0.5, 8.0) } * 1e9) as i64;
        }
        reading.truth_ns < quiet_from
    });
    readings
}

#[derive(Debug, Default)]
struct Tally {
    errors: Vec<i64>,
    bounds: Vec<i64>,
    windows: usize,
    bad_windows: usize,
    splits: u64,
}

impl Tally {
    /// A window is a second of the take; it is good if the truth lies within the stated uncertainty at every one of its
    /// readings, settled or not. Accuracy is of settled readings.
    fn take(&mut self, readings: &[Reading]) -> Result<(), SyncError> {
        let mut map = ClockMap::new(config())?;
        let (mut second, mut good) = (i64::MIN, true);
        for r in readings {
            let mapped = map.push(r.device_ns, Some(r.arrival_ns));
            assert!(mapped.rig_ns <= r.arrival_ns - MIN_DELAY_NS, "{r:?} {mapped:?}");
            let error = (mapped.rig_ns - r.truth_ns).abs();
            if r.truth_ns / SECOND != second {
                self.windows += usize::from(second != i64::MIN);
                self.bad_windows += usize::from(!good);
                (second, good) = (r.truth_ns / SECOND, true);
            }
            good &= error <= mapped.uncertainty_ns;
            if map.settled() {
                self.errors.push(error);
                self.bounds.push(mapped.uncertainty_ns);
            }
        }
        self.windows += 1;
        self.bad_windows += usize::from(!good);
        self.splits += map.splits();
        Ok(())
    }

    fn rank(values: &mut [i64], thousandths: usize) -> i64 {
        values.sort_unstable();
        values.get((values.len() * thousandths / 1000).min(values.len().saturating_sub(1))).copied().unwrap_or(0)
    }
}

fn config() -> ClockConfig {
    ClockConfig { min_delay_ns: MIN_DELAY_NS, ..ClockConfig::default() }
}

fn campaign(seeds: u64, seconds: i64) -> Result<(), SyncError> {
    println!(
        "behind              Hz   windows  outside u    median      p99      max  u median    u p99    u max (ns)"
    );
    let (mut windows, mut bad) = (0, 0);
    for scenario in &SCENARIOS {
        for hz in [30, 60, 200, 1000] {
            let mut tally = Tally::default();
            for seed in 0..seeds {
                let mut random = Random(seed * 7919 + hz as u64);
                let crystal = Crystal::any(&mut random);
                let mut take = readings(&crystal, &scenario.transport, hz, seconds, &mut random);
                if matches!(scenario.course, Course::Gaps) {
                    take = with_gaps(take, &mut random);
                }
                tally.take(&take)?;
            }
            let [median, p99, max] = [500, 990, 1000].map(|rank| Tally::rank(&mut tally.errors, rank));
            let [u, u99, u_max] = [500, 990, 1000].map(|rank| Tally::rank(&mut tally.bounds, rank));
            println!(
                "{:17} {hz:4} {:9} {:10} {median:9} {p99:8} {max:8} {u:9} {u99:8} {u_max:8}",
                scenario.name, tally.windows, tally.bad_windows
            );
            // No clock steps here.
            assert_eq!(tally.splits, 0, "{}, {hz} Hz", scenario.name);
            assert!(median < 20_000, "{}, {hz} Hz: median error {median} ns", scenario.name);
            windows += tally.windows;
            bad += tally.bad_windows;
        }
    }
    println!("truth outside the stated uncertainty in {bad} of {windows} windows");
    assert!(1000 * bad <= windows, "{bad} of {windows} windows");
    Ok(())
}

#[test]
fn the_truth_lies_within_what_the_map_states() {
    campaign(3, 30).unwrap();
}

#[test]
#[ignore = "a large campaign: cargo test --release -p firsthand-sync --test clock_truth -- --ignored --nocapture"]
fn the_truth_lies_within_what_the_map_states_in_many_takes() {
    campaign(200, 120).unwrap();
}

/// The device clock steps once in each take, from 12 to 15 s after its first reading.
fn steps(seeds: u64, rates: &[i64]) -> Result<(), SyncError> {
    println!("behind            step ms    Hz  at once  later    s  not  readings outside u in a take");
    for (name, transport) in [("usb", USB), ("no spikes", Transport { spike_every: 0, ..USB }), ("pareto tail", PARETO)]
    {
        for step_ms in [1, 2, 5, 15, 30, 600, 37_000, 3_600_000, -1, -2, -5, -15, -30, -600, -2000, -3_600_000] {
            for &hz in rates {
                let (mut at_once, mut later, mut missed, mut outside) = (0, Vec::new(), 0, 0);
                for seed in 0..seeds {
                    let mut random = Random(seed * 104_729 + hz as u64);
                    let crystal = Crystal { curve: (0.0, 100.0), ..Crystal::any(&mut random) };
                    let mut take = readings(&crystal, &transport, hz, 26, &mut random);
                    let at = 12 * hz as usize + random.below(3 * hz as u64) as usize;
                    take.iter_mut().skip(at).for_each(|r| r.device_ns += step_ms * MS);
                    let mut map = ClockMap::new(config())?;
                    let mut splits = Vec::new();
                    for (i, r) in take.iter().enumerate() {
                        let mapped = map.push(r.device_ns, Some(r.arrival_ns));
                        splits.extend(mapped.split.then_some(i));
                        outside += usize::from((mapped.rig_ns - r.truth_ns).abs() > mapped.uncertainty_ns);
                    }
                    match splits[..] {
                        [] => missed += 1,
                        [split] if split == at => at_once += 1,
                        [split] if split > at => later.push((split - at) as i64 * 1000 / hz),
                        _ => assert!(
                            splits.is_empty(),
                            "{name}, {step_ms} ms, {hz} Hz, seed {seed}: step at {at}, not {splits:?}"
                        ),
                    }
                    // The rate is the crystal's before and after: nothing bends.
                    let ppm = map.rate_ppb() as f64 / 1e3 + crystal.ppm;
                    assert!(ppm.abs() < 30.0, "{name}, {step_ms} ms, {hz} Hz, seed {seed}: {ppm} ppm off");
                }
                let slowest_ms = later.iter().copied().max().unwrap_or(0);
                println!(
                    "{name:16} {step_ms:8} {hz:5} {at_once:8} {:6} {:4.1} {missed:4} {:8}",
                    later.len(),
                    slowest_ms as f64 / 1e3,
                    outside / seeds as usize
                );
                // A step forward is found by the first quick reading, one back beyond all delays at once, and any other
                // after 4 s that no quick reading interrupts.
                let limit_ms = if step_ms > 0 { 500 } else { 6_000 };
                assert!(slowest_ms <= limit_ms, "{name}, {step_ms} ms, {hz} Hz: {slowest_ms} ms");
                assert!(step_ms.abs() < 2 || missed == 0, "{name}, {step_ms} ms, {hz} Hz: {missed} not found");
            }
        }
    }
    Ok(())
}

#[test]
fn a_step_splits_the_map_and_never_bends_it() {
    steps(2, &[60, 200]).unwrap();
}

#[test]
#[ignore = "a large campaign: cargo test --release -p firsthand-sync --test clock_truth -- --ignored --nocapture"]
fn a_step_splits_the_map_and_never_bends_it_in_many_takes() {
    steps(50, &[30, 60, 200, 1000]).unwrap();
}

#[test]
#[ignore = "a figure of this machine: cargo test --release -p firsthand-sync --test clock_truth cost -- --ignored --nocapture"]
fn cost_of_a_reading() {
    let mut random = Random(1);
    let take = readings(&Crystal::any(&mut random), &USB, 1000, 36_000, &mut random);
    for (what, tick_num, tick_den) in [("64 bits of 1 ns", 1, 1), ("32 bits of 80/3 ns", 80, 3)] {
        let bits = if tick_den == 1 { 64 } else { 32 };
        let counter = Counter { bits, tick_num, tick_den };
        let count = |device_ns: i64| (device_ns / tick_num * tick_den) % (1_i64 << bits.min(62));
        let (ticks, arrivals): (Vec<_>, Vec<_>) = take.iter().map(|r| (count(r.device_ns), r.arrival_ns)).unzip();
        let mut map = ClockMap::new(ClockConfig { counter, ..config() }).unwrap();
        let mut hours = Vec::new();
        for (ticks, arrivals) in ticks.chunks(3_600_000).zip(arrivals.chunks(3_600_000)) {
            let start = Instant::now();
            let mapped: Vec<_> = ticks.iter().zip(arrivals).map(|(&t, &a)| map.push(t, Some(a))).collect();
            hours.push(start.elapsed().as_nanos() / mapped.len() as u128);
        }
        hours.sort_unstable();
        let total_s = hours.iter().sum::<u128>() * 3_600_000 / 1_000_000_000;
        println!(
            "{what}: 10 h of 1 kHz, {} readings in {total_s} s; of each hour {} to {} ns a reading",
            take.len(),
            hours.first().unwrap(),
            hours.last().unwrap()
        );
        assert_eq!(map.splits(), 0);
    }
}
