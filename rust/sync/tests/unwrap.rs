//! Counters that wrap, late readings that must not fake a wrap, and silences that hide one.

mod simulated;

use firsthand_sync::{Counter, SyncError, Unwrapper};
use simulated::Random;

fn counter(bits: u32, tick_num: i64, tick_den: i64) -> Counter {
    Counter { bits, tick_num, tick_den }
}

fn unwrapped(counter: Counter, readings: &[(i64, Option<i64>)]) -> Result<(Vec<Option<i64>>, u64), SyncError> {
    let mut unwrapper = Unwrapper::new(counter)?;
    let times = readings.iter().map(|&(ticks, arrival)| unwrapper.push(ticks, arrival)).collect();
    Ok((times, unwrapper.wraps()))
}

#[test]
fn a_counter_goes_on_where_it_returns_to_zero() -> Result<(), SyncError> {
    for bits in [8, 16, 32, 62] {
        let range = 1_i64 << bits;
        let readings: Vec<_> = [-3, -1, 0, 2].map(|i: i64| (i.rem_euclid(range), None)).into();
        let (times, wraps) = unwrapped(counter(bits, 1, 1), &readings)?;
        assert_eq!(times, [-3, -1, 0, 2].map(|i| i64::try_from(i128::from(range) + i).ok()), "{bits} bits");
        assert_eq!(wraps, 1);
    }
    Ok(())
}

#[test]
fn late_readings_around_a_wrap_make_up_none() -> Result<(), SyncError> {
    let range = 1_i64 << 16;
    let order = [-5, -3, 1, -1, 2, 0, -2, 4, 3];
    let readings: Vec<_> = order.iter().map(|&i: &i64| (i.rem_euclid(range), None)).collect();
    let (times, wraps) = unwrapped(counter(16, 1000, 1), &readings)?;
    assert_eq!(times, order.map(|i| Some((range + i) * 1000)));
    assert_eq!(wraps, 1);
    Ok(())
}

#[test]
fn a_silence_hides_whole_ranges_and_arrivals_tell_how_many() -> Result<(), SyncError> {
    // 16 bits of a us: 65.536 ms.
    for silence_us in [70_000, 131_072, 500_000, 98_304, 3_600_000_000] {
        let at = |us: i64, late: i64| (us.rem_euclid(1 << 16), Some(us * 1000 + late));
        let readings = [at(100, 5_000), at(1100, 1_000), at(1100 + silence_us, 9_000_000)];
        let (times, wraps) = unwrapped(counter(16, 1000, 1), &readings)?;
        assert_eq!(times[2], Some((1100 + silence_us) * 1000));
        assert_eq!(wraps, u64::try_from((1100 + silence_us) >> 16).unwrap_or(0));
    }
    Ok(())
}

#[test]
fn late_arrivals_are_no_missed_range() -> Result<(), SyncError> {
    // 1 kHz; the host stalls for 50 ms and reads what has piled up at once.
    let arrival = |i: i64| if (100..150).contains(&i) { 150_000_000 } else { i * 1_000_000 };
    let readings: Vec<_> = (0..400).map(|i| ((i * 1000) % (1 << 16), Some(arrival(i)))).collect();
    let (times, wraps) = unwrapped(counter(16, 1000, 1), &readings)?;
    assert!(times.iter().zip(0..).all(|(&t, i)| t == Some(i * 1_000_000)));
    assert_eq!(wraps, 6);
    Ok(())
}

#[test]
fn a_slow_clock_that_falls_behind_by_a_whole_range_is_followed() -> Result<(), SyncError> {
    // 100 ppm slow for 20 min: 120 ms, near two ranges of 16 bits of a us.
    let device_us = |i: i64| i * 10_000 - i;
    let readings: Vec<_> = (0..120_000).map(|i| (device_us(i) % (1 << 16), Some(i * 10_000_000 + 900_000))).collect();
    let (times, _) = unwrapped(counter(16, 1000, 1), &readings)?;
    assert_eq!(times.last(), Some(&Some(device_us(119_999) * 1000)));
    Ok(())
}

#[test]
fn ticks_become_ns_by_flooring_exactly() -> Result<(), SyncError> {
    // A third of a us, the DualSense clock.
    let third = counter(32, 1000, 3);
    let (times, _) = unwrapped(third, &[(1, None), (2, None), (3, None), ((1 << 32) - 1, None)])?;
    assert_eq!(times, [Some(333), Some(666), Some(1000), Some(-334)]);
    Ok(())
}

#[test]
fn sixty_four_bits_are_signed_and_wrap_where_the_sign_turns() -> Result<(), SyncError> {
    let (times, wraps) = unwrapped(counter(64, 1, 1), &[(-5, None), (7, None), (i64::MAX, None)])?;
    assert_eq!((times, wraps), (vec![Some(-5), Some(7), Some(i64::MAX)], 0));
    let (times, wraps) = unwrapped(counter(64, 1, 2), &[(i64::MAX, None), (i64::MIN, None), (i64::MIN + 1, None)])?;
    assert_eq!((times, wraps), (vec![Some(i64::MAX / 2), Some(1 << 62), Some(1 << 62)], 1));
    Ok(())
}

#[test]
fn what_lies_beyond_int64_is_absent_and_never_another_time() -> Result<(), SyncError> {
    let (times, _) = unwrapped(counter(64, i64::MAX, 1), &[(1, None), (2, None), (-1, None), (i64::MAX, None)])?;
    assert_eq!(times, [Some(i64::MAX), None, Some(-i64::MAX), None]);
    let (times, _) = unwrapped(counter(64, 1, 1), &[(i64::MAX, None), (i64::MIN, None)])?;
    assert_eq!(times, [Some(i64::MAX), None]);
    Ok(())
}

