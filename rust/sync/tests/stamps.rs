//! What `scan_stamps` finds: each fault of sync.md section 5, and what looks like one and is none.

use firsthand_sync::{ABSENT, Beside, StampScan, StepKind, SyncError, scan_stamps};

const P: i64 = 16_666_667;
const START: i64 = 1_764_537_600_000_000_000;

fn steady(count: i64) -> Vec<i64> {
    (0..count).map(|i| START + i * P).collect()
}

fn counted(count: i64) -> Vec<i64> {
    (0..count).collect()
}

fn shifted(mut times: Vec<i64>, from: usize, by: i64) -> Vec<i64> {
    times.iter_mut().skip(from).for_each(|t| *t = t.wrapping_add(by));
    times
}

fn scan(times: &[i64], sequence: &[i64], arrival: &[i64]) -> Result<StampScan, SyncError> {
    scan_stamps(times, &Beside { sequence: Some(sequence), arrival: Some(arrival), ..Beside::default() })
}

fn bare(times: &[i64]) -> Result<StampScan, SyncError> {
    scan_stamps(times, &Beside::default())
}

fn counts(scan: &StampScan) -> (usize, usize, usize) {
    (scan.jump_count, scan.wrap_count, scan.tai_utc_count)
}

#[test]
fn a_steady_stream_has_no_findings() -> Result<(), SyncError> {
    let times = steady(100);
    let found = scan(&times, &counted(100), &shifted(times.clone(), 0, 3_000_000))?;
    let expected = StampScan {
        samples: 100,
        distinct: 100,
        median_step_ns: Some(P),
        longest_silence_ns: P as u64,
        longest_silence_index: Some(1),
        steps_gcd_ns: P as u64,
        ..StampScan::default()
    };
    assert_eq!(found, expected);
    assert_eq!(bare(&times)?, expected);
    assert_eq!(bare(&[])?, StampScan::default());
    Ok(())
}

#[test]
fn backwards_is_counted_below_the_running_maximum() -> Result<(), SyncError> {
    let found = bare(&[0, 10, 50, 20, 30, 40, 60])?;
    assert_eq!((found.backwards, found.first_backwards, found.largest_backwards_ns), (3, Some(3), 30));
    assert_eq!(found.late_by, 1); // only the one at 50 went before its turn
    let found = bare(&[0, 10, 30, 40, 50, 20])?;
    assert_eq!((found.backwards, found.late_by), (1, 3));
    Ok(())
}

#[test]
fn a_lost_pulse_is_no_jump() -> Result<(), SyncError> {
    let mut times = steady(100);
    times.drain(40..43);
    let arrival = shifted(times.clone(), 0, 2_000_000);
    // The camera numbers pictures, not pulses: its sequence goes on as if nothing were missing.
    let found = scan(&times, &counted(97), &arrival)?;
    assert_eq!((counts(&found), found.sequence_gaps), ((0, 0, 0), 0));
    // It numbers pulses: the sequence tells how many are missing.
    let mut sequence = counted(100);
    sequence.drain(40..43);
    let found = scan(&times, &sequence, &arrival)?;
    assert_eq!((counts(&found), found.sequence_gaps), ((0, 0, 0), 3));
    Ok(())
}

#[test]
fn a_sequence_that_restarts_or_skips_while_time_goes_on_is_a_note() -> Result<(), SyncError> {
    let times = steady(100);
    let restarted: Vec<i64> = (0..100).map(|i| i % 60).collect();
    assert_eq!(counts(&scan(&times, &restarted, &times)?), (0, 0, 0));
    let skipping: Vec<i64> = (0..100).map(|i| if i < 60 { i } else { i + 1000 }).collect();
    let found = scan(&times, &skipping, &times)?;
    assert_eq!((counts(&found), found.sequence_gaps), ((0, 0, 0), 1000));
    Ok(())
}

