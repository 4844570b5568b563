//! Plain lists of stamps: the first column of a text, decimals read as decimals, eight bytes a stamp.
//!
//! Numbers are read here, at the speed of the disk. A line that holds none is handed back to the caller, who knows what
//! header lines and mistakes look like.

/// Longest line that is looked at; what is beyond is left out.
const LONGEST_LINE: usize = 1 << 16;
/// Longest field that is taken for a number.
const LONGEST_FIELD: usize = 64;
/// Times from here on are refused: differences would leave 64 bits (the year 2116).
const BEYOND_NS: u128 = 1 << 62;
/// Digits that are read without a look at overflow.
const SHORT: usize = 18;
/// Stamps that are believed of one list: 74 hours of 1 kHz.
const MOST: usize = 1 << 28;

/// A line that begins with no number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OddLine {
    /// Its number, from 1.
    pub number: u64,
    /// The line, neither blank nor a comment, trimmed.
    pub text: String,
    /// Whether a number came before it.
    pub after_numbers: bool,
}

/// Why a list cannot be read on.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ListError {
    /// Not UTF-8, or with a byte 0 in it; so what is no text is told at once, however long it goes on without a line.
    #[error("it is not a text file")]
    NotText,
    /// More stamps than are believed.
    #[error("it has more than {MOST} stamps")]
    TooMany,
}

/// A list as far as it was read.
#[derive(Debug, Default)]
pub struct StampList {
    /// Decimal places of the unit's nanoseconds: 0 for ns, 9 for s; None while it is to be found.
    places: Option<u32>,
    /// Nanoseconds; numbers as they stand while the unit is to be found.
    values: Vec<i64>,
    least: i64,
    largest: i64,
    decimals: bool,
    rounded: u64,
    beyond: Option<String>,
    line: u64,
    carry: Vec<u8>,
    after_return: bool,
}

impl StampList {
    /// An empty list. `places` as many as the stated unit has, None when it is to be found.
    pub fn new(places: Option<u32>) -> Self {
        Self { places, least: i64::MAX, largest: i64::MIN, ..Self::default() }
    }

    /// Reads on. Blocks may end anywhere.
    ///
    /// # Errors
    /// [`ListError`].
    pub fn feed(&mut self, block: &[u8]) -> Result<Vec<OddLine>, ListError> {
        if block.contains(&0) {
            return Err(ListError::NotText);
        }
        let mut odd = Vec::new();
        let mut rest = block;
        if self.after_return && rest.first() == Some(&b'\n') {
            rest = rest.get(1..).unwrap_or_default();
        }
        self.after_return &= block.is_empty();
        while let Some(end) = line_end(rest) {
            let (line, tail) = rest.split_at(end);
            if self.carry.is_empty() {
                self.take(line, &mut odd)?;
            } else {
                self.keep(line);
                let whole = std::mem::take(&mut self.carry);
                self.take(&whole, &mut odd)?;
            }
            rest = match tail {
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => &[],
            };
            self.after_return = tail == b"\r";
        }
        self.keep(rest);
        Ok(odd)
    }

    /// Takes in a last line that no line end follows.
    ///
    /// # Errors
    /// [`ListError`].
    pub fn finish(&mut self) -> Result<Vec<OddLine>, ListError> {
        let mut odd = Vec::new();
        let last = std::mem::take(&mut self.carry);
        if !last.is_empty() {
            self.take(&last, &mut odd)?;
        }
        Ok(odd)
    }

    /// Numbers so far.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// No number so far.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Least and largest of whole numbers whose unit is to be found; None when there are none.
    pub fn undecided(&self) -> Option<(i64, i64)> {
        (self.places.is_none() && !self.values.is_empty()).then_some((self.least, self.largest))
    }

    /// Whether a decimal was among numbers whose unit was to be found, so that they are seconds.
    pub fn found_decimals(&self) -> bool {
        self.decimals
    }

    /// Stamps with digits finer than a nanosecond; they are rounded halves up.
    pub fn rounded(&self) -> u64 {
        self.rounded
    }

    /// The first number that lies beyond the year 2116 in its unit.
    pub fn beyond(&self) -> Option<&str> {
        self.beyond.as_deref()
    }

    /// States the unit, by the decimal places of its nanoseconds, of numbers whose unit was to be found.
    pub fn decide(&mut self, places: u32) {
        if self.places.replace(places).is_some() {
            return;
        }
        let factor = 10i64.saturating_pow(places);
        for value in &mut self.values {
            let ns = value.checked_mul(factor).filter(|ns| u128::from(ns.unsigned_abs()) < BEYOND_NS);
            if ns.is_none() && self.beyond.is_none() {
                self.beyond = Some(value.to_string());
            }
            *value = ns.unwrap_or_default();
        }
    }

    /// The stamps in ns, in the order of the list.
    pub fn into_times(mut self) -> Vec<i64> {
        self.values.shrink_to_fit();
        self.values
    }

    /// Keeps the beginning of a line that goes on in the next block.
    fn keep(&mut self, part: &[u8]) {
        let room = (4 * LONGEST_LINE).saturating_sub(self.carry.len());
        self.carry.extend_from_slice(part.get(..room).unwrap_or(part));
    }

