//! How well the clock map finds rig time again behind a simulated crystal and transport.

#![expect(clippy::print_stdout, reason = "the accuracy is a figure to be read: run with --nocapture")]

mod simulated;

use firsthand_sync::SyncError;
use firsthand_sync::clock::{ClockConfig, ClockMap, Mapped, UNBOUNDED_NS};
use firsthand_sync::unwrap::Counter;
use simulated::{Crystal, MIN_DELAY_NS, Random, Transport, USB, readings};

/// A crystal with a temperature curve behind a transport that delays by `MIN_DELAY_NS` at least; deterministic by seed.
#[derive(Clone, Copy)]
struct Device {
    seed: u64,
    ppm: f64,
    /// Amplitude in ppm and period in s of the temperature's sine.
    curve: (f64, f64),
    transport: Transport,
}

const STEADY: Device = Device { seed: 1, ppm: 80.0, curve: (8.0, 300.0), transport: USB };
const WITHOUT_SPIKES: Device = Device { transport: Transport { spike_every: 0, ..USB }, ..STEADY };

impl Device {
    /// (truth, device, arrival) of a steady stream.
    fn readings(self, hz: i64, seconds: i64) -> Vec<(i64, i64, i64)> {
        let crystal = Crystal { ppm: self.ppm, curve: self.curve, turned: 0.25 };
        let readings = readings(&crystal, &self.transport, hz, seconds, &mut Random(self.seed));
        readings.iter().map(|r| (r.truth_ns, r.device_ns, r.arrival_ns)).collect()
    }
}

fn config() -> ClockConfig {
    ClockConfig { min_delay_ns: MIN_DELAY_NS, min_delay_bound_ns: 0, ..ClockConfig::default() }
}

fn run(map: &mut ClockMap, readings: &[(i64, i64, i64)]) -> Vec<Mapped> {
    readings.iter().map(|&(_, device, arrival)| map.push(device, Some(arrival))).collect()
}

struct Accuracy {
    median_ns: i64,
    p99_ns: i64,
    max_ns: i64,
    uncertainty_median_ns: i64,
    dishonest: usize,
    first_settled_ns: Option<i64>,
    splits: u64,
}

/// Errors of the readings from the first settled one on; `dishonest` counts all whose error is over the uncertainty.
fn accuracy(device: Device, hz: i64, seconds: i64) -> Result<Accuracy, SyncError> {
    let readings = device.readings(hz, seconds);
    let mut map = ClockMap::new(config())?;
    let (mut errors, mut bounds) = (Vec::new(), Vec::new());
    let (mut dishonest, mut first_settled_ns) = (0, None);
    for &(truth, device, arrival) in &readings {
        let mapped = map.push(device, Some(arrival));
        let error = (mapped.rig_ns - truth).abs();
        assert!(mapped.rig_ns + MIN_DELAY_NS <= arrival);
        dishonest += usize::from(error > mapped.uncertainty_ns);
        if map.settled() && first_settled_ns.is_none() {
            first_settled_ns = Some(truth - readings[0].0);
        }
        if first_settled_ns.is_some() {
            errors.push(error);
            bounds.push(mapped.uncertainty_ns);
        }
    }
    errors.sort_unstable();
    bounds.sort_unstable();
    let rank = |values: &[i64], num: usize| values.get(values.len() * num / 100).copied().unwrap_or(0);
    Ok(Accuracy {
        median_ns: rank(&errors, 50),
        p99_ns: rank(&errors, 99),
        max_ns: errors.last().copied().unwrap_or(0),
        uncertainty_median_ns: rank(&bounds, 50),
        dishonest,
        first_settled_ns,
        splits: map.splits(),
    })
}

#[test]
fn accuracy_behind_a_one_sided_delay() {
    println!("   Hz  median  p99   max   u (median), ns, settled readings of 120 s; settled after ms");
    for (hz, median_ns, p99_ns) in
        [(30, 8_000, 40_000), (60, 4_000, 20_000), (200, 3_000, 10_000), (1000, 3_000, 8_000)]
    {
        for seed in 1..=3 {
            let a = accuracy(Device { seed, ..STEADY }, hz, 120).unwrap();
            let settled_ms = a.first_settled_ns.unwrap_or(i64::MAX) / 1_000_000;
            println!(
                "{hz:5} {:6} {:6} {:6} {:6} {settled_ms}",
                a.median_ns, a.p99_ns, a.max_ns, a.uncertainty_median_ns
            );
            assert!(a.median_ns < median_ns && a.p99_ns < p99_ns, "{hz} Hz, seed {seed}");
            assert_eq!((a.dishonest, a.splits), (0, 0), "{hz} Hz, seed {seed}");
            assert!((2_000..4_000).contains(&settled_ms), "{hz} Hz, seed {seed}: settled after {settled_ms} ms");
        }
    }
}