#[test]
fn a_step_that_neither_sequence_nor_arrivals_explain_is_a_jump() -> Result<(), SyncError> {
    let (sequence, arrival) = (counted(100), steady(100));
    let beside = Beside { sequence: Some(&sequence), arrival: Some(&arrival), period: Some(P), ..Beside::default() };
    for by in [P / 2 + 2, -P / 2 - 2, 700_000_000, -600_000_000] {
        let found = scan_stamps(&shifted(steady(100), 50, by), &beside)?;
        assert_eq!(counts(&found), (1, 0, 0), "{by}");
        let step = &found.steps[0];
        assert_eq!((step.index, step.kind, step.step_ns), (50, StepKind::Jump, i128::from(P + by)));
        assert_eq!(step.expected_ns, Some(P.into()));
    }
    for by in [P / 2 - 1, -P / 2 + 1] {
        assert_eq!(counts(&scan_stamps(&shifted(steady(100), 50, by), &beside)?), (0, 0, 0), "{by}");
    }
    Ok(())
}

#[test]
fn without_sequence_and_arrivals_a_long_step_forward_is_a_jump() -> Result<(), SyncError> {
    assert_eq!(counts(&bare(&shifted(steady(100), 50, 500_000_000 - P))?), (0, 0, 0));
    assert_eq!(counts(&bare(&shifted(steady(100), 50, 500_000_001 - P))?), (1, 0, 0));
    let times = shifted(steady(100), 50, 60 * P);
    let (as_if_nothing, arrivals_go_on) = (counted(100), steady(100));
    let known = |sequence, arrival| scan_stamps(&times, &Beside { sequence, arrival, ..Beside::default() });
    let sequence: Vec<i64> = (0..100).map(|i| if i < 50 { i } else { i + 60 }).collect();
    // Either column alone explains the silence, and does not where it knows of none.
    assert_eq!(counts(&known(Some(&sequence), None)?), (0, 0, 0));
    assert_eq!(counts(&known(None, Some(&times))?), (0, 0, 0));
    assert_eq!(counts(&known(Some(&as_if_nothing), None)?), (1, 0, 0));
    assert_eq!(counts(&known(None, Some(&arrivals_go_on))?), (1, 0, 0));
    Ok(())
}

#[test]
fn a_counter_that_was_not_unwrapped_is_told_by_its_range() -> Result<(), SyncError> {
    let us = 1_000;
    let ranges = [("2^32 us", (1 << 32) * us, P), ("2^32 ns", 1 << 32, P), ("2^16 ms", 65_536_000_000, P)];
    let quick = [("2^16 us", 65_536_000, 1_000_000), ("2^24 * 39.0625 us", 655_360_000_000, 5_000_000)];
    for (name, range, period) in ranges.into_iter().chain(quick) {
        let times: Vec<i64> = (0..40).map(|i| (range - 20 * period + i * period).rem_euclid(range)).collect();
        for found in [bare(&times)?, scan(&times, &counted(40), &steady(40))?] {
            assert_eq!(counts(&found), (0, 1, 0), "{name}");
            assert_eq!((found.steps[0].index, found.steps[0].detail.as_str()), (20, name));
        }
    }
    let ids: Vec<i64> = (65_520..65_560).map(|id| if id < 65_536 { id * P } else { (id - 65_535) * P }).collect();
    assert_eq!(bare(&ids)?.steps[0].detail, "2^16 - 1 frame periods");
    Ok(())
}

#[test]
fn a_late_sample_is_no_wrap() -> Result<(), SyncError> {
    // 65 samples late at 1 kHz steps back by about 2^16 us.
    let mut order = counted(300);
    let late = order.remove(100);
    order.insert(165, late);
    let times: Vec<i64> = order.iter().map(|i| START + i * 1_000_000).collect();
    let arrival: Vec<i64> = (0..300).map(|i| START + i * 1_000_000).collect();
    let found = scan(&times, &order, &arrival)?;
    assert_eq!((counts(&found), found.late_by, found.sequence_gaps), ((0, 0, 0), 65, 0));
    // Neighbours that change places, with nothing else known.
    assert_eq!(counts(&bare(&[0, 2 * P, P, 3 * P, 4 * P])?), (0, 0, 0));
    Ok(())
}

