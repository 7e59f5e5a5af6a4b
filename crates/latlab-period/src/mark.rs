//! Marks of the parts of a cycle, which `latlab check` shows. See `latlab-mark.h` and docs/marks.md.

use core::arch::asm;
use core::ffi::CStr;

/// A NOP with a note of its place in the format of `SystemTap`, for the mark of that name.
macro_rules! mark {
    ($what:literal, $name:expr, $id:expr) => {{
        #[cfg(target_arch = "x86_64")]
        mark!($what, $name, $id, "rdi", "rsi", "8@%rdi -8@%rsi");
        #[cfg(target_arch = "aarch64")]
        mark!($what, $name, $id, "x0", "x1", "8@x0 -8@x1");
    }};
    ($what:literal, $name:expr, $id:expr, $first:tt, $second:tt, $arguments:literal) => {
        // SAFETY: a NOP reads and changes nothing; the sections beside it are not part of the program.
        unsafe {
            asm!(
                "990: nop",
                ".pushsection .note.stapsdt, \"?\", %note",
                ".balign 4",
                ".4byte 992f - 991f, 994f - 993f, 3",
                "991: .asciz \"stapsdt\"",
                "992: .balign 4",
                "993: .8byte 990b, _.stapsdt.base, 0",
                ".asciz \"latlab\"",
                concat!(".asciz \"", $what, "\""),
                concat!(".asciz \"", $arguments, "\""),
                "994: .balign 4",
                ".popsection",
                ".ifndef _.stapsdt.base",
                ".pushsection .stapsdt.base, \"aG\", %progbits, .stapsdt.base, comdat",
                ".weak _.stapsdt.base",
                ".hidden _.stapsdt.base",
                "_.stapsdt.base: .space 1",
                ".size _.stapsdt.base, 1",
                ".popsection",
                ".endif",
                in($first) $name,
                in($second) $id,
                options(nostack, preserves_flags),
            );
        }
    };
}

/// A part of a cycle, which ends when this is dropped.
///
/// ```
/// let cycle = 1;
/// let part = latlab_period::Part::begin(c"control", cycle);
/// // The part.
/// drop(part);
/// ```
#[derive(Debug)]
#[must_use = "the part ends when it is dropped"]
pub struct Part<'a>(&'a CStr);

impl<'a> Part<'a> {
    /// Begins a part. See [`begin`].
    #[inline]
    pub fn begin(name: &'a CStr, id: i64) -> Part<'a> {
        begin(name, id);
        Part(name)
    }
}

impl Drop for Part<'_> {
    #[inline]
    fn drop(&mut self) {
        end(self.0);
    }
}

/// A part of a cycle begins. Its name is the same in each cycle, at most 63 bytes; `id` is any
/// number that identifies this execution of the part, such as the cycle's number.
#[inline]
pub fn begin(name: &CStr, id: i64) {
    mark!("begin", name.as_ptr(), id);
}

/// The part ends. Parts may contain others.
#[inline]
pub fn end(name: &CStr) {
    mark!("end", name.as_ptr(), 0_i64);
}