#[test]
fn accuracy_holds_for_slow_and_fast_crystals() {
    for ppm in [-100.0, -50.0, 0.0, 50.0, 100.0] {
        let a = accuracy(Device { ppm, curve: (15.0, 400.0), ..STEADY }, 60, 120).unwrap();
        assert!(a.median_ns < 4_000, "{ppm} ppm: {}", a.median_ns);
        assert_eq!((a.dishonest, a.splits), (0, 0), "{ppm} ppm");
    }
}

#[test]
fn the_rate_is_that_of_the_crystal() {
    let mut map = ClockMap::new(config()).unwrap();
    run(&mut map, &Device { ppm: -70.0, curve: (0.0, 1.0), ..STEADY }.readings(200, 30));
    assert!((map.rate_ppb() - 70_000).abs() < 2_000, "{} ppb", map.rate_ppb());
}

#[test]
fn a_prefix_maps_identically() {
    let readings = Device { ppm: 40.0, ..STEADY }.readings(60, 30);
    let whole = run(&mut ClockMap::new(config()).unwrap(), &readings);
    for cut in [1, 2, 59, 700, 1500] {
        assert_eq!(run(&mut ClockMap::new(config()).unwrap(), &readings[..cut]), whole[..cut]);
    }
}

/// Adds `step` to the device times from `at` on.
fn stepped(mut readings: Vec<(i64, i64, i64)>, at: usize, step: i64) -> Vec<(i64, i64, i64)> {
    readings.iter_mut().skip(at).for_each(|reading| reading.1 += step);
    readings
}

fn splits_of(mapped: &[Mapped]) -> Vec<usize> {
    mapped.iter().enumerate().filter(|(_, m)| m.split).map(|(i, _)| i).collect()
}

#[test]
fn a_step_forward_splits_at_once_and_bends_nothing() {
    for step in [2_000_000, 25_000_000, 600_000_000, 37_000_000_000, 4_294_967_296_000] {
        let plain = WITHOUT_SPIKES.readings(60, 20);
        let readings = stepped(plain.clone(), 600, step);
        let mut map = ClockMap::new(config()).unwrap();
        let mapped = run(&mut map, &readings);
        assert_eq!(splits_of(&mapped), [600], "{step}");
        assert_eq!(map.splits(), 1);
        let before = run(&mut ClockMap::new(config()).unwrap(), &plain[..600]);
        assert_eq!(mapped[..600], before, "{step}");
        for (m, (truth, _, _)) in mapped.iter().zip(&readings) {
            assert!((m.rig_ns - truth).abs() <= m.uncertainty_ns, "{step}");
        }
    }
}

#[test]
fn a_step_back_beyond_any_delay_splits_at_once() {
    let readings = stepped(STEADY.readings(60, 20), 600, -37_000_000_000);
    let mapped = run(&mut ClockMap::new(config()).unwrap(), &readings);
    assert_eq!(splits_of(&mapped), [600]);
}

#[test]
fn a_step_back_within_a_delay_is_believed_after_a_second() {
    for step in [-30_000_000, -600_000_000] {
        let readings = stepped(WITHOUT_SPIKES.readings(200, 20), 2000, step);
        let mapped = run(&mut ClockMap::new(config()).unwrap(), &readings);
        let splits = splits_of(&mapped);
        assert_eq!(splits.len(), 1, "{step}");
        assert!((2200..2210).contains(&splits[0]), "{step}: {splits:?}");
        // Until then the uncertainty says that something is the matter.
        let error = |i: usize| (mapped[i].rig_ns - readings[i].0).abs();
        assert!((2002..splits[0]).all(|i| error(i) > 20_000_000 && error(i) <= mapped[i].uncertainty_ns), "{step}");
    }
}

