//! `/dev/hpet`: the interrupt of a High Precision Event Timer, and its counter
//! (`Documentation/timers/hpet.rst`, IA-PC HPET specification 1.0a).

use crate::ioctl::{PLAIN, READ, WRITE, call};
use crate::mapping::{Mapping, Sealed};
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;

/// The device file.
pub const DEVICE: &str = "/dev/hpet";

/// An open timer of the HPET. Dropping it stops its interrupts.
#[derive(Debug)]
pub struct Hpet {
    file: File,
    registers: Registers,
    /// The index of the timer in the HPET.
    timer: usize,
    periodic: bool,
    /// Ticks from one interrupt to the next.
    period: u64,
    /// The last value of the counter, extended to 64 bits.
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
    /// Opens a free timer, and maps the registers read-only. `ResourceBusy` where no timer is free;
    /// `PermissionDenied` also where the kernel does not map the registers (`hpet_mmap=0`).
    pub fn open() -> io::Result<Hpet> {
        let file = File::open(DEVICE)?;
        let registers = Registers::of(&file)?;
        let mut info = Info::default();
        let to = &raw mut info;
        // SAFETY: this call writes a `struct hpet_info`, as which `info` is laid out.
        crate::checked(unsafe { libc::ioctl(file.as_raw_fd(), INFO, to) })?;
        let (timer, periodic) = (usize::from(info.timer), info.flags & PERIODIC != 0);
        Ok(Hpet { file, registers, timer, periodic, period: 0, last: 0 })
    }

    /// Starts periodic interrupts at this rate. `PermissionDenied` above
    /// `/proc/sys/dev/hpet/max-user-freq` without `CAP_SYS_RESOURCE`; EIO where the timer has no
    /// interrupt line.
    pub fn start(&mut self, hertz: u32) -> io::Result<()> {
        self.tell(IRQFREQ, hertz.into())?;
        // Rounded as the driver does.
        let rate = (FEMTOS + self.registers.femtos / 2) / self.registers.femtos;
        self.period = (rate + u64::from(hertz) / 2) / u64::from(hertz);
        if self.periodic {
            self.tell(EPI, 0)?;
        }
        self.tell(IE_ON, 0)
    }

    /// The time from one interrupt to the next: a whole number of ticks.
    pub fn period(&self) -> Nanos {
        self.registers.time(self.period)
    }

    /// The resolution of the counter: one tick, rounded up.
    pub fn tick(&self) -> Nanos {
        Nanos(self.registers.femtos.div_ceil(1_000_000))
    }

    /// Waits for an interrupt. Returns the number of interrupts since the last wait, at least one;
    /// None if a signal ended the wait.
    #[inline]
    pub fn wait(&self) -> io::Result<Option<u64>> {
        let mut answer = [0; 8];
        match (&self.file).read(&mut answer) {
            Ok(_) => Ok(Some(u64::from_ne_bytes(answer))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The time on the HPET's own counter, as in [`Hpet::expiry`]. It must be read more often than
    /// a counter of 32 bits wraps, which takes minutes.
    #[inline]
    pub fn now(&mut self) -> Nanos {
        let elapsed = self.registers.counter().wrapping_sub(self.last) & self.registers.mask();
        self.last += elapsed;
        self.registers.time(self.last)
    }

    /// The next expiry, or the last one where that was just now.
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

/// Extends a comparator to the 64-bit value nearest to `now`: the kernel sets comparators to 32
/// bits.
fn with_all_bits(comparator: u32, now: u64) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
    let apart = comparator.wrapping_sub(now as u32).cast_signed();
    now.saturating_add_signed(apart.into())
}

/// The registers, mapped read-only.
#[derive(Debug)]
struct Registers {
    page: Sealed,
    /// The length of a tick of the counter, in 10⁻¹⁵ s.
    femtos: u64,
    /// Whether the counter has 64 bits, not 32.
    wide: bool,
}

/// Femtoseconds in a second.
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
        let page = Mapping::read_only(file, Bytes(SIZE as u64))?;
        let mut registers = Registers { page, femtos: 0, wide: false };
        registers.wide = registers.read::<u32>(CAPABILITIES) & WIDE != 0;
        registers.femtos = registers.read::<u32>(CAPABILITIES + 4).into();
        // All registers read as zero where there is no device.
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

    /// A mask of the bits that the counter has.
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
        assert!(offset + size_of::<T>() <= SIZE, "no HPET has a register at {offset}");
        let register = self.page.start::<u8>().wrapping_add(offset);
        // SAFETY: it lies within the mapping, as just checked. Registers are aligned, hold numbers,
        // and change by themselves.
        unsafe { register.cast::<T>().read_volatile() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hpet_comparator_is_extended_to_the_nearest_counter_value() {
        assert_eq!(with_all_bits(1_000, 900), 1_000);
        assert_eq!(with_all_bits(800, 900), 800);
        assert_eq!(with_all_bits(5, (7 << 32) - 5), (7 << 32) + 5);
        assert_eq!(with_all_bits(u32::MAX, 7 << 32), (7 << 32) - 1);
    }
}
