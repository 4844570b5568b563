//! From payloads to protobuf messages that public readers know, and the descriptors that explain them.
//!
//! Where foxglove has a schema it is used as its crate ships it; `firsthand.Imu` and `firsthand.Record` are ours and
//! their descriptors are built here, field by field, so that `mcap-protobuf-support` decodes them without any file
//! of ours. Floating point fields are written even when they are zero, because a proto3 encoder that leaves zeros out
//! turns -0.0 into 0.0, and payloads come back byte for byte.

use std::collections::BTreeSet;

use bytes::Bytes;
use foxglove::Encode;
use foxglove::messages::{CompressedImage, CompressedVideo, Event, KeyValuePair, PosesInFrame, RawImage, Timestamp};
use prost::Message;
use prost::encoding::{WireType, double, encode_key, encode_varint, message, string};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};

use crate::error::{RecordError, RecordResult};

/// Name, encoding and descriptor of a schema, as an MCAP schema record holds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaText {
    /// Full name of the message.
    pub name: String,
    /// Always `protobuf`.
    pub encoding: String,
    /// A serialized `google.protobuf.FileDescriptorSet`.
    pub data: Vec<u8>,
}

/// What a payload is, from the stream's `media` name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Media {
    /// `picture/<format>`: foxglove.CompressedImage.
    Picture(String),
    /// `video/<format>`: foxglove.CompressedVideo.
    Video(String),
    /// `raw/<encoding>;<width>x<height>`: foxglove.RawImage.
    Raw {
        /// Pixel encoding in foxglove's words.
        encoding: String,
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// `imu`: 6 float64 LE, acceleration in m/s^2 then angular rate in rad/s: firsthand.Imu.
    Imu,
    /// `poses`: n x 7 float64 LE, position in m then quaternion xyzw: foxglove.PosesInFrame.
    Poses,
    /// `event`: UTF-8 JSON object: foxglove.Event.
    Event,
    /// `record`: bytes kept as they are: firsthand.Record.
    Record,
}

const IMU_BYTES: usize = 6 * 8;
const POSE_BYTES: usize = 7 * 8;
/// Length of the encoded body of a vector or quaternion: one byte of key and eight of value per component.
const COMPONENT_BYTES: usize = 1 + 8;

impl Media {
    /// Reads a media name.
    ///
    /// # Errors
    /// [`RecordError::Invalid`] for a name that is none of the list.
    pub fn parse(name: &str) -> RecordResult<Self> {
        let wrong = || {
            RecordError::Invalid(format!(
                "media {name:?} is not known; use picture/<format>, video/<format>, raw/<encoding>;<width>x<height>, \
                 imu, poses, event or record"
            ))
        };
        match name.split_once('/') {
            Some(("picture", format)) if !format.is_empty() => Ok(Self::Picture(format.to_owned())),
            Some(("video", format)) if !format.is_empty() => Ok(Self::Video(format.to_owned())),
            Some(("raw", rest)) => {
                let (encoding, size) = rest.split_once(';').ok_or_else(wrong)?;
                let (width, height) = size.split_once('x').ok_or_else(wrong)?;
                let parse = |text: &str| text.parse::<u32>().ok().filter(|n| *n > 0).ok_or_else(wrong);
                Ok(Self::Raw { encoding: encoding.to_owned(), width: parse(width)?, height: parse(height)? })
            }
            None if name == "imu" => Ok(Self::Imu),
            None if name == "poses" => Ok(Self::Poses),
            None if name == "event" => Ok(Self::Event),
            None if name == "record" => Ok(Self::Record),
            _ => Err(wrong()),
        }
    }

    /// The schema of the stream's channel.
    pub fn schema(&self) -> SchemaText {
        match self {
            Self::Picture(_) => foxglove_schema::<CompressedImage>(),
            Self::Video(_) => foxglove_schema::<CompressedVideo>(),
            Self::Raw { .. } => foxglove_schema::<RawImage>(),
            Self::Poses => foxglove_schema::<PosesInFrame>(),
            Self::Event => foxglove_schema::<Event>(),
            Self::Imu => own_schema("Imu"),
            Self::Record => record_schema(),
        }
    }

