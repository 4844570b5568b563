//! Device readings to rig time, one map per device clock and incarnation, in the order of receipt.
//!
//! A take begins with fresh maps. They are taught first by the readings of the last 10 s before it, which the evidence
//! holds as warm-up rows, so that anybody who runs the same maps over the evidence gets the same times.

use std::collections::{BTreeMap, VecDeque};

use firsthand_sync::clock::{ClockConfig, ClockMap};
use firsthand_sync::unwrap::Counter;

use crate::device::{ABSENT, DeviceInfo, StampPoint};
use crate::error::{RecordError, RecordResult};
use crate::evidence::{Row, WARMUP};
use crate::wire::WireRecord;

/// How far back readings are kept for the next take, by arrival.
const KEEP_NS: i64 = 10_000_000_000;
/// Most readings kept of one device: 10 s at 3 kHz.
const KEEP_ROWS: usize = 32_768;
/// Maps of a device that are kept outside of takes: the worker that runs, and one that died just before.
const IDLE_MAPS: usize = 2;

/// Which stream a sample belongs to and how its stamps are read.
#[derive(Debug, Clone, Copy)]
pub struct StampRule {
    /// Number of the stream.
    pub stream: usize,
    /// Which instant is stamped.
    pub point: StampPoint,
    /// Constant of the device and mode.
    pub offset_ns: i64,
}

/// Where and when a message was received.
#[derive(Debug, Clone, Copy)]
pub struct Receipt {
    /// Start of the worker that sent it.
    pub incarnation: i64,
    /// Arming it belongs to.
    pub epoch: i64,
    /// `Row::warmup` of its rows.
    pub warmup: i64,
}

/// The clock of one device.
pub struct DeviceClock {
    domain: u8,
    config: ClockConfig,
    maps: BTreeMap<i64, ClockMap>,
    recent: VecDeque<(StampRule, Row)>,
    /// Steps that the warm-up rows of the take hold.
    splits_before: u64,
}

impl DeviceClock {
    /// A clock that knows nothing yet.
    ///
    /// # Errors
    /// [`RecordError::Invalid`] when the device's counter or delay is one that no device can have.
    pub fn new(device: &DeviceInfo) -> RecordResult<Self> {
        let counter = device.counter;
        let config = ClockConfig {
            counter: Counter { bits: counter.bits, tick_num: counter.tick_num, tick_den: counter.tick_den },
            min_delay_ns: device.min_delay_ns,
            min_delay_bound_ns: device.min_delay_bound_ns.unwrap_or(0),
            identity: device.identity_map,
            ..ClockConfig::default()
        };
        // Refused now, so that no map of this clock can fail later.
        ClockMap::new(config).map_err(|e| RecordError::Invalid(format!("device {:?}: {e}", device.name)))?;
        Ok(Self { domain: device.domain, config, maps: BTreeMap::new(), recent: VecDeque::new(), splits_before: 0 })
    }

    /// Maps one sample and gives its row of the evidence, without a payload digest.
    pub fn map(&mut self, rule: StampRule, receipt: Receipt, received: i64, record: &WireRecord) -> Row {
        let mut row = Row {
            received,
            incarnation: receipt.incarnation,
            epoch: receipt.epoch,
            warmup: receipt.warmup,
            sequence: record.sequence,
            trigger_index: record.trigger_index,
            device_ticks: record.device_ticks,
            arrival_ns: record.arrival_ns,
            exposure_ns: record.exposure_ns,
            domain: i64::from(record.domain),
            size: i64::from(record.payload_len),
            digest: ABSENT,
            rig_ns: ABSENT,
        };
        row.rig_ns = self.rig_ns(rule, &row);
        self.keep(rule, row);
        row
    }

    /// Steps of the device's clock since the take began, or since the maps began between takes.
    pub fn splits(&self) -> u64 {
        self.all_splits().saturating_sub(self.splits_before)
    }

    fn all_splits(&self) -> u64 {
        self.maps.values().map(ClockMap::splits).sum()
    }

    /// Whether the map of the newest incarnation is settled.
    pub fn settled(&self) -> bool {
        match self.maps.last_key_value() {
            Some((_, map)) => map.settled(),
            // What needs no readings needs no wait either.
            None => self.config.identity && ClockMap::new(self.config).is_ok_and(|map| map.settled()),
        }
    }

    /// Starts over with fresh maps and teaches them what was received lately: the warm-up rows of the take.
    pub fn start_take(&mut self) -> Vec<(usize, Row)> {
        self.maps.clear();
        let recent = std::mem::take(&mut self.recent);
        let mut rows = Vec::with_capacity(recent.len());
        for (rule, mut row) in recent {
            row.warmup = WARMUP;
            row.digest = ABSENT;
            row.rig_ns = self.rig_ns(rule, &row);
            rows.push((rule.stream, row));
            self.recent.push_back((rule, row));
        }
        self.splits_before = self.all_splits();
        rows
    }

