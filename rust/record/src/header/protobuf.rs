//! Protobuf on the wire: foxglove's convention is a field `timestamp` of type google.protobuf.Timestamp at the top of
//! the message. Descriptors are read the same way, so no schema costs memory: <https://protobuf.dev/programming-guides/encoding>.

use super::whole;

const TIMESTAMP: &[u8] = b"google.protobuf.Timestamp";
const REPEATED: u64 = 3;

/// Fields of a message, one after the other; those within groups are passed over.
struct Wire<'a> {
    rest: &'a [u8],
    groups: u32,
}

/// A field's value, as far as anybody here asks.
enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Other,
}

impl<'a> Wire<'a> {
    fn new(rest: &'a [u8]) -> Self {
        Self { rest, groups: 0 }
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn bytes(&mut self, n: u64) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(usize::try_from(n).ok()?)?;
        self.rest = rest;
        Some(head)
    }

    /// Number and value of the next field; None at the end and, with `rest` left over, where the bytes make no sense.
    fn next(&mut self) -> Option<(u32, Value<'a>)> {
        loop {
            let before = self.rest;
            let read = self.one();
            if read.is_none() && !before.is_empty() {
                self.rest = before;
            }
            let (number, value) = read?;
            if let Some(value) = value.filter(|_| self.groups == 0) {
                return Some((number, value));
            }
        }
    }

    /// The next field; no value for the ends of groups.
    fn one(&mut self) -> Option<(u32, Option<Value<'a>>)> {
        let tag = u32::try_from(self.varint()?).ok()?;
        let number = tag >> 3;
        let value = match tag & 7 {
            0 => Some(Value::Varint(self.varint()?)),
            1 => self.bytes(8).map(|_| Some(Value::Other))?,
            2 => {
                let length = self.varint()?;
                Some(Value::Bytes(self.bytes(length)?))
            }
            3 => {
                self.groups = self.groups.checked_add(1)?;
                None
            }
            4 => {
                self.groups = self.groups.checked_sub(1)?;
                None
            }
            5 => self.bytes(4).map(|_| Some(Value::Other))?,
            _ => return None,
        };
        (number != 0).then_some((number, value))
    }
}

/// Number of the field `timestamp` of the message `name`, from a FileDescriptorSet.
pub(super) fn timestamp_field(schema: &[u8], name: &str) -> Option<u32> {
    let mut files = Wire::new(schema);
    while let Some((number, value)) = files.next() {
        let (1, Value::Bytes(file)) = (number, value) else { continue };
        let package = text(file, 2).unwrap_or_default();
        let within = if package.is_empty() {
            Some(name.as_bytes())
        } else {
            name.as_bytes().strip_prefix(package).and_then(|rest| rest.strip_prefix(b"."))
        };
        if let Some(message) = within.and_then(|path| message(file, 4, path)) {
            return field(message);
        }
    }
    None
}

/// The first field of that number that holds bytes.
fn text(data: &[u8], wanted: u32) -> Option<&[u8]> {
    let mut fields = Wire::new(data);
    while let Some((number, value)) = fields.next() {
        if let (true, Value::Bytes(bytes)) = (number == wanted, value) {
            return Some(bytes);
        }
    }
    None
}

/// The descriptor of the message `path` (`Outer.Inner`) among the fields of number `kind`.
fn message<'a>(mut data: &'a [u8], mut kind: u32, path: &[u8]) -> Option<&'a [u8]> {
    for name in path.split(|byte| *byte == b'.') {
        let mut fields = Wire::new(data);
        data = loop {
            let (number, value) = fields.next()?;
            if let (true, Value::Bytes(descriptor)) = (number == kind, value)
                && text(descriptor, 1) == Some(name)
            {
                break descriptor;
            }
        };
        kind = 3; // nested types
    }
    Some(data)
}

/// Number of the field `timestamp` in a message's descriptor, if it is one google.protobuf.Timestamp.
fn field(descriptor: &[u8]) -> Option<u32> {
    let mut fields = Wire::new(descriptor);
    while let Some((number, value)) = fields.next() {
        let (2, Value::Bytes(field)) = (number, value) else { continue };
        if text(field, 1) != Some(b"timestamp") {
            continue;
        }
        let of_type = text(field, 6)?;
        let single = varint(field, 4) != Some(REPEATED);
        return varint(field, 3)
            .filter(|_| single && of_type.strip_prefix(b".").unwrap_or(of_type) == TIMESTAMP)
            .and_then(|number| u32::try_from(number).ok());
    }
    None
}

fn varint(data: &[u8], wanted: u32) -> Option<u64> {
    let mut fields = Wire::new(data);
    while let Some((number, value)) = fields.next() {
        if let (true, Value::Varint(value)) = (number == wanted, value) {
            return Some(value);
        }
    }
    None
}

/// The stamp of a message; None where it has none, or is no message, as far as it is there.
pub(super) fn read(data: &[u8], wanted: u32, whole_message: bool) -> Option<i64> {
    let mut fields = Wire::new(data);
    let (mut found, mut sec, mut nsec) = (false, 0, 0);
    while let Some((number, value)) = fields.next() {
        let (true, Value::Bytes(stamp)) = (number == wanted, value) else { continue };
        // Of a field that comes again, what the later one states holds.
        found = true;
        let mut parts = Wire::new(stamp);
        while let Some((number, value)) = parts.next() {
            match (number, value) {
                (1, Value::Varint(value)) => sec = value.cast_signed(),
                // An int32: what is beyond its 32 bits is cut off.
                #[allow(clippy::cast_possible_truncation)]
                (2, Value::Varint(value)) => nsec = i64::from(value as i32),
                _ => {}
            }
        }
        if !parts.rest.is_empty() {
            return None;
        }
    }
    let sound = !whole_message || (fields.groups == 0 && fields.rest.is_empty());
    (found && sound).then(|| whole(sec, nsec)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_comes_again_and_one_within_a_group() {
        // field 1 {1: 5, 2: 7}, field 1 {2: 9}, group 4 {field 1 {1: 77}}
        let data = [10, 4, 8, 5, 16, 7, 10, 2, 16, 9, 35, 10, 2, 8, 77, 36];
        assert_eq!(read(&data, 1, true), Some(5_000_000_009));
        assert_eq!(read(&data[..14], 1, true), None);
        assert_eq!(read(&data[..14], 1, false), Some(5_000_000_009));
        assert_eq!(read(&data, 2, true), None);
    }

    #[test]
    fn bytes_that_make_no_sense_give_no_stamp() {
        assert_eq!(read(&[10, 4, 8, 5, 16, 7, 0xff, 0xff], 1, true), None);
        assert_eq!(read(&[10, 200, 8, 5], 1, true), None);
        assert_eq!(read(&[0xff; 40], 1, true), None);
        assert_eq!(timestamp_field(&[0xff; 40], "a.B"), None);
    }
}
