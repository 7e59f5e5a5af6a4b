//! What can make a thread late on purpose, and who brings it about.

use crate::driver;
use crate::failure::{Failure, Result};
use crate::needs::Needs;
use latlab_core::time::Nanos;
use latlab_sys::driver::{Cause as InKernel, Driver, Source};
use latlab_sys::root::Root;
use latlab_sys::{clock, cpu};
use std::io;

/// What makes the thread late.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Cause {
    /// Nothing: what is left is what the rest of it does.
    None,
    /// The kernel runs with interrupts off.
    InterruptsOff,
    /// The kernel runs with preemption off.
    PreemptionOff,
    /// The kernel holds a raw spinlock.
    RawSpinlock,
    /// A softirq runs, which is a tasklet.
    Softirq,
    /// The callback of a high-resolution timer runs.
    TimerCallback,
    /// The interrupt handler of a device runs: QEMU's `edu`.
    Interrupt,
    /// A task of higher priority computes.
    HigherPriority,
    /// A task of the same priority computes, and was there before.
    EqualPriority,
    /// The thread touches memory that is not there.
    PageFault,
}

/// Who brings a delay about, from one time to another.
pub(super) enum Bringer {
    /// Nobody, or the thread itself.
    Nobody,
    /// A task that computes, and stands so far above the thread that is late.
    Task(i32),
    /// The test driver.
    Driver(Driver, InKernel),
    /// The test driver's device.
    Device(Driver),
}

impl Cause {
    fn in_kernel(self) -> Option<InKernel> {
        match self {
            Cause::InterruptsOff => Some(InKernel::InterruptsOff),
            Cause::PreemptionOff => Some(InKernel::PreemptionOff),
            Cause::RawSpinlock => Some(InKernel::RawSpinlock),
            Cause::Softirq => Some(InKernel::Softirq),
            Cause::TimerCallback => Some(InKernel::TimerCallback),
            _ => None,
        }
    }

    pub(super) fn needs(self) -> Needs {
        match self {
            Cause::Interrupt => Needs::interrupt(),
            _ if self.in_kernel().is_some() => Needs::driver(),
            _ => Needs::default(),
        }
    }

    /// Refuses what can't be brought about here.
    pub(super) fn check(self, probe: &str) -> Result<()> {
        if matches!(self, Cause::None | Cause::PageFault) {
            return Ok(());
        }
        if clock::resolution().is_ok_and(|resolution| resolution > Nanos(1)) {
            return Err(Failure::Unsupported(format!(
                "{probe}: timers only fire at ticks here, so that no delay begins at a set time: \
                 boot without highres=off (lab:preemptible-hr), or use cause=page-fault"
            )));
        }
        if self.needs().driver {
            let refused = |why| driver::refused(why, probe, "cause=higher-priority");
            driver::open().map_err(refused)?;
        }
        if self == Cause::Interrupt { check_device(probe) } else { Ok(()) }
    }

    /// Who brings it about. With causes that need the driver it is there.
    pub(super) fn bringer(self, driver: Option<Driver>) -> Bringer {
        match (self, self.in_kernel(), driver) {
            (Cause::HigherPriority, ..) => Bringer::Task(1),
            (Cause::EqualPriority, ..) => Bringer::Task(0),
            (_, Some(cause), Some(driver)) => Bringer::Driver(driver, cause),
            (Cause::Interrupt, _, Some(driver)) => Bringer::Device(driver),
            _ => Bringer::Nobody,
        }
    }
}

/// The kernel chooses the CPU that a device interrupts.
fn check_device(probe: &str) -> Result<()> {
    let refused = |why| driver::refused(why, probe, "cause=timer-callback");
    driver::check_device().map_err(refused)?;
    if cpu::online(&Root::default()).len() <= 1 {
        return Ok(());
    }
    Err(Failure::Unsupported(format!(
        "{probe}: with several CPUs it is not known which one the device interrupts: use a profile \
         with one CPU, or cause=timer-callback"
    )))
}

impl Bringer {
    /// How far above the thread that is late it stands.
    pub(super) fn above(&self) -> i32 {
        match self {
            Bringer::Task(above) => *above,
            // So that the thread has the CPU as soon as it can be had.
            Bringer::Nobody | Bringer::Driver(..) | Bringer::Device(_) => -1,
        }
    }

    /// Keeps the CPU from `at` until `until`; now is a little before `at`.
    pub(super) fn bring_about(&self, at: Nanos, until: Nanos) -> io::Result<()> {
        match self {
            Bringer::Nobody => Ok(()),
            Bringer::Task(_) => {
                clock::spin_until(until);
                Ok(())
            }
            Bringer::Driver(driver, cause) => driver.inject(*cause, at, until),
            Bringer::Device(driver) => {
                let begin = clock::spin_until(at);
                driver.arm(Source::DeviceAtOnce { busy: until - begin }).map(drop)
            }
        }
    }
}
