//! The recording on disk: what is written while a take runs, read when it is judged, and saved when it was cut off.
//!
//! | module | what it does |
//! |---|---|
//! | `wire`, `device` | what workers send, what devices are |
//! | `clocks`, `watch` | stamps to rig time; ticks, rates and offsets as they happen |
//! | `live` | the page that any process may read meanwhile |
//! | `intake` | all of it, for every message |
//! | `writer`, `counts` | one thread, one bounded queue, both files; where every sample went |
//! | `episode`, `evidence` | `episode.mcap` with the footage, `evidence.mcap` with what judging needs |
//! | `schema`, `channels`, `mcap_file`, `digest` | protobuf messages, channel tables, MCAP framing, digests |
//! | `foreign`, `header` | anybody's MCAP as columns of stamps; where messages keep theirs |
//! | `stamp_list` | plain lists of stamps |
//! | `scan`, `recover` | reading bytes that nobody vouches for; recovery of torn files |
//!
//! No Python. Nothing here panics on data, and every length that comes from outside is checked.

pub mod channels;
mod clocks;
pub mod counts;
pub mod device;
pub mod digest;
pub mod episode;
pub mod error;
pub mod evidence;
pub mod foreign;
pub mod header;
pub mod intake;
pub mod live;
pub mod mcap_file;
pub mod recover;
mod scan;
pub mod schema;
pub mod stamp_list;
mod watch;
mod wire;
pub mod writer;

pub use error::{RecordError, RecordResult};
