//! Stamps to ticks, matches, residuals and exact quantiles: the definitions of sync.md as code.
//!
//! No Python, no I/O, no floating point, no panic. Every time is an `i64` of nanoseconds; [`ABSENT`] stands for none.
//!
//! | module | sync.md | what it does |
//! |---|---|---|
//! | `order` | 3.1 | sorts a stream, counts what ran backwards or came twice |
//! | `ticks` | 3.2, 3.3, 3.5 | tick numbers, the span, what is missing, the phase |
//! | `by_time`, `in_row`, `by_index` | 3.4, 3.6 | which sample of a triggered stream belongs to which tick |
//! | `nearest`, `bracket`, `locate` | 3.7 | likewise of a free-running one |
//! | `row` | 3, 4 | one stream's part of the figures |
//! | `residual`, `reach` | 4 | R, G and the pair at fault |
//! | `column`, `tally`, `quantile` | 4 | columns of offsets, and their exact order statistics |
//! | `measure` | 3, 4 | all of it in one call |
//! | `unwrap` | 1 | a device's counter to device time |
//! | `clock`, `envelope` | 1 | device time to rig time, causally |
//! | `edge_fit` | 1 | the same, of triggered devices, by recorded edges |
//! | `stamps` | 5 | a stream's stamps against themselves |
//! | `monitor`, `track`, `pulses` | 6 | ticks as they happen |
//! | `simd` | | the widest vectors that the processor has |
//! | `join` | | the nearest of other stamps, for anybody |

mod bracket;
mod by_index;
mod by_time;
pub mod clock;
mod column;
pub mod edge_fit;
mod envelope;
mod error;
mod in_row;
pub mod join;
mod locate;
pub mod measure;
pub mod monitor;
mod nearest;
pub mod order;
mod pulses;
pub mod quantile;
mod reach;
pub mod residual;
mod row;
pub mod simd;
pub mod stamps;
mod tally;
pub mod ticks;
mod track;
pub mod unwrap;

pub use clock::{ClockConfig, ClockMap, Mapped, MappedClock, UNBOUNDED_NS, map_clock};
pub use column::Column;
pub use edge_fit::{EdgeConfig, EdgeMap, EdgeMapped, EdgeReadings, Exposure, map_clock_by_edges};
pub use error::SyncError;
pub use measure::{Figures, Kind, Settings, Stream, StreamFigures, measure};
pub use monitor::{FinalTick, Monitor, MonitorConfig, MonitorStream};
pub use order::ABSENT;
pub use quantile::{Fraction, quantile};
pub use residual::Residuals;
pub use stamps::{Beside, StampScan, StampStep, StepKind, scan_stamps};
pub use unwrap::{Counter, Unwrapper};
