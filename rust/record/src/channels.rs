//! Which channels the two files of an episode have, as a function of the devices alone.
//!
//! Channel and schema ids are fixed by the order of devices and streams. Recovery relies on it: if the chunk that
//! holds the definitions is damaged, the table is made again from the device information of the evidence.

use std::collections::BTreeMap;

use crate::device::{DeviceInfo, StreamInfo};
use crate::error::RecordResult;
use crate::evidence::layout;
use crate::schema::{Media, SchemaText, record_schema};

/// Schema id of `firsthand.Record` in every file of ours that has schemas.
pub const RECORD_SCHEMA_ID: u16 = 1;

/// A channel as it is written to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Id in the file.
    pub id: u16,
    /// Topic.
    pub topic: String,
    /// `protobuf` or one of ours.
    pub message_encoding: String,
    /// Schema id and text, none for encodings of ours.
    pub schema: Option<(u16, SchemaText)>,
    /// Key-value metadata.
    pub metadata: BTreeMap<String, String>,
    /// Written at the start; the others when first used.
    pub always: bool,
}

/// The three channels of one stream of the episode.
#[derive(Debug, Clone)]
pub struct StreamChannels {
    /// `/<stream>`: the samples.
    pub samples: Channel,
    /// `/<stream>/metadata`: what the device said about a sample.
    pub metadata: Channel,
    /// `/<stream>/unparsed`: payloads that were not what the media name promises, as they came.
    pub unparsed: Channel,
}

/// All streams with their devices, in the order that numbers them.
pub fn streams(devices: &[DeviceInfo]) -> impl Iterator<Item = (&DeviceInfo, &StreamInfo)> {
    devices.iter().flat_map(|device| device.streams.iter().map(move |stream| (device, stream)))
}

/// Channels of `episode.mcap`: stream `i` has the channel ids `3i + 1` (samples), `3i + 2` (metadata), `3i + 3`
/// (unparsed).
///
/// # Errors
/// [`crate::RecordError::Invalid`] for an unknown media name.
pub fn episode_channels(devices: &[DeviceInfo]) -> RecordResult<Vec<StreamChannels>> {
    // Schemas of equal name are one schema; the first is the record's, which every stream may need.
    let mut schema_ids = BTreeMap::from([(record_schema().name, RECORD_SCHEMA_ID)]);
    let mut out = Vec::new();
    for ((device, stream), first) in streams(devices).zip((1u16..).step_by(3)) {
        let schema = Media::parse(&stream.media)?.schema();
        let next = u16::try_from(schema_ids.len() + 1).unwrap_or(u16::MAX);
        let schema_id = *schema_ids.entry(schema.name.clone()).or_insert(next);
        let about = |topic: String, part: u16, schema: (u16, SchemaText)| Channel {
            id: first.saturating_add(part),
            topic,
            message_encoding: "protobuf".to_owned(),
            schema: Some(schema),
            metadata: BTreeMap::from([
                ("stream".to_owned(), stream.name.clone()),
                ("device".to_owned(), device.name.clone()),
                ("media".to_owned(), stream.media.clone()),
                ("stamp_point".to_owned(), stream.stamp_point.name().to_owned()),
            ]),
            always: part == 0,
        };
        out.push(StreamChannels {
            samples: about(format!("/{}", stream.name), 0, (schema_id, schema)),
            metadata: about(format!("/{}/metadata", stream.name), 1, (RECORD_SCHEMA_ID, record_schema())),
            unparsed: about(format!("/{}/unparsed", stream.name), 2, (RECORD_SCHEMA_ID, record_schema())),
        });
    }
    Ok(out)
}

/// Channels of `evidence.mcap`: 1 `edges`, 2 `ticks`, 3 `events`, then `samples/<stream>` from 4 on.
pub fn evidence_channels(devices: &[DeviceInfo]) -> Vec<Channel> {
    let of = |id: u16, topic: String, encoding: &str, columns: Option<&[&str]>| Channel {
        id,
        topic,
        message_encoding: encoding.to_owned(),
        schema: None,
        metadata: columns
            .map(|names| {
                BTreeMap::from([
                    ("layout".to_owned(), layout::NAME.to_owned()),
                    ("columns".to_owned(), names.join(",")),
                ])
            })
            .unwrap_or_default(),
        always: true,
    };
    let mut out = vec![
        of(1, layout::EDGES.to_owned(), layout::COLUMNS_ENCODING, Some(&layout::EDGE_COLUMNS)),
        of(2, layout::TICKS.to_owned(), layout::COLUMNS_ENCODING, Some(&layout::TICK_COLUMNS)),
        of(3, layout::EVENTS.to_owned(), "json", None),
    ];
    for ((_, stream), id) in streams(devices).zip(4u16..) {
        let topic = format!("{}{}", layout::SAMPLES, stream.name);
        out.push(of(id, topic, layout::SAMPLES_ENCODING, Some(&layout::SAMPLE_COLUMNS)));
    }
    out
}
