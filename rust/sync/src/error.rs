//! The one error of this crate: what was asked makes no sense as it stands.
//!
//! Bad data is never an error here, it is a figure; an error is a call that no data could make right.

/// Why a call of this crate was refused. Each sentence says what, which value, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyncError {
    /// Two streams of one name.
    #[error("two streams are called '{0}'; give each its own name")]
    DuplicateName(String),
    /// The reference is no stream and no edges were given.
    #[error("there is no stream '{reference}' to be the reference; there are: {known}")]
    UnknownReference {
        /// The name that was asked for.
        reference: String,
        /// The names that are there.
        known: String,
    },
    /// The reference is a stream that cannot number ticks.
    #[error("the reference '{name}' is {what}; take a triggered stream with a sample at every tick, or edges")]
    UnfitReference {
        /// The stream that was asked for.
        name: String,
        /// What it is instead.
        what: String,
    },
    /// Edges are the reference, under the name of a stream.
    #[error("edges are the reference and a stream is called '{0}' as well; give the edges a name of their own")]
    EdgesNamedAsStream(String),
    /// A kind of stream that there is not.
    #[error("there is no kind of stream '{0}'; take triggered, sampled, interpolated or event")]
    UnknownKind(String),
    /// A parameter outside its range.
    #[error("{what} is {value}; it must be {allowed}")]
    OutOfRange {
        /// The parameter and whose it is.
        what: String,
        /// The value that was given.
        value: i128,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A column that has not one entry a sample.
    #[error("the {column} of '{name}' has {entries} entries for {samples} samples; give one a sample")]
    ColumnLength {
        /// The stream.
        name: String,
        /// The column.
        column: &'static str,
        /// How many entries it has.
        entries: usize,
        /// How many samples there are.
        samples: usize,
    },
    /// A sample without a stamp.
    #[error("sample {position} of '{name}' has no stamp; leave out samples without one")]
    AbsentStamp {
        /// The stream.
        name: String,
        /// Its position in arrival order.
        position: usize,
    },
    /// Stamps whose difference is beyond int64.
    #[error("the stamps lie further apart than 2^63 ns (292 years), at '{name}'; they cannot be of one timebase")]
    Extent {
        /// A stream at one end.
        name: String,
    },
    /// Stamps that must be in order and are not.
    #[error("{what} go backwards at position {position}; sort them first")]
    NotSorted {
        /// Which stamps.
        what: &'static str,
        /// Position of the lower one.
        position: usize,
    },
    /// Figures of a monitor that keeps no stamps.
    #[error("this monitor keeps no stamps, so it has no figures at close; make it with `keep`")]
    NotKept,
}
