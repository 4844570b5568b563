//! What is gathered while a file goes by: definitions, and a column of stamps for each topic.

use std::collections::{BTreeMap, HashMap};

use super::{Fault, Wanted};
use crate::header::{Layout, Place};
use crate::scan::{self, ChannelRecord, SchemaRecord, Statistics};

/// Bytes of definitions that are believed of one file.
const MAX_DEFINITIONS: usize = 1 << 28;

/// The stamps of one topic.
#[derive(Debug)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Name of its messages' schema, empty for none.
    pub schema: String,
    /// Metadata of its channel.
    pub metadata: BTreeMap<String, String>,
    /// Whether its schema has a place for a stamp.
    pub stamped: bool,
    /// Messages.
    pub samples: u64,
    /// Times in ns, in the order of the file, [`i64::MAX`] for those beyond.
    pub times: Vec<i64>,
    /// Whether `times` are stamps of the messages' own; then messages without one are left out.
    pub from_header: bool,
}

struct Channel {
    record: ChannelRecord,
    messages: u64,
    bound: Option<Bound>,
}

/// A channel with a message: whose column it fills, and where its messages keep their stamp.
#[derive(Clone, Copy)]
struct Bound {
    topic: usize,
    place: Option<Place>,
}

/// Everything that is gathered.
pub(super) struct Gather {
    wanted: Wanted,
    schemas: BTreeMap<u16, SchemaRecord>,
    channels: Vec<Option<Channel>>,
    topics: Vec<Topic>,
    names: HashMap<String, usize>,
    definitions: usize,
    messages: u64,
    room: u64,
}

impl Gather {
    /// Gathers of a file of `len` bytes.
    pub(super) fn new(wanted: Wanted, len: u64) -> Self {
        Self {
            wanted,
            schemas: BTreeMap::new(),
            channels: Vec::new(),
            topics: Vec::new(),
            names: HashMap::new(),
            definitions: 0,
            messages: 0,
            // A real message takes more than a byte of a file, however well it compresses; small files may be odd.
            room: len.saturating_add(1 << 26),
        }
    }

    /// What was gathered.
    pub(super) fn into_topics(self) -> Vec<Topic> {
        let mut topics: Vec<Topic> = self.topics.into_iter().filter(|topic| topic.samples > 0).collect();
        for topic in &mut topics {
            topic.times.shrink_to_fit();
        }
        topics
    }

    fn hold(&mut self, bytes: usize) -> Result<(), Fault> {
        self.definitions = self.definitions.saturating_add(bytes);
        if self.definitions > MAX_DEFINITIONS {
            return Err(Fault::damaged(format!("its definitions take more than the {MAX_DEFINITIONS} bytes believed")));
        }
        Ok(())
    }

    /// Takes in a definition of a schema. One of id 0 counts for nothing.
    pub(super) fn schema(&mut self, body: &[u8]) -> Result<(), Fault> {
        if body.first_chunk::<2>() == Some(&[0, 0]) {
            return Ok(());
        }
        let record = scan::schema(body).ok_or_else(|| Fault::damaged("a schema in it is malformed"))?;
        if self.schemas.get(&record.id) != Some(&record) {
            self.hold(body.len())?;
            self.schemas.insert(record.id, record);
        }
        Ok(())
    }

    /// Takes in a definition of a channel.
    pub(super) fn channel(&mut self, body: &[u8]) -> Result<(), Fault> {
        let record = scan::channel(body).ok_or_else(|| Fault::damaged("a channel in it is malformed"))?;
        let at = usize::from(record.id);
        if self.channels.len() <= at {
            self.channels.resize_with(at + 1, || None);
        }
        let known = self.channels.get(at).and_then(Option::as_ref);
        if known.is_none_or(|known| known.record != record) {
            let messages = known.map_or(0, |known| known.messages);
            self.hold(body.len())?;
            if let Some(slot) = self.channels.get_mut(at) {
                *slot = Some(Channel { record, messages, bound: None });
            }
        }
        Ok(())
    }

    /// Whether a channel and its schema are defined.
    pub(super) fn knows(&self, id: u16) -> bool {
        let channel = self.channels.get(usize::from(id)).and_then(Option::as_ref);
        channel.is_some_and(|c| c.record.schema_id == 0 || self.schemas.contains_key(&c.record.schema_id))
    }

    /// Where the stamp of a channel's messages is; counts a message.
    ///
    /// # Errors
    /// A channel that is not defined, or messages beyond what the file's length can hold.
    #[inline]
    pub(super) fn message(&mut self, id: u16) -> Result<(usize, Option<Place>), Fault> {
        self.messages(id, 1).map(|bound| (bound.topic, bound.place))
    }

    /// The topic of a channel; counts `n` messages.
    pub(super) fn indexed(&mut self, id: u16, n: u64) -> Result<usize, Fault> {
        self.messages(id, n).map(|bound| bound.topic)
    }