    fn take(&mut self, line: &[u8], odd: &mut Vec<OddLine>) -> Result<(), ListError> {
        self.line += 1;
        if self.values.len() >= MOST {
            return Err(ListError::TooMany);
        }
        if let Some(number) = Number::short(line) {
            self.number(number, || String::from_utf8_lossy(line).into_owned());
            return if line.is_ascii() || std::str::from_utf8(line).is_ok() { Ok(()) } else { Err(ListError::NotText) };
        }
        let text = match std::str::from_utf8(line) {
            Ok(text) => text,
            // A line that was cut may have been cut within a character.
            Err(error) if error.error_len().is_none() && line.len() >= 4 * LONGEST_LINE => {
                std::str::from_utf8(line.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default()
            }
            Err(_) => return Err(ListError::NotText),
        };
        let text = text.char_indices().nth(LONGEST_LINE).map_or(text, |(at, _)| text.get(..at).unwrap_or(text));
        let text = text.trim_matches(blank).trim_start_matches('\u{feff}').trim_start_matches(blank);
        if text.is_empty() || text.starts_with(['#', ';', '%']) || text.starts_with("//") {
            return Ok(());
        }
        let field = text.split([',', ';', '\t', ' ']).next().unwrap_or_default().trim_matches(['"', '\'']);
        match Number::new(field) {
            Some(number) => self.number(number, || field.to_owned()),
            None => {
                odd.push(OddLine { number: self.line, text: text.to_owned(), after_numbers: !self.values.is_empty() })
            }
        }
        Ok(())
    }

    fn number(&mut self, number: Number, text: impl FnOnce() -> String) {
        if self.places.is_none() && number.decimal {
            self.decimals = true;
            self.decide(9);
        }
        let (value, rounded) = number.scaled(self.places.unwrap_or(0));
        let limit = if self.places.is_some() { BEYOND_NS } else { i64::MAX as u128 + 1 };
        let value = value.filter(|value| value.unsigned_abs() < limit).and_then(|value| i64::try_from(value).ok());
        if value.is_none() && self.beyond.is_none() {
            self.beyond = Some(text());
        }
        let value = value.unwrap_or_default();
        if self.places.is_none() {
            self.least = self.least.min(value);
            self.largest = self.largest.max(value);
        }
        self.rounded += u64::from(rounded);
        self.values.push(value);
    }
}

/// What Python's `str.strip` takes for white space.
fn blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Where the line ends that is first.
#[inline]
fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n' || *byte == b'\r')
}

/// A number as it is written: `mantissa * 10^exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Number<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i32,
    decimal: bool,
}

impl<'a> Number<'a> {
    /// Digits, and maybe more behind a point, up to the end of the line or of the column; the common case.
    #[inline]
    fn short(line: &'a [u8]) -> Option<Self> {
        let digits = |bytes: &[u8]| bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
        let (whole, rest) = line.split_at(digits(line));
        let (fraction, rest, decimal) = match rest {
            [b'.', rest @ ..] => {
                let (fraction, rest) = rest.split_at(digits(rest));
                (fraction, rest, true)
            }
            _ => (&[][..], rest, false),
        };
        let ends = matches!(rest, [] | [b',' | b';' | b'\t' | b' ', ..]);
        let sound = ends && !whole.is_empty() && whole.len() + fraction.len() < LONGEST_FIELD;
        sound.then_some(Self { negative: false, whole, fraction, exponent: 0, decimal })
    }

