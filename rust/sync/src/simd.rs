//! One build for every processor: kernels are compiled twice and the processor chooses.
//!
//! A kernel is ordinary code without intrinsics, written so that compilers vectorise it. [`kernel!`] runs it as compiled
//! for AVX2 where the processor has that, else as compiled for the baseline of the target (SSE2 on x86-64, NEON on
//! aarch64). Both are the same integer arithmetic, so both give the same figures to the bit.
//!
//! `FIRSTHAND_EDGE_PORTABLE=1` in the environment chooses the baseline everywhere; tests compare the two.

use std::sync::LazyLock;

/// Which of the two runs here.
static AVX2: LazyLock<bool> = LazyLock::new(|| {
    let portable = std::env::var_os("FIRSTHAND_EDGE_PORTABLE").is_some_and(|value| value == "1");
    !portable && has_avx2()
});

/// `avx2` or `portable`.
#[must_use]
pub fn level() -> &'static str {
    if *AVX2 { "avx2" } else { "portable" }
}

/// Whether kernels compiled for AVX2 may run: this processor has every feature that they are compiled for.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_wide() -> bool {
    *AVX2
}

/// Compiles a function twice and calls the one for the widest vectors that this processor has.
///
/// What it calls must be inlined into it (`#[inline(always)]`), or it stays as compiled for the baseline: slower, never
/// different.
macro_rules! kernel {
    ($(#[$attribute:meta])* $vis:vis fn $name:ident $(<$type:ident : $bound:path>)? (
        $($argument:ident : $of:ty),* $(,)?
    ) $(-> $out:ty)? $body:block) => {
        $(#[$attribute])*
        #[inline]
        $vis fn $name $(<$type: $bound>)? ($($argument: $of),*) $(-> $out)? {
            #[inline(always)]
            fn portable $(<$type: $bound>)? ($($argument: $of),*) $(-> $out)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn wide $(<$type: $bound>)? ($($argument: $of),*) $(-> $out)? {
                portable($($argument),*)
            }

            #[cfg(target_arch = "x86_64")]
            if $crate::simd::is_wide() {
                #[expect(unsafe_code, reason = "a function compiled for AVX2 may run where the processor has it")]
                // SAFETY: `is_wide` is true only where the processor has every feature that `wide` is compiled for.
                return unsafe { wide($($argument),*) };
            }
            portable($($argument),*)
        }
    };
}
pub(crate) use kernel;

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("lzcnt")
        && std::arch::is_x86_feature_detected!("popcnt")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}
