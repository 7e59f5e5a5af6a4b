//! The test driver, `/dev/latlab`: loops that can't be preempted and interrupts at known times.
//!
//! `kmod/README.md` says what its calls do; `kmod/latlab.h` is the interface that stands here
//! again.

#[cfg(test)]
mod tests;

use crate::ioctl::{READ, WRITE, call};
use latlab_core::time::Nanos;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// What each part of a loop is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// In nothing: preemptible where the kernel is.
    Plain,
    /// Each part under a spinlock.
    Spin,
    /// Each part under a raw spinlock, which PREEMPT_RT does not make preemptible.
    RawSpin,
    /// Each part with preemption disabled.
    PreemptOff,
    /// Each part with interrupts disabled.
    IrqOff,
    /// All under one spinlock, which is dropped at a preemption point if somebody waits.
    LockBreak,
}

/// A loop in the kernel of equal parts, with a preemption point between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Rounds in all; at least one in each part, at most [`Version::iterations_per_second`].
    pub iterations: u64,
    /// How many preemption points; at most [`Loop::MOST_POINTS`].
    pub points: u32,
    /// What each part is in.
    pub mode: Mode,
}

impl Loop {
    /// The most preemption points.
    pub const MOST_POINTS: u32 = 1023;
}

/// When a part of the loop began and ended, on `CLOCK_MONOTONIC`. Whoever preempted it ran
/// meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Piece {
    /// After the lock was taken.
    pub begin: Nanos,
    /// Before it was released.
    pub end: Nanos,
}

/// When the parts of a loop began and ended: of the first [`Pieces::MOST`] of them.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Pieces {
    iterations: u64,
    points: u32,
    mode: u32,
    parts: u32,
    zero: u32,
    part: [Piece; Pieces::MOST],
}

impl Pieces {
    /// The most parts of which the times are known.
    pub const MOST: usize = 64;

    /// Of no loop yet. What a loop gives is written here, so that nothing is allocated then.
    pub fn new() -> Pieces {
        let part = [Piece::default(); Pieces::MOST];
        Pieces { iterations: 0, points: 0, mode: 0, parts: 0, zero: 0, part }
    }

    /// The parts, in order.
    pub fn get(&self) -> &[Piece] {
        &self.part[..(self.parts as usize).min(Pieces::MOST)]
    }
}

impl Default for Pieces {
    fn default() -> Pieces {
        Pieces::new()
    }
}

/// Where an interrupt comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A timer on the CPU of the caller, at this time; at once if that is past, refused if it is
    /// more than 10 s away. Where timers only fire at ticks, at the next one.
    Timer(Nanos),
    /// QEMU's "edu" device, at a time of its own, 99 to 100 ms away.
    Device {
        /// Whether its handler lets a thread wake who waits.
        threaded: bool,
    },
    /// The same device, now.
    DeviceAtOnce {
        /// How long its handler keeps the processor, with interrupts off; at most
        /// [`Source::BUSIEST`].
        busy: Nanos,
    },
}

impl Source {
    /// The longest that a handler keeps its processor.
    pub const BUSIEST: Nanos = Nanos(1_000_000);
}

/// An interrupt that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Arrival {
    /// Which one it is, counted from 1 while anybody has the driver open.
    pub sequence: u64,
    /// When it was to come, on `CLOCK_MONOTONIC`.
    pub due: Nanos,
    /// The first instruction of its service routine.
    pub served: Nanos,
}

/// The switches to a task that is watched, and how long each took the scheduler. What watching costs
/// is in each, and known: [`Driver::watch`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Switches {
    count: u32,
    /// How many there were besides: after the first [`Switches::MOST`], or not seen to begin.
    pub lost: u32,
    took: [Nanos; Switches::MOST],
}

impl Switches {
    /// The most of which the time is known.
    pub const MOST: usize = 16;

    /// How long each took, in order.
    pub fn get(&self) -> &[Nanos] {
        &self.took[..(self.count as usize).min(Switches::MOST)]
    }
}

/// As `struct latlab_watch` in `kmod/latlab.h`.
#[derive(Default)]
#[repr(C)]
struct Watch {
    cost: u64,
}

/// What the driver is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Version {
    /// Of its interface; that of this program is [`Version::OURS`].
    pub version: u32,
    device: u32,
    /// How fast its loop is here; also the most iterations that it does in one call.
    pub iterations_per_second: u64,
}

impl Version {
    /// The version that this program knows.
    pub const OURS: u32 = 3;

    /// Whether [`Source::Device`] is there.
    pub fn has_device(&self) -> bool {
        self.device != 0
    }
}

/// Why there is no driver to be had.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It is not loaded.
    #[error(
        "there is no {DEVICE}: load latlab's test driver (make -C kmod, insmod kmod/latlab.ko)"
    )]
    Absent,
    /// It is only for root.
    #[error("{DEVICE} is only for root (CAP_SYS_ADMIN)")]
    Forbidden,
    /// It is that of another latlab.
    #[error(
        "the test driver that is loaded has version {0}, and this latlab knows {ours}: unload it \
         and load its own (kmod/)",
        ours = Version::OURS
    )]
    OtherVersion(u32),
    /// Anything else that the kernel says.
    #[error("{DEVICE}: {0}")]
    Other(#[from] io::Error),
}

