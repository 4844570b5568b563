//! Where other people's messages keep the time of capture, and how to read it from the bytes.
//!
//! ROS 2 (CDR, defined by `.msg` or `.idl`), ROS 1, and foxglove's protobuf, JSON and flatbuffers. A schema whose stamp
//! cannot be found has none. Nothing is allocated for a message, and bytes that make no sense give no stamp.

mod flatbuffer;
mod json;
mod protobuf;
mod ros;

const NS_PER_S: i64 = 1_000_000_000;
/// Bytes before a CDR message (OMG DDSI-RTPS 2.5, section 10.2).
const ENCAPSULATION: usize = 4;
/// Bytes of a message of which [`Place::needs`] asks for no more.
pub const WHOLE: usize = usize::MAX;

/// What a recording says of a channel's messages.
#[derive(Debug, Clone, Copy)]
pub struct Layout<'a> {
    /// `cdr`, `ros1`, `protobuf`, `json` or `flatbuffer`.
    pub encoding: &'a str,
    /// `ros2msg`, `ros2idl`, `ros1msg`, `protobuf`, `jsonschema`, `flatbuffer` or other.
    pub schema_encoding: &'a str,
    /// Full name of the message type.
    pub schema_name: &'a str,
    /// The schema as the recording holds it.
    pub schema: &'a [u8],
}

/// Where the messages of a channel keep their stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A `Header` or a `Time` leads the CDR message.
    Cdr,
    /// Seconds and nanoseconds at this byte of a ROS 1 message.
    Ros1(usize),
    /// The field of that number is a google.protobuf.Timestamp.
    Protobuf(u32),
    /// An object of seconds and nanoseconds at `timestamp`, `header.stamp` or `stamp`.
    Json,
    /// A struct of seconds and nanoseconds at this offset of the root table's vtable.
    Flatbuffer(u16),
}

impl Place {
    /// Finds it in the schema.
    pub fn find(layout: Layout<'_>) -> Option<Self> {
        match (layout.encoding, layout.schema_encoding) {
            ("cdr", "ros2msg") => ros::leads_with_time(ros::first_field(layout.schema)?.as_str()).then_some(Self::Cdr),
            ("cdr", "ros2idl") => ros::idl_leads_with_time(layout.schema, layout.schema_name).then_some(Self::Cdr),
            ("ros1", "ros1msg") => match ros::first_field(layout.schema)?.as_str() {
                "time" => Some(Self::Ros1(0)),
                first => ros::is_header(first).then_some(Self::Ros1(4)), // after `seq`
            },
            ("protobuf", "protobuf") => {
                protobuf::timestamp_field(layout.schema, layout.schema_name).map(Self::Protobuf)
            }
            ("flatbuffer", "flatbuffer") => {
                flatbuffer::timestamp_slot(layout.schema, layout.schema_name).map(Self::Flatbuffer)
            }
            ("json", _) => Some(Self::Json),
            _ => None,
        }
    }

    /// How many bytes of a message [`Place::read`] looks at; [`WHOLE`] where the stamp may be anywhere.
    pub fn needs(self) -> usize {
        match self {
            Self::Cdr => ENCAPSULATION + 8,
            Self::Ros1(offset) => offset + 8,
            Self::Protobuf(_) | Self::Json | Self::Flatbuffer(_) => WHOLE,
        }
    }

    /// The stamp in ns, [`i64::MAX`] where it lies beyond; None where it is unset or cannot be read.
    ///
    /// `data` are the first bytes of the message, as many as [`Place::needs`] asks for; `whole_message` when they are all.
    pub fn read(self, data: &[u8], whole_message: bool) -> Option<i64> {
        match self {
            Self::Cdr => cdr(data),
            Self::Ros1(offset) => {
                let sec = u32::from_le_bytes(array(data, offset)?);
                whole(sec.into(), u32::from_le_bytes(array(data, offset + 4)?).into())
            }
            Self::Protobuf(field) => protobuf::read(data, field, whole_message),
            Self::Json => json::read(data),
            Self::Flatbuffer(slot) => flatbuffer::read(data, slot),
        }
    }
}

/// Seconds and nanoseconds of a CDR message that begins with them: classic CDR and plain CDR2 lay them out alike.
fn cdr(data: &[u8]) -> Option<i64> {
    let [kind_high, kind_low, ..] = array::<4>(data, 0)?;
    let (sec, nsec) = (array(data, ENCAPSULATION)?, array(data, ENCAPSULATION + 4)?);
    match (kind_high, kind_low) {
        (0, 1 | 7) => whole(i32::from_le_bytes(sec).into(), u32::from_le_bytes(nsec).into()),
        (0, 0 | 6) => whole(i32::from_be_bytes(sec).into(), u32::from_be_bytes(nsec).into()),
        _ => None, // parameter lists and delimited layouts put lengths first
    }
}

/// `sec` seconds and `nsec` nanoseconds in ns; None where both are 0, which is how a stamp is unset, or where `nsec` is
/// no fraction of a second.
fn whole(sec: i64, nsec: i64) -> Option<i64> {
    if !(0..NS_PER_S).contains(&nsec) {
        return None;
    }
    let beyond = if sec < 0 { i64::MIN } else { i64::MAX };
    let ns = sec.checked_mul(NS_PER_S).and_then(|ns| ns.checked_add(nsec)).unwrap_or(beyond);
    (ns != 0).then_some(ns)
}

/// `N` bytes at `offset`.
fn array<const N: usize>(data: &[u8], offset: usize) -> Option<[u8; N]> {
    data.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_beyond_64_bits_is_kept_apart_from_an_unset_one() {
        assert_eq!(whole(i64::MAX, 0), Some(i64::MAX));
        assert_eq!(whole(i64::MIN, 0), Some(i64::MIN));
        assert_eq!(whole(0, 0), None);
        assert_eq!(whole(0, NS_PER_S), None);
        assert_eq!(whole(-1, 1), Some(-999_999_999));
    }

    #[test]
    fn layouts_of_cdr_that_put_lengths_first_give_no_stamp() {
        for kind in [2u8, 3, 8, 9, 10, 11, 255] {
            assert_eq!(cdr(&[0, kind, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0]), None);
        }
        for kind in [1u8, 7] {
            assert_eq!(cdr(&[0, kind, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0]), Some(5_000_000_007));
        }
        assert_eq!(cdr(&[0, 6, 0, 0, 0, 0, 0, 5, 0, 0, 0, 7]), Some(5_000_000_007));
    }
}