    /// Outside of takes only the newest maps are of use.
    pub fn forget_old_maps(&mut self) {
        while self.maps.len() > IDLE_MAPS {
            self.maps.pop_first();
        }
    }

    fn rig_ns(&mut self, rule: StampRule, row: &Row) -> i64 {
        // A stamp of another domain says nothing about this clock, and must not teach it (sync.md section 1).
        if row.device_ticks == ABSENT || row.domain != i64::from(self.domain) {
            return ABSENT;
        }
        let map = match self.maps.entry(row.incarnation) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => match ClockMap::new(self.config) {
                Ok(map) => entry.insert(map),
                Err(_) => return ABSENT,
            },
        };
        let arrival = (row.arrival_ns != ABSENT).then_some(row.arrival_ns);
        match map.push(row.device_ticks, arrival).rig_ns {
            ABSENT => ABSENT,
            rig_ns => rule.point.mid_exposure(rig_ns, row.exposure_ns, rule.offset_ns),
        }
    }

    fn keep(&mut self, rule: StampRule, row: Row) {
        if self.config.identity {
            return;
        }
        self.recent.push_back((rule, row));
        let newest = row.arrival_ns;
        while self.recent.len() > KEEP_ROWS
            || self.recent.front().is_some_and(|(_, old)| {
                newest != ABSENT && (old.arrival_ns == ABSENT || newest.saturating_sub(old.arrival_ns) > KEEP_NS)
            })
        {
            self.recent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Counter as DeviceCounter, StreamInfo};

    fn device(identity_map: bool) -> DeviceInfo {
        DeviceInfo {
            name: "d".into(),
            domain: 1,
            counter: DeviceCounter { bits: 32, tick_num: 1000, tick_den: 1 },
            streams: vec![StreamInfo {
                name: "s".into(),
                media: "record".into(),
                stamp_point: StampPoint::Instant,
                offset_ns: 0,
                reorder_bound: 0,
                has_trigger_index: false,
            }],
            identity_map,
            min_delay_ns: 0,
            min_delay_bound_ns: Some(1000),
        }
    }

    const RULE: StampRule = StampRule { stream: 0, point: StampPoint::Instant, offset_ns: 0 };

    fn record(i: i64) -> WireRecord {
        WireRecord {
            sequence: i,
            trigger_index: ABSENT,
            device_ticks: (4_294_900_000 + i * 10_000) % (1 << 32),
            arrival_ns: 5_000_000_000 + i * 10_000_000 + (i % 7) * 50_000,
            exposure_ns: 0,
            payload_len: 0,
            metadata_len: 0,
            domain: 1,
        }
    }

    #[test]
    fn the_maps_of_a_take_follow_from_its_rows_alone() {
        let mut clock = DeviceClock::new(&device(false)).unwrap();
        let idle = Receipt { incarnation: 0, epoch: 1, warmup: WARMUP };
        for i in 0..2000 {
            clock.map(RULE, idle, i, &record(i));
        }
        assert!(clock.settled());
        let mut rows: Vec<Row> = clock.start_take().into_iter().map(|(_, row)| row).collect();
        assert!(rows.len() > 900 && rows.len() < 1010, "{}", rows.len());
        for i in 2000..2500 {
            rows.push(clock.map(RULE, Receipt { epoch: 2, warmup: 0, ..idle }, i, &record(i)));
        }
        let mut again = ClockMap::new(clock.config).unwrap();
        for row in rows {
            assert_eq!(again.push(row.device_ticks, Some(row.arrival_ns)).rig_ns, row.rig_ns);
        }
    }

    #[test]
    fn a_dead_workers_late_message_goes_to_its_own_map() {
        let mut clock = DeviceClock::new(&device(true)).unwrap();
        let of = |incarnation| Receipt { incarnation, epoch: 1, warmup: 0 };
        let mut high = record(0);
        high.device_ticks = (1 << 32) - 1;
        let mut low = record(0);
        low.device_ticks = 5;
        clock.map(RULE, of(0), 0, &high);
        let fresh = clock.map(RULE, of(1), 1, &low);
        let late = clock.map(RULE, of(0), 2, &low);
        assert_eq!(fresh.rig_ns, 5000);
        assert_eq!(late.rig_ns, ((1i64 << 32) + 5) * 1000);
    }

    #[test]
    fn a_stamp_of_another_domain_is_not_mapped() {
        let mut clock = DeviceClock::new(&device(true)).unwrap();
        let odd = WireRecord { domain: 3, ..record(0) };
        assert_eq!(clock.map(RULE, Receipt { incarnation: 0, epoch: 0, warmup: 0 }, 0, &odd).rig_ns, ABSENT);
    }
}