#[test]
fn a_stall_of_the_host_is_a_delay_and_no_step() {
    let mut readings = STEADY.readings(60, 20);
    let end = readings[640].2;
    // 40 readings wait for 667 ms and are read at once.
    readings[600..640].iter_mut().for_each(|reading| reading.2 = end);
    let mut map = ClockMap::new(config()).unwrap();
    let mapped = run(&mut map, &readings);
    assert_eq!(map.splits(), 0);
    assert!(mapped[120..].iter().zip(&readings[120..]).all(|(m, r)| (m.rig_ns - r.0).abs() <= m.uncertainty_ns));
}

#[test]
fn two_streams_of_one_device_may_differ_in_delay() {
    let mut readings = STEADY.readings(60, 20);
    for (i, reading) in readings.iter_mut().enumerate() {
        // Every other reading is of a stream that is 45 ms under way; from 15 s on only that one is left.
        reading.2 += if i % 2 == 1 || i > 900 { 45_000_000 } else { 0 };
    }
    let mut map = ClockMap::new(config()).unwrap();
    run(&mut map, &readings);
    assert_eq!(map.splits(), 0);
}

#[test]
fn samples_that_come_in_batches_are_delays_and_no_steps() {
    // 200 Hz, read from a FIFO every 100 ms: the delay is a saw of 0 to 95 ms, from the first batch on.
    let mut readings = WITHOUT_SPIKES.readings(200, 20);
    for batch in readings.chunks_mut(20) {
        let read = batch[batch.len() - 1].2;
        batch.iter_mut().for_each(|reading| reading.2 = read);
    }
    let mut map = ClockMap::new(config()).unwrap();
    let mapped = run(&mut map, &readings);
    assert_eq!(map.splits(), 0);
    assert!(mapped.iter().zip(&readings).all(|(m, r)| (m.rig_ns - r.0).abs() <= m.uncertainty_ns));
    assert!(map.settled());
}

#[test]
fn one_late_batch_is_one_piece_of_evidence_and_makes_nothing_uncertain() {
    let mut readings = STEADY.readings(1000, 5);
    for batch in readings.chunks_mut(10) {
        let arrival = batch.iter().map(|r| r.2).max().unwrap_or(0);
        batch.iter_mut().for_each(|r| r.2 = arrival);
    }
    let before = run(&mut ClockMap::new(config()).unwrap(), &readings);
    readings[4000..4010].iter_mut().for_each(|r| r.2 += 28_000_000);
    let late = run(&mut ClockMap::new(config()).unwrap(), &readings);
    assert!(splits_of(&late).is_empty());
    let most = |mapped: &[Mapped]| mapped[4000..].iter().map(|m| m.uncertainty_ns).max();
    assert_eq!(most(&late), most(&before));
}

#[test]
fn a_silence_makes_the_map_learn_again_without_a_step() {
    let mut readings = STEADY.readings(60, 50);
    readings.drain(600..2400);
    let mut map = ClockMap::new(config()).unwrap();
    run(&mut map, &readings[..600]);
    assert!(map.settled());
    let mapped = run(&mut map, &readings[600..]);
    assert_eq!(map.splits(), 0);
    assert!(mapped[0].uncertainty_ns > 100_000_000);
    assert!(map.settled());
}

#[test]
fn without_an_arrival_the_map_answers_and_learns_nothing() {
    let readings = WITHOUT_SPIKES.readings(60, 20);
    let mut map = ClockMap::new(config()).unwrap();
    let unknown = map.push(5, None);
    assert_eq!((unknown.rig_ns, unknown.uncertainty_ns), (5, UNBOUNDED_NS));
    assert!(!map.settled());

    let mut with = ClockMap::new(config()).unwrap();
    run(&mut with, &readings[..600]);
    let mut asked = with.clone();
    let answer = asked.push(readings[600].1, None);
    assert!((answer.rig_ns - readings[600].0).abs() <= answer.uncertainty_ns);
    assert_eq!(run(&mut with, &readings[601..]), run(&mut asked, &readings[601..]));
}

#[test]
fn the_further_ahead_of_the_pairs_the_less_is_certain() {
    let readings = WITHOUT_SPIKES.readings(60, 20);
    let mut map = ClockMap::new(config()).unwrap();
    let last = run(&mut map, &readings)[readings.len() - 1];
    let ahead = map.push(last.device_ns + 10_000_000_000, None);
    assert_eq!(ahead.uncertainty_ns, last.uncertainty_ns + 500_000);
}

