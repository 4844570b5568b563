//! A column of evidence as it is read: most columns of most takes hold one value all the way, and cost no memory.

/// Values in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// The same value so many times.
    Same(i64, usize),
    /// Each as it is.
    Each(Vec<i64>),
}

impl Default for Column {
    fn default() -> Self {
        Self::Same(0, 0)
    }
}

impl Column {
    /// Appends values that are laid out as differences to the one above, the first to 0, wrapping.
    pub(super) fn extend(&mut self, differences: &[[u8; 8]]) {
        let Some((first, rest)) = differences.split_first() else { return };
        let first = i64::from_le_bytes(*first);
        if let Self::Same(value, count) = self {
            let same = (*count == 0 || *value == first) && rest.iter().all(|difference| *difference == [0; 8]);
            if same {
                (*value, *count) = (first, *count + differences.len());
                return;
            }
            *self = Self::Each(vec![*value; *count]);
        }
        if let Self::Each(values) = self {
            let mut value = 0i64;
            values.extend(differences.iter().map(|bytes| {
                value = value.wrapping_add(i64::from_le_bytes(*bytes));
                value
            }));
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Same(_, count) => *count,
            Self::Each(values) => values.len(),
        }
    }

    /// No value at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid_out(values: &[i64]) -> Vec<[u8; 8]> {
        let above = std::iter::once(&0).chain(values);
        values.iter().zip(above).map(|(value, above)| value.wrapping_sub(*above).to_le_bytes()).collect()
    }

    #[test]
    fn one_value_all_the_way_takes_no_memory_until_another_comes() {
        let mut column = Column::default();
        for values in [&[][..], &[i64::MIN; 3], &[i64::MIN]] {
            column.extend(&laid_out(values));
        }
        assert_eq!(column, Column::Same(i64::MIN, 4));
        column.extend(&laid_out(&[i64::MIN, i64::MAX]));
        assert_eq!(column, Column::Each(vec![i64::MIN, i64::MIN, i64::MIN, i64::MIN, i64::MIN, i64::MAX]));
        column.extend(&laid_out(&[5]));
        assert_eq!(column.len(), 7);
        let mut other = Column::default();
        other.extend(&laid_out(&[1, 2]));
        assert_eq!(other, Column::Each(vec![1, 2]));
    }
}
