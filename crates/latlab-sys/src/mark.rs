//! A mark in the instruction stream: where each sample was taken, for who watches instructions.

use std::sync::atomic::{AtomicU64, Ordering};

/// The marks of all lanes that are through.
static PASSED: AtomicU64 = AtomicU64::new(0);

/// The marks of one lane, numbered as a watcher counts them: from 1, those of the lanes before it
/// included. The numbers of lanes that mark at the same time are not told apart.
#[derive(Debug)]
pub struct Marks {
    before: u64,
    made: u64,
}

impl Marks {
    /// Goes on from the lanes that are through.
    pub fn begin() -> Marks {
        Marks { before: PASSED.load(Ordering::Acquire), made: 0 }
    }

    /// How many there were before.
    pub fn before(&self) -> u64 {
        self.before
    }

    /// Executes the mark. Its number.
    #[inline]
    pub fn mark(&mut self) -> u64 {
        instruction();
        self.made += 1;
        self.before + self.made
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        PASSED.fetch_add(self.made, Ordering::AcqRel);
    }
}

/// One instruction without effect whose encoding nothing else has: a long NOP with the displacement
/// `latl`. `plugin/latlab.c` knows it.
#[inline]
fn instruction() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it is a NOP (Intel SDM 2B, NOP r/m32): it touches neither memory nor registers.
    unsafe {
        std::arch::asm!(
            ".byte 0x0f, 0x1f, 0x84, 0x00, 0x6c, 0x61, 0x74, 0x6c",
            options(nostack, preserves_flags)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_goes_on_from_those_that_are_through() {
        let mut first = Marks::begin();
        let number = first.mark();
        assert_eq!(first.mark(), number + 1);
        drop(first);
        assert_eq!(Marks::begin().mark(), number + 2);
    }
}
