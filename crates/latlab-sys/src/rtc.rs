//! `/dev/rtc0`: the periodic interrupt of the machine's real-time clock (`rtc(4)`).

use crate::ioctl::{PLAIN, READ, WRITE, call};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;

/// The device file.
pub const DEVICE: &str = "/dev/rtc0";

/// The open clock. Only one process can have it open (`ResourceBusy`). Dropping it stops its
/// interrupts and restores its rate. If the process is killed, the kernel stops the interrupts and
/// the rate stays: each user sets their own.
#[derive(Debug)]
pub struct Rtc {
    file: File,
    rate: libc::c_ulong,
}

const KIND: u8 = b'p';
const PIE_ON: libc::Ioctl = call(PLAIN, KIND, 0x05, 0);
const PIE_OFF: libc::Ioctl = call(PLAIN, KIND, 0x06, 0);
const IRQP_READ: libc::Ioctl = call(READ, KIND, 0x0b, size_of::<libc::c_ulong>());
const IRQP_SET: libc::Ioctl = call(WRITE, KIND, 0x0c, size_of::<libc::c_ulong>());

impl Rtc {
    /// Opens the clock.
    pub fn open() -> io::Result<Rtc> {
        let mut rtc = Rtc { file: File::open(DEVICE)?, rate: 0 };
        let rate = &raw mut rtc.rate;
        // SAFETY: this call writes an unsigned long, as which `rate` is valid.
        crate::checked(unsafe { libc::ioctl(rtc.file.as_raw_fd(), IRQP_READ, rate) })?;
        Ok(rtc)
    }

    /// Sets the rate of its interrupts, in hertz: a power of two from 2 to 8192. `PermissionDenied`
    /// above `/sys/class/rtc/rtc0/max_user_freq` without `CAP_SYS_RESOURCE`.
    pub fn set_rate(&self, hertz: u32) -> io::Result<()> {
        self.tell(IRQP_SET, hertz.into())
    }

    /// Starts the interrupts. The first comes after one period.
    pub fn start(&self) -> io::Result<()> {
        self.tell(PIE_ON, 0)
    }

    /// Waits for an interrupt. Returns the number of interrupts since the last wait, at least one;
    /// None if a signal ended the wait.
    #[inline]
    pub fn wait(&self) -> io::Result<Option<u64>> {
        let mut answer = [0; 8];
        match (&self.file).read(&mut answer) {
            // The lowest byte is their type.
            Ok(_) => Ok(Some(u64::from_ne_bytes(answer) >> 8)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn tell(&self, call: libc::Ioctl, value: libc::c_ulong) -> io::Result<()> {
        // SAFETY: these calls take a number or nothing, and no pointer.
        crate::checked(unsafe { libc::ioctl(self.file.as_raw_fd(), call, value) }).map(drop)
    }
}

impl Drop for Rtc {
    fn drop(&mut self) {
        let _ = self.tell(PIE_OFF, 0);
        // Refused to ordinary users above their limit; the next user sets a rate anyway.
        let _ = self.tell(IRQP_SET, self.rate);
    }
}