const DEVICE: &str = "/dev/latlab";

/// The driver, opened. Two that call the same at the same time get in each other's way:
/// `ResourceBusy`.
#[derive(Debug)]
pub struct Driver(File);

/// As `struct latlab_arm` in `kmod/latlab.h`.
#[repr(C)]
struct Arm {
    time: u64,
    source: u32,
    flags: u32,
    busy: u64,
}

const TIMER: u32 = 0;
const EDU: u32 = 1;
const THREADED: u32 = 1;
const AT_ONCE: u32 = 2;

const KIND: u8 = 0xEF;
const GET_VERSION: libc::Ioctl = call(READ, KIND, 0, size_of::<Version>());
const RUN: libc::Ioctl = call(READ | WRITE, KIND, 1, size_of::<Pieces>());
const ARM: libc::Ioctl = call(READ | WRITE, KIND, 2, size_of::<Arm>());
const WAIT: libc::Ioctl = call(READ | WRITE, KIND, 3, size_of::<Arrival>());
const WATCH: libc::Ioctl = call(READ, KIND, 4, size_of::<Watch>());
const SWITCHES: libc::Ioctl = call(READ, KIND, 5, size_of::<Switches>());

impl Driver {
    /// Opens it.
    pub fn open() -> Result<Driver, Refusal> {
        let file = File::options().read(true).write(true).open(DEVICE);
        let driver = Driver(file.map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => Refusal::Absent,
            Some(libc::EACCES | libc::EPERM) => Refusal::Forbidden,
            _ => Refusal::Other(error),
        })?);
        match driver.version()?.version {
            Version::OURS => Ok(driver),
            other => Err(Refusal::OtherVersion(other)),
        }
    }

    /// What it is.
    pub fn version(&self) -> io::Result<Version> {
        let mut version = Version::default();
        self.ask(GET_VERSION, &mut version)?;
        Ok(version)
    }

    /// Runs a loop, for at most about a second. EINVAL for one that is longer or has more parts
    /// than iterations; `ResourceBusy` where another one runs.
    pub fn run(&self, wanted: Loop, pieces: &mut Pieces) -> io::Result<()> {
        pieces.iterations = wanted.iterations;
        pieces.points = wanted.points;
        pieces.mode = wanted.mode as u32;
        self.ask(RUN, pieces)
    }

    /// Sets the next interrupt, and says when it will come, on `CLOCK_MONOTONIC`. One that was set
    /// before and has not come does not come; a device has to let that pass first, for at most
    /// 100 ms (`ResourceBusy`). EINVAL for a time too far away or a handler busy for too long, ENODEV
    /// where there is no device, `Unsupported` where it can't be known when it will come.
    pub fn arm(&self, source: Source) -> io::Result<Nanos> {
        let none = Arm { time: 0, source: EDU, flags: 0, busy: 0 };
        let mut arm = match source {
            Source::Timer(time) => Arm { time: time.0, source: TIMER, ..none },
            Source::Device { threaded } => Arm { flags: u32::from(threaded) * THREADED, ..none },
            Source::DeviceAtOnce { busy } => Arm { flags: AT_ONCE, busy: busy.0, ..none },
        };
        self.ask(ARM, &mut arm)?;
        Ok(Nanos(arm.time))
    }

    /// Waits for another interrupt than the one with this number, which was seen last (0: none),
    /// for at most 10 s: `TimedOut`. `Interrupted` by a signal.
    pub fn wait(&self, seen: u64) -> io::Result<Arrival> {
        let mut arrival = Arrival { sequence: seen, ..Arrival::default() };
        self.ask(WAIT, &mut arrival)?;
        Ok(arrival)
    }

    /// Watches how long the scheduler takes to switch to the calling thread, and to nobody else,
    /// until all who have the driver open have closed it. What watching adds to each time.
    /// `Unsupported` where the kernel has no kprobes, or no function where they would be set.
    pub fn watch(&self) -> io::Result<Nanos> {
        let mut watch = Watch::default();
        self.ask(WATCH, &mut watch)?;
        Ok(Nanos(watch.cost))
    }

    /// The switches to the calling thread since it asked last. EPERM where it is not watched, as
    /// where another one is by now.
    #[inline]
    pub fn switches(&self) -> io::Result<Switches> {
        let mut switches = Switches::default();
        self.ask(SWITCHES, &mut switches)?;
        Ok(switches)
    }

    #[inline]
    fn ask<T>(&self, call: libc::Ioctl, with: &mut T) -> io::Result<()> {
        let with: *mut T = with;
        // SAFETY: each call is made with the type whose size is a part of its number; the driver
        // reads and writes no more than that, and keeps no reference.
        crate::checked(unsafe { libc::ioctl(self.0.as_raw_fd(), call, with) }).map(drop)
    }
}
