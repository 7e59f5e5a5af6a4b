//! Marks in the instruction stream for QEMU's plugin, which sees every instruction: one at each
//! sample, one where samples begin to count, and two around what its models of caches and TLBs count.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of marks of all samplers that have finished.
static PASSED: AtomicU64 = AtomicU64::new(0);

/// The marks of one sampler, numbered as the plugin counts them: from 1, across the samplers of the
/// process. Samplers that mark at the same time get the same numbers.
#[derive(Debug)]
pub struct Marks {
    before: u64,
    made: u64,
}

impl Marks {
    /// Continues after the samplers that have finished.
    pub fn begin() -> Marks {
        Marks { before: PASSED.load(Ordering::Acquire), made: 0 }
    }

    /// The number of marks before its first.
    pub fn before(&self) -> u64 {
        self.before
    }

    /// Executes the mark. Returns its number.
    #[inline]
    pub fn mark(&mut self) -> u64 {
        sample();
        self.made += 1;
        self.before + self.made
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        PASSED.fetch_add(self.made, Ordering::AcqRel);
    }
}

/// The warm-up is over: sections and interrupts are recorded from here on.
#[inline]
pub fn begin_measuring() {
    instruction::<b'm'>();
}

/// The models of caches and TLBs are emptied, and begin to count.
#[inline]
pub fn begin_counting() {
    instruction::<b'b'>();
}

/// The models stop, and their counts are kept.
#[inline]
pub fn end_counting() {
    instruction::<b'e'>();
}

#[inline]
fn sample() {
    instruction::<b'l'>();
}

/// One instruction without effect, whose encoding occurs nowhere else: on x86-64 a long NOP with the
/// displacement `lat` and a letter, on arm64, where nothing looks for it, a move of `la` to the zero
/// register. `plugin/block.c` looks for it.
#[inline]
fn instruction<const LETTER: u8>() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it is a NOP (Intel SDM 2B, NOP r/m32): it touches neither memory nor registers.
    unsafe {
        std::arch::asm!(
            ".byte 0x0f, 0x1f, 0x84, 0x00, 0x6c, 0x61, 0x74, {}",
            const LETTER,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a write to the zero register is discarded (Arm ARM, C1.2.5).
    unsafe {
        std::arch::asm!("movz xzr, #0x6c61", options(nomem, nostack, preserves_flags));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_continue_after_samplers_that_have_finished() {
        let mut first = Marks::begin();
        let number = first.mark();
        assert_eq!(first.mark(), number + 1);
        drop(first);
        assert_eq!(Marks::begin().mark(), number + 2);
    }
}
