//! How much of a process's memory is locked.

use super::mapping::Mapping;
use std::fmt;

/// The memory of a process that the kernel holds in RAM, in bytes. Memory that can't be locked,
/// such as device memory, is not part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Locked memory.
    pub locked: u64,
    /// The rest.
    pub unlocked: u64,
    /// Whether the program's own file is locked, as it is after `mlockall(MCL_CURRENT)`: it was mapped before
    /// the program could call that.
    pub has_locked_program: bool,
}

/// A size in bytes, written with its unit.
pub(super) struct Size(pub(super) u64);

impl Memory {
    /// The memory by the text of `/proc/PID/smaps`. `program` is the path of the program's file as the kernel
    /// writes it there.
    pub fn of_mappings(smaps: &str, program: &str) -> Memory {
        let mut memory = Memory { has_locked_program: true, ..Memory::default() };
        let (mut resident, mut is_program) = (0, false);
        for line in smaps.lines() {
            let mut words = line.split_ascii_whitespace();
            match words.next().unwrap_or_default() {
                "Rss:" => resident = kibibytes(words.next()),
                "VmFlags:" => memory.add(resident, is_program, &words.collect::<Vec<_>>()),
                _ => {
                    if let Some(mapping) = Mapping::of(line) {
                        (resident, is_program) = (0, mapping.path == program);
                    }
                }
            }
        }
        memory
    }

    /// The memory by the counters in the text of `/proc/PID/status`. None unless the counters
    /// suffice: nothing is locked, or everything is.
    pub fn of_counters(status: &str) -> Option<Memory> {
        /// More than the mappings of the kernel's own code, which can't be locked.
        const REST: u64 = 64 << 10;
        let counter = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(|line| kibibytes(line.split_ascii_whitespace().next()))
        };
        let (all, locked, resident) = (counter("VmSize")?, counter("VmLck")?, counter("VmRSS")?);
        match locked {
            0 => Some(Memory { locked: 0, unlocked: resident, has_locked_program: false }),
            _ if all.saturating_sub(locked) <= REST => {
                Some(Memory { locked: resident, unlocked: 0, has_locked_program: true })
            }
            _ => None,
        }
    }

    /// Adds a mapping with its flags (`proc_pid_smaps(5)`).
    fn add(&mut self, resident: u64, is_program: bool, flags: &[&str]) {
        /// Mappings of devices, of page frames, such as cannot grow, and of huge pages, which are never
        /// swapped out.
        const NOT_LOCKABLE: [&str; 5] = ["io", "pf", "mm", "de", "ht"];
        if flags.contains(&"lo") {
            self.locked += resident;
        } else if !flags.iter().any(|flag| NOT_LOCKABLE.contains(flag)) {
            self.unlocked += resident;
            self.has_locked_program &= !is_program || resident == 0;
        }
    }

    /// The lack of locked memory, in words. None if the program's own file is locked: only later
    /// mappings may then be unlocked.
    pub(super) fn lack(&self) -> Option<String> {
        let (locked, all) = (Size(self.locked), Size(self.locked + self.unlocked));
        match (self.has_locked_program, self.locked) {
            (true, _) => None,
            (false, 0) => Some("only later mappings are locked".to_owned()),
            (false, _) => Some(format!("only {locked} of {all} of memory are locked")),
        }
    }
}

/// A number of KiB, in bytes.
fn kibibytes(word: Option<&str>) -> u64 {
    word.and_then(|word| word.parse().ok()).unwrap_or(0_u64).saturating_mul(1024)
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// From here on, MiB have enough digits.
        const LARGE: u64 = 10 << 20;
        match self.0 {
            ..LARGE => write!(f, "{} KiB", self.0 >> 10),
            size => write!(f, "{} MiB", size >> 20),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two mappings of a program, its stack, and the memory of a device.
    fn mappings(of_program: [&str; 2], of_stack: &str) -> Memory {
        let one = |path: &str, resident: u64, flags: &str| {
            format!(
                "5577a000-5577b000 r-xp 00001000 fe:01 77   {path}\nSize:   8 kB\nRss:    \
                 {resident} kB\nTHPeligible:    0\nVmFlags: rd ex mr {flags} \n"
            )
        };
        let [first, second] = of_program;
        let text = one("/opt/the loop", 100, first)
            + &one("/opt/the loop", 0, second)
            + &one("[stack]", 20, of_stack)
            + &one("/dev/fb0", 5000, "io pf de");
        Memory::of_mappings(&text, "/opt/the loop")
    }

    #[test]
    fn locked_page_of_the_stack_locks_no_program() {
        let memory = mappings(["me", "me"], "lo");
        let expected = Memory { locked: 20 << 10, unlocked: 100 << 10, has_locked_program: false };
        assert_eq!(memory, expected);
        assert_eq!(memory.lack().as_deref(), Some("only 20 KiB of 120 KiB of memory are locked"));
        let later = mappings(["me", "me"], "me");
        assert_eq!(later.lack().as_deref(), Some("only later mappings are locked"));
    }

    #[test]
    fn mapping_that_is_later_or_of_a_device_is_no_lack() {
        let memory = mappings(["lo", "me"], "me");
        assert_eq!((memory.locked, memory.unlocked), (100 << 10, 20 << 10));
        assert_eq!(memory.lack(), None);
        assert_eq!(mappings(["lo", "lo"], "lo").unlocked, 0);
    }

    #[test]
    fn counters_tell_where_nothing_or_everything_is_locked() {
        let of = |locked: u64| {
            let text =
                format!("VmPeak:  9000 kB\nVmSize:  2600 kB\nVmLck:  {locked} kB\nVmRSS: 1900 kB");
            Memory::of_counters(&text).map(|memory| (memory.unlocked, memory.has_locked_program))
        };
        assert_eq!((of(0), of(4), of(2572)), (Some((1900 << 10, false)), None, Some((0, true))));
        assert_eq!(Memory::of_counters("Name: loop"), None);
    }

    #[test]
    fn sizes_have_their_units() {
        let sizes = [Size(4096), Size(9 << 20), Size(300 << 20)].map(|size| size.to_string());
        assert_eq!(sizes, ["4 KiB", "9216 KiB", "300 MiB"]);
    }
}