    /// Appends the message of one sample to `out`.
    ///
    /// `frame` is the stream's name; `capture_ns` is the rig time of the sample, None where it has no stamp.
    /// Returns false, and appends nothing, when the payload is not what the media name promises: such a payload is
    /// kept by the caller as a `firsthand.Record`.
    pub fn encode(&self, frame: &str, capture_ns: Option<i64>, payload: &Bytes, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Picture(format) => append(
                &CompressedImage {
                    timestamp: foxglove_time(capture_ns),
                    frame_id: frame.to_owned(),
                    data: payload.clone(),
                    format: format.clone(),
                },
                out,
            ),
            Self::Video(format) => append(
                &CompressedVideo {
                    timestamp: foxglove_time(capture_ns),
                    frame_id: frame.to_owned(),
                    data: payload.clone(),
                    format: format.clone(),
                },
                out,
            ),
            Self::Raw { encoding, width, height } => {
                let rows = *height as usize;
                let Ok(step) = u32::try_from(payload.len() / rows) else { return false };
                if payload.is_empty() || !payload.len().is_multiple_of(rows) {
                    return false;
                }
                append(
                    &RawImage {
                        timestamp: foxglove_time(capture_ns),
                        frame_id: frame.to_owned(),
                        width: *width,
                        height: *height,
                        encoding: encoding.clone(),
                        step,
                        data: payload.clone(),
                    },
                    out,
                )
            }
            Self::Imu => encode_imu(capture_ns, payload, out),
            Self::Poses => encode_poses(frame, capture_ns, payload, out),
            Self::Event => encode_event(capture_ns, payload, out),
            Self::Record => encode_record(capture_ns, payload, &Bytes::new(), out),
        }
    }
}

/// `firsthand.Record`: bytes as they were delivered, with the metadata of the device.
#[derive(Clone, PartialEq, Message)]
struct RecordMessage {
    #[prost(message, optional, tag = "1")]
    timestamp: Option<prost_types::Timestamp>,
    #[prost(bytes = "bytes", tag = "2")]
    data: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    metadata: Bytes,
}

/// The schema of `firsthand.Record`.
pub fn record_schema() -> SchemaText {
    own_schema("Record")
}

/// Appends a `firsthand.Record`.
pub fn encode_record(capture_ns: Option<i64>, data: &Bytes, metadata: &Bytes, out: &mut Vec<u8>) -> bool {
    let timestamp = capture_ns.map(well_known_time);
    append(&RecordMessage { timestamp, data: data.clone(), metadata: metadata.clone() }, out)
}

fn encode_imu(capture_ns: Option<i64>, payload: &[u8], out: &mut Vec<u8>) -> bool {
    let (values, rest) = payload.as_chunks::<8>();
    if payload.len() != IMU_BYTES || !rest.is_empty() {
        return false;
    }
    if let Some(t) = capture_ns {
        message::encode(1, &well_known_time(t), out);
    }
    for (field, vector) in (2u32..).zip(values.chunks(3)) {
        encode_doubles(field, vector, out);
    }
    true
}

fn encode_poses(frame: &str, capture_ns: Option<i64>, payload: &[u8], out: &mut Vec<u8>) -> bool {
    let (values, rest) = payload.as_chunks::<8>();
    if !payload.len().is_multiple_of(POSE_BYTES) || !rest.is_empty() {
        return false;
    }
    if let Some(t) = foxglove_time(capture_ns) {
        message::encode(1, &t, out);
    }
    string::encode(2, &frame.to_owned(), out);
    for pose in values.chunks(7) {
        let (position, orientation) = pose.split_at(pose.len().min(3));
        encode_key(3, WireType::LengthDelimited, out);
        // Both parts have a one-byte key and a one-byte length.
        encode_varint((2 + 2 + pose.len() * COMPONENT_BYTES) as u64, out);
        encode_doubles(1, position, out);
        encode_doubles(2, orientation, out);
    }
    true
}

