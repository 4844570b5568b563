//! Columns of nanoseconds, one entry a tick.
//!
//! Nearly every offset fits into 32 bits, which halves what goes through memory and doubles what a vector holds; what
//! does not fit makes its column wide. Which it is never changes a figure.

use std::ops::Range;

use crate::order::ABSENT;
use crate::simd::kernel;

/// Stands for "there is none" in columns of 32 bits.
pub(crate) const NONE: i32 = i32::MIN;

/// Offsets in narrow columns are below this either way (0.5 s): sums and differences of two with as large an uncertainty
/// each then fit into 32 bits too.
pub(crate) const NARROW: i64 = 1 << 29;

/// Entries that are passed over at once where none of them is looked for.
const STRIDE: usize = 64;

/// One entry a tick: ns, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// So many zeros: the reference's offsets to itself.
    Zero(usize),
    /// 32 bits each, the least number for none.
    Narrow(Vec<i32>),
    /// 64 bits each, [`ABSENT`] for none.
    Wide(Vec<i64>),
}

impl Column {
    /// The values of a column of 64 bits, narrow where all of them are offsets that fit.
    pub(crate) fn of(values: Vec<i64>) -> Self {
        let narrow = |&v: &i64| if v == ABSENT { Some(NONE) } else { (-NARROW < v && v < NARROW).then_some(v as i32) };
        match values.iter().map(narrow).collect() {
            Some(values) => Self::Narrow(values),
            None => Self::Wide(values),
        }
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Zero(len) => *len,
            Self::Narrow(values) => values.len(),
            Self::Wide(values) => values.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One entry in ns, [`ABSENT`] for none and beyond the end.
    #[must_use]
    pub fn at(&self, position: usize) -> i64 {
        match self {
            Self::Zero(len) if position < *len => 0,
            Self::Zero(_) => ABSENT,
            Self::Narrow(values) => values.get(position).map_or(ABSENT, |&v| widened(v)),
            Self::Wide(values) => values.get(position).copied().unwrap_or(ABSENT),
        }
    }

    /// All entries in ns, [`ABSENT`] for none.
    #[must_use]
    pub fn to_vec(&self) -> Vec<i64> {
        match self {
            Self::Zero(len) => vec![0; *len],
            Self::Narrow(values) => values.iter().map(|&v| widened(v)).collect(),
            Self::Wide(values) => values.clone(),
        }
    }

    /// As [`Column::to_vec`], without a copy where the column is wide.
    #[must_use]
    pub fn into_vec(self) -> Vec<i64> {
        match self {
            Self::Wide(values) => values,
            narrow => narrow.to_vec(),
        }
    }

    /// Which entries are greater than `limit`, which is not below 0 or is -1.
    pub(crate) fn above(&self, limit: i64) -> Above {
        match self {
            Self::Zero(len) if limit < 0 => Above { count: *len, first: Some(0), last: len.checked_sub(1) },
            Self::Zero(_) => Above::default(),
            Self::Narrow(values) => {
                i32::try_from(limit).map_or_else(|_| Above::default(), |limit| above(values, limit))
            }
            Self::Wide(values) => above(values, limit),
        }
    }

    /// Tells the longest stretches of entries that are none, in order.
    pub(crate) fn runs_of_none(&self, found: impl FnMut(Range<usize>)) {
        match self {
            Self::Zero(_) => {}
            Self::Narrow(values) => runs_of(values, found),
            Self::Wide(values) => runs_of(values, found),
        }
    }

    /// Appends entries of 64 bits; a narrow column stays narrow as long as they fit into 32.
    pub(crate) fn extend_wide(&mut self, values: &[i64]) {
        let fits = |&v: &i64| v == ABSENT || (v > NONE.into() && i32::try_from(v).is_ok());
        if let Self::Narrow(all) = self {
            if values.iter().all(fits) {
                all.extend(values.iter().map(|&v| if v == ABSENT { NONE } else { v as i32 }));
                return;
            }
            *self = Self::Wide(self.to_vec());
        }
        if let Self::Wide(all) = self {
            all.extend_from_slice(values);
        }
    }
}

fn runs_of<E: Entry>(values: &[E], mut found: impl FnMut(Range<usize>)) {
    let mut at = 0;
    while let Some(start) = next_none(values, at) {
        let run = values[start..].iter().take_while(|v| **v == E::NONE).count();
        found(start..start + run);
        at = start + run;
    }
}

kernel! {
    /// The first entry from `from` on that is none.
    fn next_none<E: Entry>(values: &[E], from: usize) -> Option<usize> {
        for (at, values) in (from..).step_by(STRIDE).zip(values.get(from..)?.chunks(STRIDE)) {
            if values.iter().fold(false, |any, &v| any | (v == E::NONE)) {
                return values.iter().position(|&v| v == E::NONE).map(|place| at + place);
            }
        }
        None
    }
}

/// How many entries are above a limit, and which is the first and the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Above {
    pub(crate) count: usize,
    pub(crate) first: Option<usize>,
    pub(crate) last: Option<usize>,
}