#[test]
fn a_counter_that_no_device_can_have_is_refused() {
    for bad in [counter(0, 1, 1), counter(65, 1, 1), counter(32, 0, 1), counter(32, 1, -1)] {
        assert!(Unwrapper::new(bad).is_err(), "{bad:?}");
    }
}

/// One reading of a device whose count is known.
struct Reading {
    /// The count that never wraps, in ticks.
    count: i128,
    arrival_ns: i64,
}

/// Readings of two streams of one device, in order of arrival: each stream is late by its own delay, the later one by up
/// to 3/16 of the counter's range more than the other, and now and then both are silent for many ranges.
fn two_streams(counter: Counter, random: &mut Random) -> Vec<Reading> {
    let (num, den) = (i128::from(counter.tick_num), i128::from(counter.tick_den));
    let range = 1_i128 << counter.bits;
    let range_ns = range * num / den;
    // From the middle of the range, or a few readings before its end.
    let first = match random.below(2) {
        0 => random.bits() as i128 % range,
        _ => range - 1 - random.bits() as i128 % (range / 8).max(1),
    };
    // A silence may be as long as a drift of 100 ppm and a delay can be told from a range.
    let limit_ns = i128::from(i64::MAX) / 64;
    let silence = |random: &mut Random| (random.below(500) as i128 * range_ns).min(limit_ns - range_ns.min(limit_ns));
    let drift_ppm = random.below(201) as i128 - 100;
    let (mut device_ns, mut readings) = ([0_i128; 2], Vec::new());
    let delay_ns = [0, random.bits() as i128 % (range_ns / 8).max(1)];
    for step in 0..120 {
        let quiet = if step % 40 == 39 && counter.bits < 60 { silence(random) } else { 0 };
        let ahead = device_ns.into_iter().max().unwrap_or(0);
        for stream in 0..2 {
            let step_ns = 1 + random.bits() as i128 % (range_ns / 16).max(1);
            device_ns[stream] = (device_ns[stream] + step_ns).max(ahead - range_ns / 16) + quiet;
            let late_ns = delay_ns[stream] + random.bits() as i128 % (range_ns / 16).max(1);
            // The count at that time, exactly, and when the host saw it.
            let count = first + device_ns[stream] * den / num;
            let rig_ns = device_ns[stream] + device_ns[stream] * drift_ppm / 1_000_000;
            let Ok(arrival_ns) = i64::try_from(rig_ns + late_ns) else { continue };
            readings.push(Reading { count, arrival_ns });
        }
    }
    readings.sort_by_key(|reading| reading.arrival_ns);
    readings
}

#[test]
fn two_streams_of_one_device_unwrap_alike_at_every_width_and_tick() -> Result<(), SyncError> {
    let mut random = Random(1);
    let mut wrapped = 0;
    for bits in 8..=64 {
        for case in 0..40 {
            let tick = |random: &mut Random| 1 + random.bits() as i64 % (1 << random.below(24));
            let counter = counter(bits, tick(&mut random).abs().max(1), tick(&mut random).abs().max(1));
            if (1_i128 << bits) * i128::from(counter.tick_num) / i128::from(counter.tick_den) < 1000 {
                continue; // no delay can be told from a range of less than a microsecond
            }
            let readings = two_streams(counter, &mut random);
            let range = 1_i128 << bits;
            let low = |count: i128| match count.rem_euclid(range) {
                low if bits == 64 && low >= range / 2 => low - range,
                low => low,
            };
            let Some(first) = readings.first() else { continue };
            let mut unwrapper = Unwrapper::new(counter)?;
            for (i, reading) in readings.iter().enumerate() {
                // A counter of 64 bits is read as the int64 that it is; one value of those stands for none.
                let ticks = low(reading.count) as i64;
                if ticks == i64::MIN {
                    continue;
                }
                let expected = (reading.count - first.count + low(first.count)) * i128::from(counter.tick_num);
                let expected = expected.div_euclid(counter.tick_den.into());
                let expected = i64::try_from(expected).ok().filter(|&ns| ns != i64::MIN);
                let found = unwrapper.push(ticks, Some(reading.arrival_ns));
                assert_eq!(found, expected, "{counter:?}, case {case}, reading {i}, count {}", reading.count);
            }
            wrapped += unwrapper.wraps();
        }
    }
    assert!(wrapped > 10_000, "{wrapped} wraps say little");
    Ok(())
}

#[test]
fn without_arrivals_readings_within_half_the_range_unwrap_at_every_width() -> Result<(), SyncError> {
    let mut random = Random(2);
    for bits in 8..=63 {
        for _ in 0..20 {
            let range = 1_i128 << bits;
            let counter = counter(bits, 1 + random.below(1 << 20) as i64, 1 + random.below(1 << 20) as i64);
            let first = random.bits() as i128 % range;
            let (mut count, mut unwrapper) = (first, Unwrapper::new(counter)?);
            for _ in 0..60 {
                let ns = (count * i128::from(counter.tick_num)).div_euclid(counter.tick_den.into());
                let ticks = count.rem_euclid(range) as i64;
                let expected = i64::try_from(ns).ok().filter(|&ns| ns != i64::MIN);
                assert_eq!(unwrapper.push(ticks, None), expected, "{counter:?} {count}");
                count += random.bits() as i128 % (range / 2) - random.bits() as i128 % (range / 4);
            }
        }
    }
    Ok(())
}
