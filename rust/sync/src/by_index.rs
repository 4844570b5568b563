//! Triggered streams matched by hardware trigger index (sync.md section 3.6).

use std::ops::Range;

use crate::by_time::Taken;
use crate::order::ABSENT;

/// The offsets of the samples that report the ticks' pulses, wherever they lie in time, [`ABSENT`] for none.
///
/// `pulses` has the pulse number of every present tick, `index` that of every sample. Of equal numbers the earliest
/// tick and the earliest sample count. Stamps are distinct and in order.
pub(crate) fn by_index(
    ticks: &[i64],
    pulses: &[i64],
    span: Range<usize>,
    stamps: &[i64],
    index: &[i64],
    inside: &Range<usize>,
) -> (Vec<i64>, Taken) {
    let mut taken = Taken::default();
    let mut offsets = vec![ABSENT; span.len()];
    let (of_ticks, of_stamps) = (first_of_each(pulses), first_of_each(index));
    let mut samples = of_stamps.iter().peekable();
    for &(pulse, tick) in &of_ticks {
        while samples.next_if(|(reported, _)| *reported < pulse).is_some() {}
        let Some(&&(reported, sample)) = samples.peek() else { break };
        if reported == pulse && span.contains(&tick) {
            offsets[tick - span.start] = stamps[sample].wrapping_sub(ticks[tick]);
            taken.add(sample..sample + 1, inside);
        }
    }
    (offsets, taken)
}

/// The numbers in order, each with the first position that has it.
fn first_of_each(numbers: &[i64]) -> Vec<(i64, usize)> {
    let mut all: Vec<(i64, usize)> = numbers.iter().copied().zip(0..).collect();
    all.sort(); // quick on numbers in order, which they nearly always are
    all.dedup_by_key(|(number, _)| *number);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pulse_is_taken_wherever_it_is() {
        let (ticks, stamps) = ([0, 10, 20, 30], [1, 11, 25, 41]);
        let (offsets, taken) = by_index(&ticks, &[0, 1, 2, 3], 1..4, &stamps, &[0, 2, 2, 3], &(0..4));
        assert_eq!(offsets, [ABSENT, -9, 11]);
        assert_eq!((taken.matched, taken.inside), (2, 2));
        // A pulse number that two ticks report belongs to the earlier one.
        let (offsets, taken) = by_index(&ticks, &[5, 5, 6, 4], 1..4, &stamps, &[4, 5, 6, 7], &(0..2));
        assert_eq!(offsets, [ABSENT, 5, -29]);
        assert_eq!((taken.matched, taken.inside), (2, 1));
    }
}