kernel! {
    /// None is the least of all numbers, so it is above nothing.
    fn above<E: Entry>(values: &[E], limit: E) -> Above {
        let mut out = Above::default();
        for (at, values) in (0..).step_by(STRIDE).zip(values.chunks(STRIDE)) {
            let count: u32 = values.iter().map(|&v| u32::from(v > limit)).sum();
            if count > 0 {
                out.count += count as usize;
                out.first = out.first.or_else(|| values.iter().position(|&v| v > limit).map(|place| at + place));
                out.last = values.iter().rposition(|&v| v > limit).map(|place| at + place);
            }
        }
        out
    }
}

/// An entry of 32 bits as one of 64.
#[inline(always)]
pub(crate) fn widened(value: i32) -> i64 {
    if value == NONE { ABSENT } else { value.into() }
}

/// An entry of either width.
pub(crate) trait Entry: Copy + PartialOrd {
    /// There is none.
    const NONE: Self;
    /// An offset that fits.
    fn of(offset: i64) -> Self;
}

impl Entry for i32 {
    const NONE: Self = NONE;
    #[inline(always)]
    fn of(offset: i64) -> Self {
        offset as Self
    }
}

impl Entry for i64 {
    const NONE: Self = ABSENT;
    #[inline(always)]
    fn of(offset: i64) -> Self {
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_narrow_and_nothing_changes() {
        for (values, narrow) in [
            (vec![0, ABSENT, NARROW - 1, 1 - NARROW], true),
            (vec![0, NARROW], false),
            (vec![-NARROW], false),
            (vec![i64::MAX, ABSENT + 1], false),
            (vec![], true),
        ] {
            let column = Column::of(values.clone());
            assert_eq!(matches!(column, Column::Narrow(_)), narrow, "{values:?}");
            assert_eq!(column.to_vec(), values);
            assert_eq!((0..values.len()).map(|i| column.at(i)).collect::<Vec<_>>(), values);
            assert_eq!(column.at(values.len()), ABSENT);
        }
        assert_eq!((Column::Zero(2).to_vec(), Column::Zero(2).at(1), Column::Zero(2).at(2)), (vec![0, 0], 0, ABSENT));
    }

    #[test]
    fn what_is_above_is_found_wherever_it_is() {
        for places in [&[][..], &[0], &[63], &[64], &[3, 70, 71], &[199]] {
            let mut values = vec![5; 200];
            values[100] = NONE;
            places.iter().for_each(|&place| values[place] = 6);
            let found = Above { count: places.len(), first: places.first().copied(), last: places.last().copied() };
            assert_eq!(Column::Narrow(values).above(5), found);
        }
    }

    #[test]
    fn a_column_becomes_wide_when_it_must() {
        let mut column = Column::Narrow(vec![5, NONE]);
        column.extend_wide(&[i64::from(i32::MAX), ABSENT, i64::from(NONE) + 1]);
        assert!(matches!(column, Column::Narrow(_)));
        column.extend_wide(&[i64::from(NONE)]);
        column.extend_wide(&[7, ABSENT]);
        let (max, min) = (i64::from(i32::MAX), i64::from(NONE));
        assert_eq!(column, Column::Wide(vec![5, ABSENT, max, ABSENT, min + 1, min, 7, ABSENT]));
    }
}
