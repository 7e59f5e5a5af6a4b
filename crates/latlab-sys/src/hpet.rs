//! `/dev/hpet`: the interrupt of a High Precision Event Timer, and its counter
//! (`Documentation/timers/hpet.rst`, IA-PC HPET specification 1.0a).

use crate::ioctl::{PLAIN, READ, WRITE, call};
use latlab_core::time::Nanos;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;

/// Where it is.
pub const DEVICE: &str = "/dev/hpet";

/// One of its timers, opened. Dropping it stops its interrupts.
#[derive(Debug)]
pub struct Hpet {
    file: File,
    registers: Registers,
    /// Which of the timers it is.
    timer: usize,
    periodic: bool,
    /// Ticks from one interrupt to the next.
    period: u64,
    /// What the counter said last, with the bits that it may lack.
    last: u64,
}

/// As `struct hpet_info` in `linux/hpet.h`.
#[repr(C)]
#[derive(Default)]
struct Info {
    rate: libc::c_ulong,
    flags: libc::c_ulong,
    hpet: libc::c_ushort,
    timer: libc::c_ushort,
}

const PERIODIC: libc::c_ulong = 0x10;

const KIND: u8 = b'h';
const IE_ON: libc::Ioctl = call(PLAIN, KIND, 1, 0);
const INFO: libc::Ioctl = call(READ, KIND, 3, size_of::<Info>());
const EPI: libc::Ioctl = call(PLAIN, KIND, 4, 0);
const IRQFREQ: libc::Ioctl = call(WRITE, KIND, 6, size_of::<libc::c_ulong>());

impl Hpet {
    /// Opens one, and maps its registers to read. `ResourceBusy` where all have been taken;
    /// `PermissionDenied` also where the kernel gives nobody the registers (`hpet_mmap=0`).
    pub fn open() -> io::Result<Hpet> {
        let file = File::open(DEVICE)?;
        let registers = Registers::of(&file)?;
        let mut info = Info::default();
        let to = &raw mut info;
        // SAFETY: this call writes a hpet_info, which `info` is.
        crate::checked(unsafe { libc::ioctl(file.as_raw_fd(), INFO, to) })?;
        let (timer, periodic) = (usize::from(info.timer), info.flags & PERIODIC != 0);
        Ok(Hpet { file, registers, timer, periodic, period: 0, last: 0 })
    }

    /// Has it interrupt so often a second. `PermissionDenied` above
    /// `/proc/sys/dev/hpet/max-user-freq` without `CAP_SYS_RESOURCE`; EIO where it has no line to
    /// interrupt on.
    pub fn start(&mut self, hertz: u32) -> io::Result<()> {
        self.tell(IRQFREQ, hertz.into())?;
        // As the driver rounds.
        let rate = (FEMTOS + self.registers.femtos / 2) / self.registers.femtos;
        self.period = (rate + u64::from(hertz) / 2) / u64::from(hertz);
        if self.periodic {
            self.tell(EPI, 0)?;
        }
        self.tell(IE_ON, 0)
    }

    /// The time from one interrupt to the next, in whole ticks.
    pub fn period(&self) -> Nanos {
        self.registers.time(self.period)
    }

    /// The finest that it can tell, rounded up.
    pub fn tick(&self) -> Nanos {
        Nanos(self.registers.femtos.div_ceil(1_000_000))
    }