    /// A whole field: `5`, `-5.25`, `.5`, `1.4e+18`.
    fn new(field: &'a str) -> Option<Self> {
        if field.len() > LONGEST_FIELD {
            return None;
        }
        let (negative, rest) = match field.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (mantissa, exponent) = match rest.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            Some(at) => (rest.get(..at)?, Some(rest.get(at + 1..)?)),
            None => (rest, None),
        };
        let (whole, fraction, point) = match mantissa.iter().position(|byte| *byte == b'.') {
            Some(at) => (mantissa.get(..at)?, mantissa.get(at + 1..)?, true),
            None => (mantissa, &[][..], false),
        };
        let digits = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
        if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let exponent = match exponent {
            None => None,
            Some(written) => {
                let bare = match written {
                    [b'+' | b'-', rest @ ..] => rest,
                    rest => rest,
                };
                if !(1..=3).contains(&bare.len()) || !digits(bare) {
                    return None;
                }
                Some(std::str::from_utf8(written).ok()?.parse().ok()?)
            }
        };
        let decimal = point || exponent.is_some();
        Some(Self { negative, whole, fraction, exponent: exponent.unwrap_or(0), decimal })
    }

    /// The number times `10^places`, halves up; None beyond 127 bits. And whether it was rounded.
    fn scaled(self, places: u32) -> (Option<i128>, bool) {
        let shift = self.exponent + i32::try_from(places).unwrap_or(0);
        let count = self.whole.len() + self.fraction.len();
        // Digits before the point of the result; zeros follow where there are not so many.
        let before = i64::from(shift) + self.whole.len() as i64;
        let digit = |at: usize| self.whole.get(at).or_else(|| self.fraction.get(at.checked_sub(self.whole.len())?));
        let value_of = |at: usize| digit(at).map_or(0, |byte| u128::from(byte - b'0'));
        let kept = usize::try_from(before).unwrap_or(0).min(count);
        let mut value = Some(0u128);
        for at in 0..kept {
            let step = |value: u128| value.checked_mul(10)?.checked_add(value_of(at));
            value = if at < SHORT { value.map(|value| value * 10 + value_of(at)) } else { value.and_then(step) };
        }
        for _ in count..usize::try_from(before).unwrap_or(0) {
            if value.is_none_or(|value| value == 0) {
                break;
            }
            value = value.and_then(|value| value.checked_mul(10));
        }
        // What is cut off: its first digit, 0 where zeros come before, and whether anything else is in it.
        let first = if before >= 0 { value_of(kept) } else { 0 };
        let begins = if before >= 0 { kept + 1 } else { 0 };
        let more = (begins..count).any(|at| value_of(at) != 0);
        let cut = kept < count && (first != 0 || more);
        let up = first > 5 || (first == 5 && (more || !self.negative));
        let value = value.and_then(|value| value.checked_add(u128::from(up && kept < count)));
        let signed = value.and_then(|value| i128::try_from(value).ok());
        (signed.map(|value| if self.negative { -value } else { value }), cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(text: &str, places: u32) -> (Option<i128>, bool) {
        Number::new(text).unwrap().scaled(places)
    }

    #[test]
    fn decimals_are_exact_and_halves_go_up() {
        let cases: [(&str, u32, i128, bool); 16] = [
            ("5", 9, 5_000_000_000, false),
            ("0.1234567895", 9, 123_456_790, true),
            ("0.1234567894", 9, 123_456_789, true),
            ("-0.0000000005", 9, 0, true),
            ("-0.00000000051", 9, -1, true),
            ("-0.0000000015", 9, -1, true),
            ("1.403636579763555584e+18", 0, 1_403_636_579_763_555_584, false),
            (".5", 0, 1, true),
            ("5.", 3, 5_000, false),
            ("5e-1", 0, 1, true),
            ("5e-2", 0, 0, true),
            ("50e-1", 0, 5, false),
            ("0e999", 9, 0, false),
            ("1e-999", 9, 0, true),
            ("0.0000000000000000005", 9, 0, true),
            ("-7.5", 0, -7, true),
        ];
        for (text, places, value, rounded) in cases {
            assert_eq!(scaled(text, places), (Some(value), rounded), "{text}");
        }
        assert_eq!(scaled("1e999", 9), (None, false));
    }

    #[test]
    fn blocks_may_end_anywhere() {
        let text = "stamp,x\r\n1403636579763555584,1\r2\n\n# no\n\u{feff}3\r\n\"4\",5\n6";
        let mut whole = StampList::new(Some(0));
        let mut odd = whole.feed(text.as_bytes()).unwrap();
        odd.extend(whole.finish().unwrap());
        assert_eq!(odd, [OddLine { number: 1, text: "stamp,x".to_owned(), after_numbers: false }]);
        assert_eq!(whole.into_times(), [1_403_636_579_763_555_584, 2, 3, 4, 6]);
        for cut in 0..text.len() {
            let mut list = StampList::new(Some(0));
            let (head, tail) = text.as_bytes().split_at(cut);
            let mut odd = list.feed(head).unwrap();
            odd.extend(list.feed(tail).unwrap());
            odd.extend(list.finish().unwrap());
            assert_eq!(odd.len(), 1);
            assert_eq!(odd[0].number, 1);
            assert_eq!(list.into_times(), [1_403_636_579_763_555_584, 2, 3, 4, 6], "{cut}");
        }
    }

    #[test]
    fn the_first_decimal_makes_seconds_of_all() {
        let mut list = StampList::new(None);
        list.feed(b"7\n8\n0.5\n9\n").unwrap();
        assert!(list.found_decimals());
        assert_eq!(list.into_times(), [7_000_000_000, 8_000_000_000, 500_000_000, 9_000_000_000]);
    }

    #[test]
    fn a_line_of_any_length_takes_bounded_memory() {
        let mut list = StampList::new(Some(0));
        for _ in 0..64 {
            list.feed(&[b'x'; 1 << 16]).unwrap();
            assert!(list.carry.len() <= 4 * LONGEST_LINE);
        }
        let odd = list.feed(b"\n5\n").unwrap();
        assert_eq!((odd.len(), odd[0].text.len()), (1, LONGEST_LINE));
        assert_eq!(list.into_times(), [5]);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        assert_eq!(StampList::new(Some(0)).feed(&[0; 16]), Err(ListError::NotText));
        assert_eq!(StampList::new(Some(0)).feed(b"# \0\n5\n"), Err(ListError::NotText));
        for bytes in [&b"\xff\xfe\x00\x01\n"[..], b"5,\xff\n", b"x\xc3\n"] {
            assert_eq!(StampList::new(None).feed(bytes), Err(ListError::NotText));
        }
    }
}