    #[inline]
    fn messages(&mut self, id: u16, n: u64) -> Result<Bound, Fault> {
        self.messages = self.messages.saturating_add(n);
        if self.messages > self.room {
            return Err(Fault::damaged(format!(
                "it holds more than the {} messages believed of its length",
                self.room
            )));
        }
        match self.channels.get_mut(usize::from(id)) {
            Some(Some(channel)) => {
                channel.messages += n;
                match channel.bound {
                    Some(bound) => Ok(bound),
                    None => self.bind(id),
                }
            }
            _ => Err(Fault::Undescribed(id)),
        }
    }

    /// A channel's first message: now its topic has one.
    #[cold]
    fn bind(&mut self, id: u16) -> Result<Bound, Fault> {
        let slot = self.channels.get_mut(usize::from(id)).and_then(Option::as_mut);
        let channel = slot.ok_or(Fault::Undescribed(id))?;
        let schema = match channel.record.schema_id {
            0 => None,
            schema => Some(self.schemas.get(&schema).ok_or(Fault::Undescribed(id))?),
        };
        let place = schema.and_then(|schema| {
            Place::find(Layout {
                encoding: &channel.record.message_encoding,
                schema_encoding: &schema.encoding,
                schema_name: &schema.name,
                schema: &schema.data,
            })
        });
        let topic = *self.names.entry(channel.record.topic.clone()).or_insert_with(|| {
            self.topics.push(Topic {
                name: channel.record.topic.clone(),
                schema: schema.map(|schema| schema.name.clone()).unwrap_or_default(),
                metadata: channel.record.metadata.clone(),
                stamped: false,
                samples: 0,
                times: Vec::new(),
                from_header: false,
            });
            self.topics.len() - 1
        });
        if let Some(topic) = self.topics.get_mut(topic) {
            topic.stamped |= place.is_some();
        }
        let place = place.filter(|_| self.wanted == Wanted::Header);
        Ok(*channel.bound.insert(Bound { topic, place }))
    }

    /// Takes in a message's times, of the log and of publication. `data` are its first bytes, as many as `place` needs;
    /// `whole` when they are all.
    #[inline]
    pub(super) fn times(&mut self, topic: usize, place: Option<Place>, times: (u64, u64), data: &[u8], whole: bool) {
        let Some(topic) = self.topics.get_mut(topic) else { return };
        topic.samples += 1;
        let stamp = place.and_then(|place| place.read(data, whole));
        match (self.wanted, stamp) {
            (_, Some(stamp)) => {
                if !topic.from_header {
                    topic.times = Vec::new();
                    topic.from_header = true;
                }
                topic.times.push(stamp);
            }
            (Wanted::Publish, None) => topic.times.push(signed(times.1)),
            (_, None) if !topic.from_header => topic.times.push(signed(times.0)),
            (_, None) => {}
        }
    }

    /// Appends log times to a topic.
    pub(super) fn append(&mut self, topic: usize, times: impl Iterator<Item = i64>) {
        if let Some(topic) = self.topics.get_mut(topic) {
            topic.times.extend(times);
            topic.samples = topic.times.len() as u64;
        }
    }

    /// Takes the column of a topic out, to be put back.
    pub(super) fn take(&mut self, topic: usize) -> Vec<i64> {
        self.topics.get_mut(topic).map(|topic| std::mem::take(&mut topic.times)).unwrap_or_default()
    }

    /// Puts the column of a topic back.
    pub(super) fn put(&mut self, topic: usize, times: Vec<i64>) {
        if let Some(topic) = self.topics.get_mut(topic) {
            topic.samples = times.len() as u64;
            topic.times = times;
        }
    }

    /// Holds what was counted against a summary's statistics; counts by channel are optional there.
    pub(super) fn compare(&self, stated: &Statistics) -> Result<(), Fault> {
        if stated.messages != self.messages {
            let messages = if stated.messages == 1 { "message" } else { "messages" };
            return Err(Fault::damaged(format!(
                "its summary counts {} {messages} and {} are there",
                stated.messages, self.messages
            )));
        }
        let counted = |id: usize| self.channels.get(id).and_then(Option::as_ref).map_or(0, |c| c.messages);
        let same = stated.channels.iter().all(|(id, n)| counted(usize::from(*id)) == *n)
            && (0..self.channels.len())
                .all(|id| counted(id) == 0 || u16::try_from(id).is_ok_and(|id| stated.channels.contains_key(&id)));
        if !stated.channels.is_empty() && !same {
            return Err(Fault::damaged("its summary counts other messages of its channels than are there"));
        }
        Ok(())
    }
}

/// A time of MCAP in 63 bits; one beyond them is refused by whoever uses it.
pub(super) fn signed(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}