    /// Waits for interrupts. How many there were since the last wait, at least one; none if a
    /// signal ended it.
    #[inline]
    pub fn wait(&self) -> io::Result<Option<u64>> {
        let mut answer = [0; 8];
        match (&self.file).read(&mut answer) {
            Ok(_) => Ok(Some(u64::from_ne_bytes(answer))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The time of its own counter, on which its expiries are. To be asked more often than a
    /// counter of 32 bits comes round, in minutes.
    #[inline]
    pub fn now(&mut self) -> Nanos {
        let elapsed = self.registers.counter().wrapping_sub(self.last) & self.registers.mask();
        self.last += elapsed;
        self.registers.time(self.last)
    }

    /// When it expires next, or did if that was just now.
    #[inline]
    pub fn expiry(&mut self) -> Nanos {
        self.now();
        let next = self.registers.comparator(self.timer);
        self.registers.time(with_all_bits(next, self.last))
    }

    fn tell(&self, call: libc::Ioctl, value: libc::c_ulong) -> io::Result<()> {
        // SAFETY: these calls take a number or nothing, and no pointer.
        crate::checked(unsafe { libc::ioctl(self.file.as_raw_fd(), call, value) }).map(drop)
    }
}

/// The kernel has comparators compare 32 bits only: the counter of 64 that is nearest to `now`.
fn with_all_bits(comparator: u32, now: u64) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
    let apart = comparator.wrapping_sub(now as u32).cast_signed();
    now.saturating_add_signed(apart.into())
}

/// The registers, mapped to read.
#[derive(Debug)]
struct Registers {
    page: *mut libc::c_void,
    /// How long a tick of the counter is, in 10⁻¹⁵ s.
    femtos: u64,
    wide: bool,
}

// SAFETY: the registers may be read from any thread, and stay mapped until drop.
unsafe impl Send for Registers {}

/// So many are a second.
const FEMTOS: u64 = 1_000_000_000_000_000;
const SIZE: usize = 1024;
const CAPABILITIES: usize = 0;
const COUNTER: usize = 0xf0;
const COMPARATORS: usize = 0x108;
const APART: usize = 0x20;
/// The capability of a counter of 64 bits.
const WIDE: u32 = 1 << 13;

impl Registers {
    fn of(file: &File) -> io::Result<Registers> {
        let (fd, nowhere) = (file.as_raw_fd(), std::ptr::null_mut());
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let page = unsafe { libc::mmap(nowhere, SIZE, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut registers = Registers { page, femtos: 0, wide: false };
        registers.wide = registers.read::<u32>(CAPABILITIES) & WIDE != 0;
        registers.femtos = registers.read::<u32>(CAPABILITIES + 4).into();
        // No time has passed where there is no device.
        if registers.femtos == 0 { Err(io::ErrorKind::NotFound.into()) } else { Ok(registers) }
    }

    #[inline]
    fn counter(&self) -> u64 {
        if self.wide { self.read(COUNTER) } else { self.read::<u32>(COUNTER).into() }
    }

    #[inline]
    fn comparator(&self, timer: usize) -> u32 {
        self.read(COMPARATORS + timer * APART)
    }

    /// The bits that the counter has.
    fn mask(&self) -> u64 {
        if self.wide { u64::MAX } else { u32::MAX.into() }
    }

    fn time(&self, ticks: u64) -> Nanos {
        let nanos = u128::from(ticks) * u128::from(self.femtos) / 1_000_000;
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The register at this offset.
    #[inline]
    fn read<T: Copy>(&self, offset: usize) -> T {
        assert!(offset + size_of::<T>() <= SIZE, "no timer has such a number");
        // SAFETY: just checked to lie within the mapping.
        let register = unsafe { self.page.byte_add(offset) };
        // SAFETY: registers are aligned, may be read as numbers at any time, and change by
        // themselves.
        unsafe { register.cast::<T>().read_volatile() }
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        // SAFETY: exactly our mapping, and no reference into it is left.
        unsafe { libc::munmap(self.page, SIZE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparator_is_near_the_counter_on_either_side_and_when_it_comes_round() {
        assert_eq!(with_all_bits(1_000, 900), 1_000);
        assert_eq!(with_all_bits(800, 900), 800);
        assert_eq!(with_all_bits(5, (7 << 32) - 5), (7 << 32) + 5);
        assert_eq!(with_all_bits(u32::MAX, 7 << 32), (7 << 32) - 1);
    }
}
