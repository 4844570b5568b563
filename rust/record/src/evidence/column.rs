//! A column of evidence as it is read: most hold one value all the way, or count up, and cost next to no memory.

/// Values that are equally far from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first one.
    pub first: i64,
    /// From each to the next, wrapping.
    pub step: i64,
    /// How many there are, at least 1.
    pub count: usize,
}

impl Run {
    /// The value that would go on with it.
    fn next(&self) -> i64 {
        // Modulo 2^64, as the values are laid out.
        self.first.wrapping_add(self.step.wrapping_mul(self.count as i64))
    }

    /// Takes the value in if it goes on with the run.
    fn takes(&mut self, value: i64) -> bool {
        if self.count == 1 {
            self.step = value.wrapping_sub(self.first);
        }
        let goes_on = value == self.next();
        self.count += usize::from(goes_on);
        goes_on
    }

    fn values(self) -> impl Iterator<Item = i64> {
        std::iter::successors(Some(self.first), move |value| Some(value.wrapping_add(self.step))).take(self.count)
    }
}

/// Values in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// Few runs, one after the other.
    Runs(Vec<Run>, usize),
    /// Each as it is.
    Each(Vec<i64>),
}

impl Default for Column {
    fn default() -> Self {
        Self::Runs(Vec::new(), 0)
    }
}

impl Column {
    /// Appends values that are laid out as differences to the one above, the first to 0, wrapping.
    pub(super) fn extend(&mut self, differences: &[[u8; 8]]) {
        if self.goes_on(differences) {
            return;
        }
        let mut value = 0i64;
        let mut values = differences.iter().map(|bytes| {
            value = value.wrapping_add(i64::from_le_bytes(*bytes));
            value
        });
        if let Self::Runs(runs, count) = self {
            *count += differences.len();
            for value in values.by_ref() {
                if !runs.last_mut().is_some_and(|run| run.takes(value)) {
                    runs.push(Run { first: value, step: 0, count: 1 });
                }
            }
            if runs.len() > few(*count) {
                let mut each = Vec::with_capacity(*count);
                runs.iter().for_each(|run| each.extend(run.values()));
                *self = Self::Each(each);
            }
        } else if let Self::Each(each) = self {
            each.extend(values);
        }
    }

    /// Takes in all values at once if they go on with the last run.
    fn goes_on(&mut self, differences: &[[u8; 8]]) -> bool {
        let Self::Runs(runs, count) = self else { return false };
        let Some((run, (first, rest))) = runs.last_mut().zip(differences.split_first()) else { return false };
        let step = run.step.to_le_bytes();
        let all = i64::from_le_bytes(*first) == run.next() && rest.iter().all(|difference| *difference == step);
        if all {
            run.count += differences.len();
            *count += differences.len();
        }
        all
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Runs(_, count) => *count,
            Self::Each(values) => values.len(),
        }
    }

    /// No value at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value that all of them are, if there is one.
    pub fn same(&self) -> Option<i64> {
        match self {
            Self::Runs(runs, _) => match runs[..] {
                [Run { first, step, count }] if step == 0 || count == 1 => Some(first),
                _ => None,
            },
            Self::Each(_) => None,
        }
    }

    /// Each as it is.
    pub fn into_vec(self) -> Vec<i64> {
        match self {
            Self::Runs(runs, _) => runs.into_iter().flat_map(Run::values).collect(),
            Self::Each(values) => values,
        }
    }
}

/// How many runs take less memory than that many values do, by far.
fn few(values: usize) -> usize {
    16 + values / 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid_out(values: &[i64]) -> Vec<[u8; 8]> {
        let above = std::iter::once(&0).chain(values);
        values.iter().zip(above).map(|(value, above)| value.wrapping_sub(*above).to_le_bytes()).collect()
    }

    fn column(messages: &[&[i64]]) -> Column {
        let mut column = Column::default();
        messages.iter().for_each(|values| column.extend(&laid_out(values)));
        assert_eq!(column.len(), messages.iter().map(|values| values.len()).sum::<usize>());
        assert_eq!(column.clone().into_vec(), messages.concat());
        column
    }

    #[test]
    fn one_value_all_the_way_is_one_run() {
        let absent = column(&[&[], &[i64::MIN; 3], &[i64::MIN]]);
        assert_eq!(absent, Column::Runs(vec![Run { first: i64::MIN, step: 0, count: 4 }], 4));
        assert_eq!((absent.same(), column(&[&[7]]).same()), (Some(i64::MIN), Some(7)));
        assert_eq!((column(&[]).same(), column(&[&[1, 2]]).same(), column(&[&[1, 1, 2]]).same()), (None, None, None));
    }

    #[test]
    fn what_counts_up_is_a_run_over_messages_and_ends() {
        let counted = column(&[&[i64::MAX - 1, i64::MAX], &[i64::MIN, i64::MIN + 1], &[9, 9, 9]]);
        let runs = vec![Run { first: i64::MAX - 1, step: 1, count: 4 }, Run { first: 9, step: 0, count: 3 }];
        assert_eq!(counted, Column::Runs(runs, 7));
    }

    #[test]
    fn what_goes_up_and_down_is_kept_as_it_is() {
        let jitter: Vec<i64> = (0..200).map(|i| i * i % 37).collect();
        assert!(matches!(column(&[&jitter[..50], &jitter[50..], &[1, 2, 3]]), Column::Each(_)));
    }
}
