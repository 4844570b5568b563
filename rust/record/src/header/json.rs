//! A JSON message's stamp, without building the message: `timestamp`, `header.stamp` or `stamp`, whichever is an object
//! first.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::whole;

const SECONDS: [&str; 3] = ["sec", "secs", "seconds"];
const NANOSECONDS: [&str; 4] = ["nsec", "nanosec", "nsecs", "nanos"];

/// The stamp of a message; None where it has none or is no JSON.
pub(super) fn read(data: &[u8]) -> Option<i64> {
    let message: Node = serde_json::from_slice(data).ok()?;
    let Node::Object(message) = message else { return None };
    let header = message.header.and_then(|header| header.stamp);
    let found = message.timestamp.or(header).or(message.stamp)?;
    let [sec, nsec] = [first(found.seconds)?, first(found.nanoseconds)?];
    whole(sec, nsec)
}

/// The value under the first of several names that is there; None where that is no whole number.
fn first<const N: usize>(values: [Option<Number>; N]) -> Option<i64> {
    match values.into_iter().flatten().next()? {
        Number::Whole(value) => Some(value),
        Number::Other => None,
    }
}

#[derive(Clone, Copy)]
enum Number {
    Whole(i64),
    Other,
}

/// A value: an object with what may belong to a stamp, a whole number, or anything else.
enum Node {
    Object(Box<Object>),
    Whole(i64),
    Other,
}

#[derive(Default)]
struct Object {
    timestamp: Option<Stamp>,
    header: Option<Box<Object>>,
    stamp: Option<Stamp>,
    seconds: [Option<Number>; 3],
    nanoseconds: [Option<Number>; 4],
}

struct Stamp {
    seconds: [Option<Number>; 3],
    nanoseconds: [Option<Number>; 4],
}

impl Node {
    fn number(&self) -> Number {
        if let Self::Whole(value) = self { Number::Whole(*value) } else { Number::Other }
    }

    fn object(self) -> Option<Box<Object>> {
        if let Self::Object(object) = self { Some(object) } else { None }
    }

    fn stamp(self) -> Option<Stamp> {
        let Object { seconds, nanoseconds, .. } = *self.object()?;
        Some(Stamp { seconds, nanoseconds })
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Whole(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Whole(i64::try_from(value).unwrap_or(i64::MAX)))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Node::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut out = Object::default();
        while let Some(key) = entries.next_key::<Key>()? {
            match key {
                Key::Timestamp => out.timestamp = entries.next_value::<Node>()?.stamp(),
                Key::Header => out.header = entries.next_value::<Node>()?.object(),
                Key::Stamp => out.stamp = entries.next_value::<Node>()?.stamp(),
                Key::Seconds(i) => set(&mut out.seconds, i, entries.next_value::<Node>()?.number()),
                Key::Nanoseconds(i) => set(&mut out.nanoseconds, i, entries.next_value::<Node>()?.number()),
                Key::Other => {
                    entries.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Node::Object(Box::new(out)))
    }
}

fn set(values: &mut [Option<Number>], index: usize, value: Number) {
    if let Some(slot) = values.get_mut(index) {
        *slot = Some(value);
    }
}

enum Key {
    Timestamp,
    Header,
    Stamp,
    Seconds(usize),
    Nanoseconds(usize),
    Other,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Key, E> {
        let place = |names: &[&str]| names.iter().position(|name| *name == key);
        Ok(match key {
            "timestamp" => Key::Timestamp,
            "header" => Key::Header,
            "stamp" => Key::Stamp,
            _ => match (place(&SECONDS), place(&NANOSECONDS)) {
                (Some(index), _) => Key::Seconds(index),
                (_, Some(index)) => Key::Nanoseconds(index),
                _ => Key::Other,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whichever_is_an_object_first() {
        let cases: [(&str, Option<i64>); 9] = [
            (r#"{"timestamp": {"sec": 5, "nsec": 7}, "stamp": {"sec": 1, "nsec": 1}}"#, Some(5_000_000_007)),
            (r#"{"timestamp": 5.5, "header": {"stamp": {"sec": 5, "nanosec": 7}}}"#, Some(5_000_000_007)),
            (r#"{"header": 1, "stamp": {"seconds": 5, "nanos": 7}}"#, Some(5_000_000_007)),
            (r#"{"timestamp": {}, "stamp": {"sec": 5, "nsec": 7}}"#, None),
            (r#"{"timestamp": {"sec": 5, "nsec": 7.0}}"#, None),
            (r#"{"timestamp": {"sec": true, "secs": 5, "nsec": 7}}"#, None),
            (r#"{"data": {"timestamp": {"sec": 5, "nsec": 7}}}"#, None),
            (r#"{"timestamp": {"sec": 5, "nsec": 7}} x"#, None),
            (r#"[{"timestamp": {"sec": 5, "nsec": 7}}]"#, None),
        ];
        for (text, stamp) in cases {
            assert_eq!(read(text.as_bytes()), stamp, "{text}");
        }
    }

    #[test]
    fn the_last_of_equal_keys_holds() {
        let text = br#"{"timestamp": {"sec": 1, "nsec": 1}, "timestamp": {"sec": 5, "nsec": 0, "nsec": 7}}"#;
        assert_eq!(read(text), Some(5_000_000_007));
        assert_eq!(read(br#"{"timestamp": {"sec": 5, "nsec": 7}, "timestamp": null}"#), None);
    }
}
