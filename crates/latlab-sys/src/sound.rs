//! Playback on a sound card through the PCM interface of ALSA (`sound/asound.h`), without its
//! library.

use crate::ioctl::{PLAIN, READ, WRITE, call};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// An open playback device with two channels of 16 bits. Dropping it stops it.
#[derive(Debug)]
pub struct Pcm {
    file: File,
    /// A period of silence.
    silence: Vec<[i16; 2]>,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The device took all of it before it ran dry.
    InTime,
    /// The device had run dry (an underrun); it was started again and took all of it.
    TooLate,
    /// A signal ended the write.
    Interrupted,
}

/// As `struct snd_interval`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Interval {
    min: libc::c_uint,
    max: libc::c_uint,
    flags: libc::c_uint,
}

/// As `struct snd_pcm_hw_params`: the abilities of the device, narrowed to what is wanted.
#[repr(C)]
struct Hardware {
    flags: libc::c_uint,
    masks: [[u32; 8]; 8],
    intervals: [Interval; 21],
    wanted: libc::c_uint,
    changed: libc::c_uint,
    answers: [libc::c_uint; 4],
    fifo: libc::c_ulong,
    reserved: [u8; 64],
}

/// As `struct snd_pcm_sw_params`.
#[repr(C)]
#[derive(Default)]
struct Software {
    timestamps: libc::c_int,
    step: libc::c_uint,
    sleep: libc::c_uint,
    wake_at: libc::c_ulong,
    align: libc::c_ulong,
    start_at: libc::c_ulong,
    stop_at: libc::c_ulong,
    silence_at: libc::c_ulong,
    silence: libc::c_ulong,
    boundary: libc::c_ulong,
    version: libc::c_uint,
    clock: libc::c_uint,
    reserved: [u64; 7],
}

/// As `struct snd_xferi`.
#[repr(C)]
struct Transfer {
    written: libc::c_long,
    from: *const [i16; 2],
    frames: libc::c_ulong,
}

const KIND: u8 = b'A';
const HW_PARAMS: libc::Ioctl = call(READ | WRITE, KIND, 0x11, size_of::<Hardware>());
const SW_PARAMS: libc::Ioctl = call(READ | WRITE, KIND, 0x13, size_of::<Software>());
const DELAY: libc::Ioctl = call(READ, KIND, 0x21, size_of::<libc::c_long>());
const PREPARE: libc::Ioctl = call(PLAIN, KIND, 0x40, 0);
const WRITEI_FRAMES: libc::Ioctl = call(WRITE, KIND, 0x50, size_of::<Transfer>());

// The masks that are set, each with its bit; then the intervals.
const ACCESS: (usize, u32) = (0, 1 << 3);
const FORMAT: (usize, u32) = (1, 1 << 2);
const SUBFORMAT: (usize, u32) = (2, 1);
const CHANNELS: usize = 2;
const RATE: usize = 3;
const PERIOD_SIZE: usize = 5;
const PERIODS: usize = 7;
/// The flag of an interval of integers.
const WHOLE: libc::c_uint = 1 << 2;

impl Hardware {
    /// All that a device can do.
    fn any() -> Hardware {
        let interval = Interval { min: 0, max: libc::c_uint::MAX, flags: 0 };
        Hardware {
            flags: 0,
            masks: [[u32::MAX; 8]; 8],
            intervals: [interval; 21],
            wanted: libc::c_uint::MAX,
            changed: 0,
            answers: [libc::c_uint::MAX, 0, 0, 0],
            fifo: 0,
            reserved: [0; 64],
        }
    }

    fn want(&mut self, interval: usize, value: u32) {
        self.intervals[interval] = Interval { min: value, max: value, flags: WHOLE };
    }
}