#[test]
fn a_rate_that_changed_during_a_silence_is_no_step() {
    // The clock gains 2 ms in 9 s, 222 ppm more than before.
    let mut map = ClockMap::new(ClockConfig::default()).unwrap();
    for i in 0..600 {
        map.push(i * 16_666_667, Some(i * 16_666_667 + MIN_DELAY_NS));
    }
    let later = 600 * 16_666_667 + 9_000_000_000;
    // 10 ms would be more than any clock gains.
    assert!(map.clone().push(later + 10_000_000, Some(later + MIN_DELAY_NS)).split);
    assert!(!map.push(later + 2_000_000, Some(later + MIN_DELAY_NS)).split);
}

#[test]
fn identity_maps_nothing_and_counts_what_lies_in_the_future() {
    let config = ClockConfig { identity: true, min_delay_bound_ns: 50, ..ClockConfig::default() };
    let mut map = ClockMap::new(config).unwrap();
    assert!(map.settled());
    assert_eq!(map.push(1000, Some(950)), Mapped { device_ns: 1000, rig_ns: 1000, uncertainty_ns: 50, split: false });
    assert_eq!(map.future(), 0);
    map.push(1001, Some(950));
    map.push(1002, None);
    assert_eq!(map.future(), 1);
}

#[test]
fn nothing_overflows_at_the_ends_of_int64() {
    let ends = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
    for counter in [
        Counter::default(),
        Counter { bits: 32, tick_num: i64::MAX, tick_den: 1 },
        Counter { bits: 64, tick_num: 1, tick_den: i64::MAX },
    ] {
        let mut map = ClockMap::new(ClockConfig { counter, ..config() }).unwrap();
        for ticks in ends {
            for arrival in ends {
                let m = map.push(ticks, Some(arrival).filter(|&a| a != i64::MIN));
                assert!(m.rig_ns == i64::MIN || m.uncertainty_ns >= 0);
            }
        }
    }
}

#[test]
fn a_reading_older_than_the_window_is_still_not_mapped_after_its_arrival() {
    let mut map = ClockMap::new(ClockConfig { window_ns: 100_000_000, ..ClockConfig::default() }).unwrap();
    for i in 0..100 {
        map.push(i * 10_000_000, Some(i * 10_000_000 + 1000));
    }
    let old = map.push(300_000_000, Some(300_000_900));
    assert!(!old.split && old.rig_ns <= 300_000_900, "{old:?}");
}

#[test]
fn a_config_that_no_device_can_have_is_refused() {
    for bad in [
        ClockConfig { window_ns: 0, ..config() },
        ClockConfig { min_delay_bound_ns: -1, ..config() },
        ClockConfig { min_delay_ns: i64::MIN, ..config() },
        ClockConfig { counter: Counter { bits: 0, ..Counter::default() }, ..config() },
        ClockConfig { counter: Counter { tick_den: 0, ..Counter::default() }, ..config() },
    ] {
        assert!(ClockMap::new(bad).is_err(), "{bad:?}");
    }
}

/// A counter says when its tick began. The truth lies up to a tick later, and what that makes of delays is no step.
#[test]
fn a_coarse_counter_is_uncertain_by_its_tick_and_steps_nowhere() {
    for (tick_num, tick_den) in [(1_000_000, 1), (100_000, 1), (16_000, 1), (390_625, 10), (80, 3)] {
        for ppm in [-100, 100] {
            let counter = Counter { bits: 32, tick_num, tick_den };
            let mut map =
                ClockMap::new(ClockConfig { counter, min_delay_ns: 1_200_000, ..ClockConfig::default() }).unwrap();
            let (mut outside, mut noise) = (0, 1_u64);
            for i in 0..20_000_i64 {
                let truth = 1_000_000_000_000 + i * 4_166_667;
                let device = truth + truth / 1_000_000 * ppm;
                let ticks = i64::try_from(i128::from(device) * i128::from(tick_den) / i128::from(tick_num)).unwrap();
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let late = (noise >> 44).min(noise.rotate_left(20) >> 44) as i64;
                let mapped = map.push(ticks, Some(truth + 1_200_000 + late));
                outside += u32::from((mapped.rig_ns - truth).abs() > mapped.uncertainty_ns);
            }
            assert_eq!((map.splits(), outside), (0, 0), "ticks of {tick_num}/{tick_den} ns, {ppm} ppm");
        }
    }
}
