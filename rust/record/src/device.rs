//! Devices and streams as the Python side describes them (`DeviceInfo.to_json()` of `firsthand_edge.model`).

use serde::Deserialize;

use crate::error::{RecordError, RecordResult};
use crate::schema::Media;

/// The int64 that stands for "the device did not say".
pub const ABSENT: i64 = i64::MIN;

/// Which instant of an exposure a device stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StampPoint {
    /// Start of exposure.
    Start,
    /// Middle of exposure.
    Middle,
    /// End of exposure.
    End,
    /// Start of readout: for a global shutter the end of exposure.
    ReadoutStart,
    /// No exposure.
    Instant,
    /// Not known; nothing is added, and such stamps cannot be verified.
    Unknown,
}

impl StampPoint {
    /// The name as it is written in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
            Self::ReadoutStart => "readout_start",
            Self::Instant => "instant",
            Self::Unknown => "unknown",
        }
    }

    /// Mid-exposure of a stamp: `t = t_point + k * exposure + offset` (sync.md section 1), `exposure // 2` floored,
    /// saturating. An absent or negative exposure counts as none.
    pub fn mid_exposure(self, rig_ns: i64, exposure_ns: i64, offset_ns: i64) -> i64 {
        let half = exposure_ns.max(0).div_euclid(2);
        let middle = match self {
            Self::Start => rig_ns.saturating_add(half),
            Self::End | Self::ReadoutStart => rig_ns.saturating_sub(half),
            Self::Middle | Self::Instant | Self::Unknown => rig_ns,
        };
        middle.saturating_add(offset_ns)
    }
}

/// How a device counts time: ticks of `tick_num / tick_den` ns that wrap at `2**bits`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Counter {
    /// Width of the counter.
    pub bits: u32,
    /// Nanoseconds of one tick, numerator.
    pub tick_num: i64,
    /// Nanoseconds of one tick, denominator.
    pub tick_den: i64,
}

/// One stream of a device.
#[derive(Debug, Clone, Deserialize)]
pub struct StreamInfo {
    /// Unique among all streams of the rig.
    pub name: String,
    /// What the payload is, see [`Media`].
    pub media: String,
    /// Which instant is stamped.
    pub stamp_point: StampPoint,
    /// Constant added to every stamp.
    #[serde(default)]
    pub offset_ns: i64,
    /// How many samples a sample may come late by.
    #[serde(default)]
    pub reorder_bound: i64,
    /// Every sample carries the pulse of the trigger that it was exposed for.
    #[serde(default)]
    pub has_trigger_index: bool,
}

/// One device: one clock.
#[derive(Debug, Clone, Deserialize)]
pub struct DeviceInfo {
    /// Unique name.
    pub name: String,
    /// Clock domain of its stamps, as `firsthand_edge.model.Domain`.
    pub domain: u8,
    /// How it counts.
    pub counter: Counter,
    /// Its streams.
    pub streams: Vec<StreamInfo>,
    /// Stamps already are rig time.
    #[serde(default)]
    pub identity_map: bool,
    /// Calibrated minimum transport delay.
    #[serde(default)]
    pub min_delay_ns: i64,
    /// Half-width of what is known of it; none: never calibrated.
    #[serde(default)]
    pub min_delay_bound_ns: Option<i64>,
}

/// Parses the JSON list of devices and checks what the recorder relies on.
///
/// # Errors
/// [`RecordError::Invalid`] with the first mistake: not JSON, a stream named twice, an unknown media name.
pub fn parse_devices(json: &str) -> RecordResult<Vec<DeviceInfo>> {
    let devices: Vec<DeviceInfo> = serde_json::from_str(json)
        .map_err(|e| RecordError::Invalid(format!("devices are not a JSON list of device objects: {e}")))?;
    let mut names = std::collections::BTreeSet::new();
    for device in &devices {
        for stream in &device.streams {
            if !names.insert(stream.name.as_str()) {
                return Err(RecordError::Invalid(format!(
                    "stream {:?} is there twice, the second time at device {:?}; give each stream its own name",
                    stream.name, device.name
                )));
            }
            Media::parse(&stream.media)?;
        }
        if !(1..=64).contains(&device.counter.bits) || device.counter.tick_num < 1 || device.counter.tick_den < 1 {
            return Err(RecordError::Invalid(format!(
                "counter of device {:?} has {} bits and ticks of {}/{} ns; bits are 1 to 64 and ticks positive",
                device.name, device.counter.bits, device.counter.tick_num, device.counter.tick_den
            )));
        }
    }
    // Three channel ids a stream, of the 65535 that MCAP has.
    if names.len() > 20_000 {
        return Err(RecordError::Invalid(format!("{} streams are more than the 20000 one file holds", names.len())));
    }
    Ok(devices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mid_exposure_follows_the_stamp_point() {
        assert_eq!(StampPoint::Start.mid_exposure(100, 9, 1), 105);
        assert_eq!(StampPoint::Middle.mid_exposure(100, 9, 1), 101);
        assert_eq!(StampPoint::End.mid_exposure(100, 9, 1), 97);
        assert_eq!(StampPoint::ReadoutStart.mid_exposure(100, 8, 0), 96);
        assert_eq!(StampPoint::Instant.mid_exposure(100, 9, -2), 98);
        assert_eq!(StampPoint::End.mid_exposure(100, ABSENT, 0), 100);
    }

    #[test]
    fn a_stream_named_twice_is_refused() {
        let json = r#"[{"name":"d","domain":1,"counter":{"bits":32,"tick_num":1,"tick_den":1},"streams":[
            {"name":"a","media":"imu","stamp_point":"instant"},{"name":"a","media":"imu","stamp_point":"instant"}]}]"#;
        assert!(parse_devices(json).unwrap_err().to_string().contains("\"a\" is there twice"));
    }
}
