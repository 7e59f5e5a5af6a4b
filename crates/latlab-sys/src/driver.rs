//! The test driver, `/dev/latlab`: non-preemptible loops, and interrupts at known times.
//!
//! `kmod/README.md` describes its calls; `kmod/latlab.h` is the same interface in C.

#[cfg(test)]
mod tests;

use crate::ioctl::{READ, WRITE, call};
use latlab_core::time::Nanos;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// The section in which each part of a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// None: preemptible where the kernel is.
    Plain,
    /// Each part under a spinlock.
    Spin,
    /// Each part under a raw spinlock, which PREEMPT_RT does not make preemptible.
    RawSpin,
    /// Each part with preemption disabled.
    PreemptOff,
    /// Each part with interrupts disabled.
    IrqOff,
    /// All parts under one spinlock, which is released at a preemption point if another task waits.
    LockBreak,
}

/// A loop in the kernel of equal parts, with a preemption point between any two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The total number of iterations: at least one in each part, at most
    /// [`Version::iterations_per_second`].
    pub iterations: u64,
    /// The number of preemption points, at most [`Loop::MOST_POINTS`].
    pub points: u32,
    /// The section in which each part runs.
    pub mode: Mode,
}

impl Loop {
    /// The most preemption points.
    pub const MOST_POINTS: u32 = 1023;
}

/// The times at which a part of the loop began and ended, on `CLOCK_MONOTONIC`. It may have been
/// preempted meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Piece {
    /// After the lock was taken.
    pub begin: Nanos,
    /// Before it was released.
    pub end: Nanos,
}

/// The times of the first [`Pieces::MOST`] parts of a loop.
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
    /// The most parts whose times are recorded.
    pub const MOST: usize = 64;

    /// Room for the times of a loop: nothing is allocated when it runs.
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

/// The source of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptSource {
    /// A timer on the CPU of the caller, at this time: at once if it has passed, refused if it is
    /// more than 10 s away. Without high-resolution timers, at the next tick.
    Timer(Nanos),
    /// QEMU's "edu" device, at a time that it chooses, 99 to 100 ms away.
    Device {
        /// Whether its handler is threaded: an IRQ thread wakes the waiter.
        threaded: bool,
    },
    /// The same device, at once.
    DeviceAtOnce {
        /// The time for which its handler keeps the CPU, with interrupts off; at most
        /// [`InterruptSource::BUSIEST`].
        busy: Nanos,
    },
    /// The same device, again and again, until another interrupt is armed or nobody has the driver
    /// open. Its handler is an IRQ thread.
    DevicePeriodic {
        /// The time between two interrupts, from [`InterruptSource::SHORTEST_PERIOD`] to 10 s.
        every: Nanos,
        /// The time for which the IRQ thread keeps the CPU; at most [`InterruptSource::BUSIEST`].
        busy: Nanos,
    },
}

impl InterruptSource {
    /// The shortest time between two interrupts of a periodic device.
    pub const SHORTEST_PERIOD: Nanos = Nanos(20_000);
    /// The longest time for which a handler keeps the CPU.
    pub const BUSIEST: Nanos = Nanos(1_000_000);
}

/// An interrupt that has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Arrival {
    /// Its number, counted from 1 while any process has the driver open.
    pub sequence: u64,
    /// The time at which it was due, on `CLOCK_MONOTONIC`.
    pub due: Nanos,
    /// The time of the first instruction of its handler.
    pub served: Nanos,
}

/// The context switches to a watched task, with the time that the scheduler took for each. The
/// times include the cost of watching, which [`Driver::watch`] returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct WatchedSwitches {
    count: u32,
    /// The number of further switches: switches after the first [`WatchedSwitches::MOST`], and
    /// switches whose beginning was missed.
    pub lost: u32,
    took: [Nanos; WatchedSwitches::MOST],
}

impl WatchedSwitches {
    /// The most switches whose times are recorded.
    pub const MOST: usize = 16;

    /// The time that each took, in order.
    pub fn get(&self) -> &[Nanos] {
        &self.took[..(self.count as usize).min(WatchedSwitches::MOST)]
    }
}

/// As `struct latlab_watch` in `kmod/latlab.h`.
#[derive(Default)]
#[repr(C)]
struct Watch {
    cost: u64,
}

/// The cause of an injected delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DelayCause {
    /// Interrupts are off.
    InterruptsOff,
    /// Preemption is off.
    PreemptionOff,
    /// A raw spinlock is held with interrupts off.
    RawSpinlock,
    /// A tasklet runs. On `PREEMPT_RT` it is as preemptible as the task that runs it.
    Softirq,
    /// The callback of a high-resolution timer runs.
    TimerCallback,
    /// The mutex `latlab_mutex` is held, for which other callers wait. A call whose times are past
    /// takes it and lets it go.
    Mutex,
}

/// As `struct latlab_inject` in `kmod/latlab.h`.
#[repr(C)]
struct Inject {
    at: u64,
    until: u64,
    cause: u32,
    zero: u32,
}

/// The version of the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Version {
    /// The version of its interface; this program needs [`Version::OURS`].
    pub version: u32,
    device: u32,
    /// The speed of its loop on this machine; also the most iterations of one call.
    pub iterations_per_second: u64,
}

impl Version {
    /// The version that this program needs.
    pub const OURS: u32 = 6;

    /// Whether the machine has the device of [`InterruptSource::Device`].
    pub fn has_device(&self) -> bool {
        self.device != 0
    }
}

