//! Lines of `/proc/PID/maps`.

use std::ops::Range;

/// A mapping in the memory of a process, as a line of `/proc/PID/maps` describes it (`proc_pid_maps(5)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// Its addresses.
    pub range: Range<u64>,
    /// Whether code in it can be executed.
    pub is_executable: bool,
    /// Offset in the file.
    pub offset: u64,
    /// Device and inode of the file, such as `08:01 7`.
    pub file: String,
    /// Path of the file, or what the memory is for, such as `[stack]`; may be empty.
    pub path: &'a str,
}

impl Mapping<'_> {
    /// Reads a line. None if it is none of a mapping.
    pub fn of(line: &str) -> Option<Mapping<'_>> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let (rights, offset) = (fields.next()?, fields.next()?);
        let file = format!("{} {}", fields.next()?, fields.next()?);
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(Mapping {
            range: number(start)?..number(end)?,
            is_executable: rights.contains('x'),
            offset: number(offset)?,
            file,
            path: fields.next().unwrap_or_default().trim_start(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn line_is_read_with_spaces_in_its_path() {
        let code = Mapping::of("1000-3000 r-xp 00000040 08:01 7          /opt/the loop").unwrap();
        assert_eq!((code.range, code.is_executable, code.offset), (0x1000..0x3000, true, 0x40));
        assert_eq!((code.file.as_str(), code.path), ("08:01 7", "/opt/the loop"));
        let anonymous = Mapping::of("5000-6000 rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!((anonymous.is_executable, anonymous.path), (false, ""));
        assert_eq!(Mapping::of("VmFlags: rd ex mr"), None);
        assert_eq!(Mapping::of("Rss:                   4 kB"), None);
    }

    proptest! {
        #[test]
        fn arbitrary_line_does_not_panic(line in ".{0,80}") {
            let _ = Mapping::of(&line);
        }
    }
}
