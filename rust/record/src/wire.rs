//! One message of a sensor worker: a batch of samples of one stream. Every length is checked.
//!
//! A record is 56 bytes, little-endian, packed: `sequence i64, trigger_index i64, device_ticks i64, arrival_ns i64,
//! exposure_ns i64, payload_len u32, metadata_len u32, domain u8, 7 bytes of padding`. The payload frame is the
//! payload and the metadata of each sample, in order, and nothing else.

use crate::error::{RecordError, RecordResult};
use crate::scan::Fields;

/// Bytes of one record.
pub const RECORD_BYTES: usize = 56;
/// Flag: everything of this stream and epoch has been sent.
pub const END: i64 = 1;
/// Clock domains of `firsthand_edge.model.Domain`.
const DOMAINS: u8 = 4;

/// One sample as it came over the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireRecord {
    pub sequence: i64,
    pub trigger_index: i64,
    pub device_ticks: i64,
    pub arrival_ns: i64,
    pub exposure_ns: i64,
    pub payload_len: u32,
    pub metadata_len: u32,
    pub domain: u8,
}

/// Takes a batch of `count` records apart.
///
/// # Errors
/// [`RecordError::Invalid`] when the lengths do not agree with one another or a domain is unknown.
pub fn parse(stream: &str, count: i64, records: &[u8], payload: &[u8]) -> RecordResult<Vec<WireRecord>> {
    let malformed = |what: String| RecordError::Invalid(format!("a message of stream {stream:?} is malformed: {what}"));
    let expected = usize::try_from(count).ok().and_then(|n| n.checked_mul(RECORD_BYTES));
    if expected != Some(records.len()) {
        return Err(malformed(format!(
            "{} bytes of records for {count} samples of {RECORD_BYTES} bytes",
            records.len()
        )));
    }
    let parsed: Option<Vec<WireRecord>> = records.chunks_exact(RECORD_BYTES).map(record).collect();
    let parsed = parsed.ok_or_else(|| malformed("a record is too short".to_owned()))?;
    let total: u64 = parsed.iter().map(|r| u64::from(r.payload_len) + u64::from(r.metadata_len)).sum();
    if total != payload.len() as u64 {
        return Err(malformed(format!("its records speak of {total} bytes of payload and {} came", payload.len())));
    }
    if let Some(odd) = parsed.iter().find(|r| r.domain >= DOMAINS) {
        return Err(malformed(format!("clock domain {} is none of 0 to {}", odd.domain, DOMAINS - 1)));
    }
    Ok(parsed)
}

fn record(bytes: &[u8]) -> Option<WireRecord> {
    let mut fields = Fields::new(bytes);
    let mut i64 = || fields.u64().map(u64::cast_signed);
    let (sequence, trigger_index, device_ticks, arrival_ns, exposure_ns) = (i64()?, i64()?, i64()?, i64()?, i64()?);
    Some(WireRecord {
        sequence,
        trigger_index,
        device_ticks,
        arrival_ns,
        exposure_ns,
        payload_len: fields.u32()?,
        metadata_len: fields.u32()?,
        domain: fields.u8()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(payload_len: u32, metadata_len: u32, domain: u8) -> Vec<u8> {
        let mut out: Vec<u8> = [1i64, -1, i64::MIN, 4, 5].iter().flat_map(|v| v.to_le_bytes()).collect();
        out.extend_from_slice(&payload_len.to_le_bytes());
        out.extend_from_slice(&metadata_len.to_le_bytes());
        out.extend_from_slice(&[domain, 0, 0, 0, 0, 0, 0, 0]);
        out
    }

    #[test]
    fn a_record_is_as_documented() {
        let parsed = parse("s", 1, &bytes(2, 1, 3), b"abc").unwrap();
        let expected = WireRecord {
            sequence: 1,
            trigger_index: -1,
            device_ticks: i64::MIN,
            arrival_ns: 4,
            exposure_ns: 5,
            payload_len: 2,
            metadata_len: 1,
            domain: 3,
        };
        assert_eq!(parsed, [expected]);
        assert_eq!(parse("s", 0, &[], &[]).unwrap(), []);
    }

    #[test]
    fn lengths_that_disagree_are_refused() {
        let good = bytes(2, 1, 0);
        for (count, records, payload) in [
            (2, &good[..], &b"abc"[..]),
            (1, &good[..55], b"abc"),
            (-1, &good, b"abc"),
            (i64::MAX, &good, b"abc"),
            (1, &good, b"ab"),
            (1, &good, b"abcd"),
            (1, &bytes(u32::MAX, u32::MAX, 0), b""),
            (1, &bytes(2, 1, 4), b"abc"),
        ] {
            assert!(matches!(parse("s", count, records, payload), Err(RecordError::Invalid(_))));
        }
    }
}
