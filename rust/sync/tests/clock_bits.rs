//! Both clock maps give the same bits on every processor: integers in, integers out, against a recorded checksum.
//!
//! A change of the maps changes the checksums, and with them every verdict that old evidence is judged to by this version.

mod simulated;

use firsthand_sync::clock::{ClockConfig, ClockMap};
use firsthand_sync::unwrap::Counter;
use firsthand_sync::{EdgeConfig, EdgeMap, Exposure, SyncError};
use simulated::{MS, Random, SECOND};

/// FNV-1a of the bytes of some numbers.
fn checksum(hash: u64, numbers: &[i64]) -> u64 {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
    bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// 100 s at 120 Hz of a clock 73 ppm fast that steps twice, behind delays of which some are long. No float is involved.
fn both() -> Result<(u64, u64), SyncError> {
    let mut random = Random(7);
    let clock = ClockConfig {
        counter: Counter { bits: 32, tick_num: 80, tick_den: 3 },
        min_delay_ns: 2 * MS,
        min_delay_bound_ns: 100_000,
        ..ClockConfig::default()
    };
    let mut arrivals = ClockMap::new(clock)?;
    let mut edges = EdgeMap::new(EdgeConfig { clock, calibrated: true, bound_ns: 50 })?;
    let mut hashes = (0xcbf2_9ce4_8422_2325, 0xcbf2_9ce4_8422_2325);
    for i in 0..12_000 {
        let truth = 1000 * SECOND + i * 8_333_333;
        let step = if i < 4000 {
            0
        } else if i < 8000 {
            3 * MS
        } else {
            -400 * MS
        };
        let device = truth + truth / 1_000_000 * 73 + step;
        let late = random.below(400_000) + if random.below(50) == 0 { 20_000_000 } else { 0 };
        let arrival = truth + 2 * MS + late as i64;
        let ticks = (i128::from(device) * 3 / 80).rem_euclid(1 << 32) as i64;
        edges.push_edge(i, truth - 3 * MS + random.below(600) as i64)?;
        let mapped = arrivals.push(ticks, Some(arrival));
        hashes.0 = checksum(hashes.0, &[mapped.device_ns, mapped.rig_ns, mapped.uncertainty_ns, mapped.split.into()]);
        let trigger_index = Some(i).filter(|i| i % 2 == 0);
        let mapped = edges.push(ticks, Some(arrival), Some(Exposure { trigger_index, after_edge_ns: 3 * MS })).mapped;
        hashes.1 = checksum(hashes.1, &[mapped.rig_ns, mapped.uncertainty_ns, mapped.split.into()]);
    }
    hashes.0 = checksum(hashes.0, &[arrivals.rate_ppb(), arrivals.splits() as i64, arrivals.wraps() as i64]);
    hashes.1 = checksum(hashes.1, &[edges.rate_ppb(), edges.splits() as i64, edges.pairs() as i64]);
    Ok(hashes)
}

#[test]
fn the_maps_are_the_same_on_every_processor() {
    assert_eq!(both().unwrap(), (16_199_053_814_282_113_774, 16_683_908_558_864_566_241));
}