/// A message of float64 components 1, 2, 3 ... as field `field`.
fn encode_doubles(field: u32, values: &[[u8; 8]], out: &mut Vec<u8>) {
    encode_key(field, WireType::LengthDelimited, out);
    encode_varint((values.len() * COMPONENT_BYTES) as u64, out);
    for (tag, value) in (1u32..).zip(values) {
        double::encode(tag, &f64::from_le_bytes(*value), out);
    }
}

/// Every member of the object as a pair (strings as they are, other values as JSON), then `json`: the payload verbatim.
fn encode_event(capture_ns: Option<i64>, payload: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(text) = std::str::from_utf8(payload) else { return false };
    let Ok(members) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text) else { return false };
    let mut seen = BTreeSet::from(["json".to_owned()]);
    let mut metadata: Vec<KeyValuePair> = members
        .into_iter()
        .filter(|(key, _)| seen.insert(key.clone()))
        .map(|(key, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            KeyValuePair { key, value }
        })
        .collect();
    metadata.push(KeyValuePair { key: "json".to_owned(), value: text.to_owned() });
    let time = foxglove_time(capture_ns);
    append(&Event { start_time: time, end_time: time, metadata }, out)
}

fn append(message: &impl Message, out: &mut Vec<u8>) -> bool {
    // A Vec grows, so the only error there is (no room in the buffer) cannot occur.
    message.encode(out).is_ok()
}

/// foxglove's timestamp holds unsigned 32-bit seconds; a time outside of it stays out of the message and remains in
/// the publish time.
fn foxglove_time(capture_ns: Option<i64>) -> Option<Timestamp> {
    let t = capture_ns?;
    let seconds = u32::try_from(t.div_euclid(1_000_000_000)).ok()?;
    let nanos = u32::try_from(t.rem_euclid(1_000_000_000)).ok()?;
    Timestamp::new_checked(seconds, nanos)
}

fn well_known_time(t: i64) -> prost_types::Timestamp {
    // The remainder is below 10^9 and fits.
    let nanos = i32::try_from(t.rem_euclid(1_000_000_000)).unwrap_or_default();
    prost_types::Timestamp { seconds: t.div_euclid(1_000_000_000), nanos }
}

fn foxglove_schema<T: Encode>() -> SchemaText {
    match T::get_schema() {
        Some(schema) => SchemaText { name: schema.name, encoding: schema.encoding, data: schema.data.into_owned() },
        // Every message of foxglove's own set has a schema; a test holds it.
        None => SchemaText { name: String::new(), encoding: String::new(), data: Vec::new() },
    }
}

fn own_schema(message: &str) -> SchemaText {
    let well_known = FileDescriptorProto {
        name: Some("google/protobuf/timestamp.proto".to_owned()),
        package: Some("google.protobuf".to_owned()),
        message_type: vec![descriptor(
            "Timestamp",
            &[("seconds", 1, Type::Int64, None), ("nanos", 2, Type::Int32, None)],
        )],
        syntax: Some("proto3".to_owned()),
        ..Default::default()
    };
    const TIME: Option<&str> = Some(".google.protobuf.Timestamp");
    const VECTOR: Option<&str> = Some(".firsthand.Vector3");
    let message_type = match message {
        "Imu" => vec![
            descriptor(
                "Vector3",
                &[("x", 1, Type::Double, None), ("y", 2, Type::Double, None), ("z", 3, Type::Double, None)],
            ),
            descriptor(
                "Imu",
                &[
                    ("timestamp", 1, Type::Message, TIME),
                    ("linear_acceleration", 2, Type::Message, VECTOR),
                    ("angular_velocity", 3, Type::Message, VECTOR),
                ],
            ),
        ],
        _ => vec![descriptor(
            "Record",
            &[
                ("timestamp", 1, Type::Message, TIME),
                ("data", 2, Type::Bytes, None),
                ("metadata", 3, Type::Bytes, None),
            ],
        )],
    };
    let own = FileDescriptorProto {
        name: Some(format!("firsthand/{message}.proto")),
        package: Some("firsthand".to_owned()),
        dependency: vec!["google/protobuf/timestamp.proto".to_owned()],
        message_type,
        syntax: Some("proto3".to_owned()),
        ..Default::default()
    };
    SchemaText {
        name: format!("firsthand.{message}"),
        encoding: "protobuf".to_owned(),
        data: FileDescriptorSet { file: vec![well_known, own] }.encode_to_vec(),
    }
}