/// The path of the first playback device. `NotFound` where there is none.
pub fn device() -> io::Result<PathBuf> {
    let plays = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("pcm") && name.ends_with('p')
    };
    let entries = fs::read_dir("/dev/snd")?.flatten().map(|entry| entry.path());
    entries.filter(plays).min().ok_or_else(|| io::ErrorKind::NotFound.into())
}

impl Pcm {
    /// Opens [`device`] at `rate` samples a second, with a buffer of `periods` periods of `period`
    /// samples. `ResourceBusy` where it is in use, `InvalidInput` where it does not support this.
    pub fn open(rate: u32, period: u32, periods: u32) -> io::Result<Pcm> {
        // Without O_NONBLOCK, opening waits until the device is free.
        let mut options = File::options();
        let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open(device()?)?;
        let silence = vec![[0; 2]; period as usize];
        let pcm = Pcm { file, silence };
        rustix::fs::fcntl_setfl(&pcm.file, rustix::fs::OFlags::empty())?;
        let mut hardware = Hardware::any();
        for (mask, only) in [ACCESS, FORMAT, SUBFORMAT] {
            hardware.masks[mask] = [only, 0, 0, 0, 0, 0, 0, 0];
        }
        let wanted = [(CHANNELS, 2), (RATE, rate), (PERIOD_SIZE, period), (PERIODS, periods)];
        for (interval, value) in wanted {
            hardware.want(interval, value);
        }
        pcm.ask(HW_PARAMS, &mut hardware)?;
        let buffer = libc::c_ulong::from(period) * libc::c_ulong::from(periods);
        let mut software = Software {
            step: 1,
            wake_at: period.into(),
            align: 1,
            start_at: buffer,
            stop_at: buffer,
            ..Software::default()
        };
        pcm.ask(SW_PARAMS, &mut software)?;
        pcm.prepare()?;
        Ok(pcm)
    }

    /// Writes a period of silence, as soon as there is room. Playback starts when the buffer is
    /// full.
    #[inline]
    pub fn write(&self) -> io::Result<Written> {
        match self.transfer() {
            Ok(()) => Ok(Written::InTime),
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {
                self.prepare()?;
                self.transfer().map(|()| Written::TooLate)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Written::Interrupted),
            Err(error) => Err(error),
        }
    }

    /// The number of samples that are still to be played; 0 after an underrun.
    #[inline]
    pub fn queued(&self) -> io::Result<u64> {
        let mut delay: libc::c_long = 0;
        match self.ask(DELAY, &mut delay) {
            Ok(()) => Ok(u64::try_from(delay).unwrap_or(0)),
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => Ok(0),
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn transfer(&self) -> io::Result<()> {
        let mut left = self.silence.as_slice();
        while !left.is_empty() {
            let frames = left.len() as libc::c_ulong;
            let mut transfer = Transfer { written: 0, from: left.as_ptr(), frames };
            self.ask(WRITEI_FRAMES, &mut transfer)?;
            // A signal may have ended the transfer early.
            left = left.get(usize::try_from(transfer.written).unwrap_or(0)..).unwrap_or_default();
        }
        Ok(())
    }

    fn prepare(&self) -> io::Result<()> {
        // SAFETY: this call takes no argument.
        crate::checked(unsafe { libc::ioctl(self.file.as_raw_fd(), PREPARE) }).map(drop)
    }

    #[inline]
    fn ask<T>(&self, call: libc::Ioctl, with: &mut T) -> io::Result<()> {
        let with: *mut T = with;
        // SAFETY: each call is made with the type whose size is part of its number; the kernel
        // keeps no reference, and a transfer states no more frames than there are.
        crate::checked(unsafe { libc::ioctl(self.file.as_raw_fd(), call, with) }).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_call_numbers_match_the_kernel() {
        assert_eq!(HW_PARAMS, 0xc260_4111);
        assert_eq!(SW_PARAMS, 0xc088_4113);
        assert_eq!(DELAY, 0x8008_4121);
        assert_eq!(WRITEI_FRAMES, 0x4018_4150);
    }
}
