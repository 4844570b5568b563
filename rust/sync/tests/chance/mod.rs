//! A small deterministic generator (splitmix64), and numbers at which arithmetic turns.

/// Equal seeds give equal numbers.
pub struct Random(pub u64);

/// Where arithmetic in 64 bits may go wrong, or a table ends.
#[allow(dead_code, reason = "not every test binary asks for odd numbers")]
const ODD: [i64; 15] = [
    i64::MIN,
    i64::MIN + 1,
    i64::MIN + 2,
    -(1 << 62),
    -1_000_000_007,
    -1,
    0,
    1,
    2,
    1_000_000_000,
    (1 << 32) + 1,
    1 << 61,
    (1 << 62) - 1,
    i64::MAX - 1,
    i64::MAX,
];

impl Random {
    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `n - 1`.
    pub fn below(&mut self, n: i64) -> i64 {
        (self.bits() % n as u64) as i64
    }

    /// Once in `n` times.
    pub fn one_in(&mut self, n: i64) -> bool {
        self.below(n) == 0
    }
}

#[allow(dead_code, reason = "not every test binary asks for odd numbers")]
impl Random {
    /// One of those.
    pub fn among<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as i64) as usize]
    }

    /// A number that nobody reckoned with, or a small one.
    pub fn odd(&mut self) -> i64 {
        match self.below(4) {
            0 => self.among(&ODD),
            1 => self.below(2000) - 1000,
            2 => self.among(&ODD).wrapping_add(self.below(5) - 2),
            _ => self.bits() as i64,
        }
    }
}