#[test]
fn a_step_by_whole_seconds_is_one_of_tai_and_utc() -> Result<(), SyncError> {
    let arrival = steady(100);
    for (seconds, off, expected) in [
        (37, 0, 1),
        (-37, 0, 1),
        (10, 49_000_000, 1),
        (-60, -49_000_000, 1),
        (37, 51_000_000, 0),
        (9, 0, 0),
        (61, 0, 0),
    ] {
        let times = shifted(steady(100), 50, seconds * 1_000_000_000 + off);
        let found = scan(&times, &counted(100), &arrival)?;
        assert_eq!(counts(&found), (1 - expected, 0, expected), "{seconds} s and {off} ns");
        let alone = scan_stamps(&times, &Beside { sequence: Some(&counted(100)), ..Beside::default() })?;
        assert_eq!(alone.tai_utc_count, expected);
        assert_eq!(bare(&times)?.tai_utc_count, 0); // never without a sequence
    }
    // A stream that was silent for 37 s has not changed its time.
    let times = shifted(steady(100), 50, 37_000_000_000);
    assert_eq!(counts(&scan(&times, &counted(100), &times)?), (0, 0, 0));
    Ok(())
}

#[test]
fn sixteen_bit_sequences_go_round_and_may_skip_zero() -> Result<(), SyncError> {
    let times = steady(100);
    let arrival = shifted(steady(100), 0, 40_000_000);
    let with_zero: Vec<i64> = (0..100).map(|i| (65_500 + i) % 65_536).collect();
    let without_zero: Vec<i64> = (0..100).map(|i| 1 + (65_499 + i) % 65_535).collect();
    for sequence in [with_zero, without_zero] {
        let found = scan(&times, &sequence, &arrival)?;
        assert_eq!((counts(&found), found.sequence_gaps), ((0, 0, 0), 0));
        let jumped = scan(&shifted(times.clone(), 60, 800_000_000), &sequence, &arrival)?;
        assert_eq!(counts(&jumped), (1, 0, 0));
    }
    Ok(())
}

#[test]
fn sixteen_steps_are_listed_and_all_are_counted() -> Result<(), SyncError> {
    let times: Vec<i64> = (0..80).map(|i| START + i * P + i / 2 * 100_000_000).collect();
    let found = scan(&times, &counted(80), &steady(80))?;
    assert_eq!((found.jump_count, found.steps.len()), (39, 16));
    assert_eq!(
        found.steps.iter().map(|step| step.index).collect::<Vec<_>>(),
        (1..17).map(|i| 2 * i).collect::<Vec<_>>()
    );
    Ok(())
}

#[test]
fn samples_without_a_stamp_are_passed_over_and_keep_their_position() -> Result<(), SyncError> {
    let mut times = shifted(steady(100), 50, 700_000_000);
    times[10] = ABSENT;
    times[50] = ABSENT;
    let found = scan(&times, &counted(100), &steady(100))?;
    assert_eq!((found.samples, counts(&found), found.steps[0].index), (98, (1, 0, 0), 51));
    assert_eq!(found.longest_silence_index, Some(51));
    Ok(())
}

#[test]
fn nothing_overflows_at_the_ends_of_int64() -> Result<(), SyncError> {
    let ends = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
    let mut columns = Vec::new();
    for a in ends {
        for b in ends {
            columns.push([a, b, a, 0, b]);
        }
    }
    for times in &columns {
        for other in &columns {
            for period in [None, Some(1), Some(i64::MAX)] {
                let beside = Beside { sequence: Some(other), arrival: Some(times), period, ..Beside::default() };
                scan_stamps(times, &beside)?;
                scan_stamps(times, &Beside { arrival: Some(other), ..beside })?;
            }
        }
    }
    let found = bare(&[i64::MAX, i64::MIN + 1])?;
    assert_eq!(found.largest_backwards_ns, (1 << 63) + ((1_u64 << 63) - 2));
    Ok(())
}

#[test]
fn a_call_that_makes_no_sense_is_refused() {
    assert!(matches!(scan(&[1, 2], &[1], &[1, 2]), Err(SyncError::ColumnLength { .. })));
    for bad in [Beside { period: Some(0), ..Beside::default() }, Beside { silence_max: -1, ..Beside::default() }] {
        assert!(scan_stamps(&[], &bad).is_err());
    }
}
