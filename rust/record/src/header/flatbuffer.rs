//! Flatbuffers: foxglove's convention is a field `timestamp` of the struct `foxglove.Time` in the root table. Schemas are
//! `reflection.Schema` buffers; slots are ids of `reflection/reflection.fbs`.

use super::{array, whole};

const TIME: &[u8] = b"foxglove.Time";
const OBJECT: u8 = 15;
/// First entry of a vtable: its size and the table's come before.
const FIRST_SLOT: u16 = 4;

/// A table within a buffer.
#[derive(Clone, Copy)]
struct Table<'a> {
    buffer: &'a [u8],
    at: usize,
    vtable: usize,
    slots: usize,
}

impl<'a> Table<'a> {
    fn new(buffer: &'a [u8], at: usize) -> Option<Self> {
        let back = i64::from(i32::from_le_bytes(array(buffer, at)?));
        let vtable = usize::try_from(i64::try_from(at).ok()? - back).ok()?;
        let slots = usize::from(u16::from_le_bytes(array(buffer, vtable)?));
        Some(Self { buffer, at, vtable, slots })
    }

    /// Of the root table.
    fn root(buffer: &'a [u8]) -> Option<Self> {
        Self::new(buffer, u32::from_le_bytes(array(buffer, 0)?) as usize)
    }

    /// Where the field of a vtable entry is; None where it is not set.
    fn field(&self, slot: u16) -> Option<usize> {
        let slot = usize::from(slot);
        if slot + 2 > self.slots {
            return None;
        }
        match u16::from_le_bytes(array(self.buffer, self.vtable.checked_add(slot)?)?) {
            0 => None,
            offset => self.at.checked_add(offset.into()),
        }
    }

    /// Where the field of an id points to.
    fn target(&self, id: u16) -> Option<usize> {
        let at = self.field(FIRST_SLOT + 2 * id)?;
        at.checked_add(u32::from_le_bytes(array(self.buffer, at)?) as usize)
    }

    fn text(&self, id: u16) -> Option<&'a [u8]> {
        let at = self.target(id)?;
        let length = u32::from_le_bytes(array(self.buffer, at)?) as usize;
        self.buffer.get(at + 4..(at + 4).checked_add(length)?)
    }

    fn table(&self, id: u16) -> Option<Self> {
        Self::new(self.buffer, self.target(id)?)
    }

    /// The table at an index of a vector of tables.
    fn item(&self, id: u16, index: usize) -> Option<Self> {
        let at = self.target(id)?;
        let count = u32::from_le_bytes(array(self.buffer, at)?) as usize;
        if index >= count {
            return None;
        }
        let entry = at.checked_add(4)?.checked_add(index.checked_mul(4)?)?;
        let target = entry.checked_add(u32::from_le_bytes(array(self.buffer, entry)?) as usize)?;
        Self::new(self.buffer, target)
    }

    fn items(self, id: u16) -> impl Iterator<Item = Self> {
        (0..).map_while(move |index| self.item(id, index))
    }
}

/// Entry of the vtable of `name` under which its stamp is.
pub(super) fn timestamp_slot(schema: &[u8], name: &str) -> Option<u16> {
    let schema = Table::root(schema)?;
    let message = schema.items(0).find(|object| object.text(0) == Some(name.as_bytes()))?;
    let field = message.items(1).find(|field| field.text(0) == Some(b"timestamp"))?;
    let of_type = field.table(1)?;
    let base = of_type.field(FIRST_SLOT).and_then(|at| array::<1>(of_type.buffer, at))?;
    let index = of_type.field(FIRST_SLOT + 4).and_then(|at| array(of_type.buffer, at)).map(i32::from_le_bytes)?;
    let time = schema.item(0, usize::try_from(index).ok()?)?;
    let slot = field.field(FIRST_SLOT + 6).and_then(|at| array(field.buffer, at)).map(u16::from_le_bytes)?;
    (base == [OBJECT] && time.text(0) == Some(TIME)).then_some(slot)
}

/// The stamp of a message; None where it is not set.
pub(super) fn read(data: &[u8], slot: u16) -> Option<i64> {
    let at = Table::root(data)?.field(slot)?;
    let sec = u32::from_le_bytes(array(data, at)?);
    whole(sec.into(), u32::from_le_bytes(array(data, at.checked_add(4)?)?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_give_a_stamp_or_none() {
        let mut state = 1u64;
        let mut buffer = [0u8; 96];
        for _ in 0..20_000 {
            for byte in &mut buffer {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = if state >> 60 < 9 { 0 } else { (state >> 56) as u8 & 0x3f };
            }
            read(&buffer, 4);
            timestamp_slot(&buffer, "foxglove.CompressedImage");
        }
        assert_eq!(read(&[0xff; 64], 4), None);
        assert_eq!(timestamp_slot(&[0xff; 64], "a.B"), None);
    }
}