fn descriptor(name: &str, fields: &[(&str, i32, Type, Option<&str>)]) -> DescriptorProto {
    DescriptorProto {
        name: Some(name.to_owned()),
        field: fields
            .iter()
            .map(|(field, number, kind, type_name)| FieldDescriptorProto {
                name: Some((*field).to_owned()),
                json_name: Some((*field).to_owned()),
                number: Some(*number),
                label: Some(Label::Optional as i32),
                r#type: Some(*kind as i32),
                type_name: type_name.map(str::to_owned),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_medium_has_a_schema() {
        for name in ["picture/png", "video/h264", "raw/16UC1;640x480", "imu", "poses", "event", "record"] {
            let schema = Media::parse(name).unwrap().schema();
            assert_eq!(schema.encoding, "protobuf", "{name}");
            let set = FileDescriptorSet::decode(&schema.data[..]).unwrap();
            let (package, message) = schema.name.split_once('.').unwrap();
            assert!(
                set.file.iter().any(|f| f.package() == package && f.message_type.iter().any(|m| m.name() == message)),
                "{name}"
            );
        }
    }

    #[test]
    fn unknown_media_are_refused_with_the_list() {
        for name in ["picture/", "raw/16UC1", "raw/x;0x5", "raw/x;axb", "imu/x", "", "audio"] {
            assert!(Media::parse(name).unwrap_err().to_string().contains("use picture/<format>"), "{name}");
        }
    }

    #[test]
    fn poses_are_as_foxglove_decodes_them() {
        let values: [f64; 7] = [1.5, -0.0, 3.0, 0.0, 0.0, 0.7, 0.7];
        let payload: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut out = Vec::new();
        assert!(Media::Poses.encode("hand", Some(3_000_000_007), &Bytes::from(payload), &mut out));
        let decoded = PosesInFrame::decode(&out[..]).unwrap();
        let pose = decoded.poses[0];
        let (p, q) = (pose.position.unwrap(), pose.orientation.unwrap());
        assert_eq!([p.x, p.y, p.z, q.x, q.y, q.z, q.w].map(f64::to_bits), values.map(f64::to_bits));
        assert_eq!((decoded.frame_id.as_str(), decoded.timestamp.unwrap().nsec()), ("hand", 7));
    }

    #[test]
    fn a_payload_that_is_not_what_it_promises_is_told() {
        let cases: [(Media, &'static [u8]); 4] = [
            (Media::Imu, &[0; 47]),
            (Media::Poses, &[0; 55]),
            (Media::Event, b"[1]"),
            (Media::Raw { encoding: "mono8".into(), width: 2, height: 2 }, &[0; 3]),
        ];
        for (media, payload) in cases {
            let mut out = Vec::new();
            assert!(!media.encode("s", None, &Bytes::from_static(payload), &mut out));
            assert!(out.is_empty());
        }
    }

    #[test]
    fn an_event_keeps_its_text() {
        let text = br#"{ "kind":"contact", "n": 3, "json": 1 }"#;
        let mut out = Vec::new();
        assert!(Media::Event.encode("s", Some(5), &Bytes::from_static(text), &mut out));
        let event = Event::decode(&out[..]).unwrap();
        let pairs: Vec<(&str, &str)> = event.metadata.iter().map(|p| (p.key.as_str(), p.value.as_str())).collect();
        assert_eq!(pairs, [("kind", "contact"), ("n", "3"), ("json", std::str::from_utf8(text).unwrap())]);
    }
}