/// Why the driver can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It is not loaded.
    #[error(
        "there is no {DEVICE}: load latlab's test driver (make -C kmod, insmod kmod/latlab.ko)"
    )]
    Absent,
    /// It needs root.
    #[error("{DEVICE} needs root (CAP_SYS_ADMIN)")]
    Forbidden,
    /// It belongs to another version of latlab.
    #[error(
        "the test driver that is loaded has version {0}, and this latlab needs version {ours}: \
         unload it and load the one of this latlab (kmod/)",
        ours = Version::OURS
    )]
    OtherVersion(u32),
    /// Any other error.
    #[error("{DEVICE}: {0}")]
    Other(#[from] io::Error),
}

const DEVICE: &str = "/dev/latlab";

/// The open driver. `ResourceBusy` where another process makes the same call at the same time.
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
const PERIODIC: u32 = 4;

const KIND: u8 = 0xEF;
const GET_VERSION: libc::Ioctl = call(READ, KIND, 0, size_of::<Version>());
const RUN: libc::Ioctl = call(READ | WRITE, KIND, 1, size_of::<Pieces>());
const ARM: libc::Ioctl = call(READ | WRITE, KIND, 2, size_of::<Arm>());
const WAIT: libc::Ioctl = call(READ | WRITE, KIND, 3, size_of::<Arrival>());
const WATCH: libc::Ioctl = call(READ, KIND, 4, size_of::<Watch>());
const SWITCHES: libc::Ioctl = call(READ, KIND, 5, size_of::<WatchedSwitches>());
const INJECT: libc::Ioctl = call(READ | WRITE, KIND, 6, size_of::<Inject>());

impl Driver {
    /// The longest delay that [`Driver::inject`] causes, and the longest time until it begins.
    pub const LONGEST_DELAY: Nanos = Nanos::from_millis(10);

    /// Opens the driver, and checks its version.
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

    /// The version of the driver.
    pub fn version(&self) -> io::Result<Version> {
        let mut version = Version::default();
        self.ask(GET_VERSION, &mut version)?;
        Ok(version)
    }

    /// Runs a loop, for about a second at most. EINVAL for a longer one and for one with more parts
    /// than iterations; `ResourceBusy` where another one runs.
    pub fn run(&self, wanted: Loop, pieces: &mut Pieces) -> io::Result<()> {
        pieces.iterations = wanted.iterations;
        pieces.points = wanted.points;
        pieces.mode = wanted.mode as u32;
        self.ask(RUN, pieces)
    }

    /// Arms the next interrupt. Returns the time at which it will come, on `CLOCK_MONOTONIC`. An
    /// interrupt armed before is cancelled. A device's interrupt can't be cancelled: `ResourceBusy`
    /// until it has come, within 100 ms. EINVAL for a time too far away or a handler busy for too
    /// long, ENODEV where there is no device, `Unsupported` where the time can't be known.
    pub fn arm(&self, source: InterruptSource) -> io::Result<Nanos> {
        let none = Arm { time: 0, source: EDU, flags: 0, busy: 0 };
        let mut arm = match source {
            InterruptSource::Timer(time) => Arm { time: time.0, source: TIMER, ..none },
            InterruptSource::Device { threaded } => {
                Arm { flags: u32::from(threaded) * THREADED, ..none }
            }
            InterruptSource::DeviceAtOnce { busy } => Arm { flags: AT_ONCE, busy: busy.0, ..none },
            InterruptSource::DevicePeriodic { every, busy } => {
                Arm { time: every.0, source: EDU, flags: PERIODIC | THREADED, busy: busy.0 }
            }
        };
        self.ask(ARM, &mut arm)?;
        Ok(Nanos(arm.time))
    }

    /// Waits for an interrupt after the one with this number, which was seen last (0: none), for at
    /// most 10 s (`TimedOut`). `Interrupted` if a signal ended the wait.
    pub fn wait(&self, seen: u64) -> io::Result<Arrival> {
        let mut arrival = Arrival { sequence: seen, ..Arrival::default() };
        self.ask(WAIT, &mut arrival)?;
        Ok(arrival)
    }

    /// Watches the context switches to the calling thread, and to no other, until all processes
    /// have closed the driver. Returns the cost that watching adds to each switch. `Unsupported`
    /// where the kernel has no kprobes, or not the functions on which they are set.
    pub fn watch(&self) -> io::Result<Nanos> {
        let mut watch = Watch::default();
        self.ask(WATCH, &mut watch)?;
        Ok(Nanos(watch.cost))
    }

    /// The context switches to the calling thread since its last call of this. EPERM where it is
    /// not watched, as when another thread is by now.
    #[inline]
    pub fn switches(&self) -> io::Result<WatchedSwitches> {
        let mut switches = WatchedSwitches::default();
        self.ask(SWITCHES, &mut switches)?;
        Ok(switches)
    }

    /// Delays all tasks on the CPU of the caller, by this cause, from `at` until `until` on
    /// `CLOCK_MONOTONIC`. Returns, after that, when it was about to begin: later than `at` where other
    /// tasks kept the caller from running. EINVAL if the delay or the time until it begins exceeds
    /// [`Driver::LONGEST_DELAY`], or if it ends before it begins.
    #[inline]
    pub fn inject(&self, cause: DelayCause, at: Nanos, until: Nanos) -> io::Result<Nanos> {
        let mut inject = Inject { at: at.0, until: until.0, cause: cause as u32, zero: 0 };
        self.ask(INJECT, &mut inject)?;
        Ok(Nanos(inject.at))
    }

    #[inline]
    fn ask<T>(&self, call: libc::Ioctl, with: &mut T) -> io::Result<()> {
        let with: *mut T = with;
        // SAFETY: each call is made with the type whose size is part of its number; the driver
        // reads and writes no more than that, and keeps no reference.
        crate::checked(unsafe { libc::ioctl(self.0.as_raw_fd(), call, with) }).map(drop)
    }
}
