//! Causes of injected delays, and the mechanism of each.

use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::driver;
use latlab_part::part::needs::Needs;
use latlab_sys::driver::{DelayCause, Driver, InterruptSource};
use latlab_sys::root::Root;
use latlab_sys::{clock, cpu};
use std::io;

/// Cause of the delay of a thread.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub(super) enum InjectedCause {
    /// None, as the baseline: the second task wakes up and does nothing.
    None,
    /// The kernel runs with interrupts off.
    InterruptsOff,
    /// The kernel runs with preemption off.
    PreemptionOff,
    /// The kernel holds a raw spinlock.
    RawSpinlock,
    /// A softirq runs: a tasklet.
    Softirq,
    /// A callback of a high-resolution timer runs.
    TimerCallback,
    /// The interrupt handler of a device runs: that of QEMU's `edu`.
    Interrupt,
    /// A lower-priority task holds a mutex of the kernel that the thread calls for.
    Mutex,
    /// A higher-priority task computes.
    HigherPriority,
    /// A task of the same priority computes and became runnable earlier.
    EqualPriority,
    /// The thread touches unpopulated memory.
    PageFault,
}

/// Mechanism that causes a delay from one time to another.
pub(super) enum Injector {
    /// None, or the delayed thread itself.
    None,
    /// A task that computes, with this priority offset to the delayed thread.
    Task(i32),
    /// The test driver.
    Driver(Driver, DelayCause),
    /// The test driver's device.
    Device(Driver),
}

impl InjectedCause {
    fn in_kernel(self) -> Option<DelayCause> {
        match self {
            InjectedCause::InterruptsOff => Some(DelayCause::InterruptsOff),
            InjectedCause::PreemptionOff => Some(DelayCause::PreemptionOff),
            InjectedCause::RawSpinlock => Some(DelayCause::RawSpinlock),
            InjectedCause::Softirq => Some(DelayCause::Softirq),
            InjectedCause::TimerCallback => Some(DelayCause::TimerCallback),
            InjectedCause::Mutex => Some(DelayCause::Mutex),
            _ => None,
        }
    }

    pub(super) fn needs(self) -> Needs {
        match self {
            InjectedCause::Interrupt => Needs::interrupt(),
            _ if self.in_kernel().is_some() => Needs::driver(),
            _ => Needs::default(),
        }
    }

    /// Fails if this cause can't be injected on this machine.
    pub(super) fn check(self, probe: &str) -> Result<()> {
        if matches!(self, InjectedCause::None | InjectedCause::PageFault) {
            return Ok(());
        }
        if clock::resolution() > Nanos(1) {
            return Err(Failure::unsupported(format!(
                "{probe}: timers fire at ticks only on this kernel, so a delay can't start at a set \
                 time: boot without highres=off (lab:preemptible-hr), or use cause=page-fault"
            )));
        }
        if self.needs().driver {
            let refused = |why| driver::refused(why, probe, "cause=higher-priority");
            driver::open().map_err(refused)?;
        }
        match self {
            InjectedCause::Interrupt => check_device(probe),
            InjectedCause::Mutex => check_single_cpu(
                probe,
                "the test driver has one mutex, for which the threads of all CPUs would wait",
            ),
            _ => Ok(()),
        }
    }

    /// Whether the delayed thread itself takes the mutex that delays it, after its wake-up.
    pub(super) fn takes_mutex(self) -> bool {
        self == InjectedCause::Mutex
    }

    /// Returns the mechanism. `driver` is present for the causes that need it.
    pub(super) fn injector(self, driver: Option<Driver>) -> Injector {
        match (self, self.in_kernel(), driver) {
            (InjectedCause::HigherPriority, ..) => Injector::Task(1),
            (InjectedCause::EqualPriority, ..) => Injector::Task(0),
            (_, Some(cause), Some(driver)) => Injector::Driver(driver, cause),
            (InjectedCause::Interrupt, _, Some(driver)) => Injector::Device(driver),
            _ => Injector::None,
        }
    }
}

/// Fails without the device, and with several CPUs: the kernel chooses the CPU that a device
/// interrupts.
fn check_device(probe: &str) -> Result<()> {
    let refused = |why| driver::refused(why, probe, "cause=timer-callback");
    driver::check_device().map_err(refused)?;
    check_single_cpu(probe, "with several CPUs it is not known which one the device interrupts")
}

/// Fails with several CPUs, for this reason.
fn check_single_cpu(probe: &str, why: &str) -> Result<()> {
    if cpu::online(&Root::default()).len() <= 1 {
        return Ok(());
    }
    Err(Failure::unsupported(format!(
        "{probe}: {why}: use a profile with one CPU, or cause=timer-callback"
    )))
}

impl Injector {
    /// Returns the priority of the injecting task relative to the delayed thread's.
    pub(super) fn priority_offset(&self) -> i32 {
        match self {
            Injector::Task(offset) => *offset,
            // Lower, so that the delayed thread runs as soon as the delay ends.
            Injector::None | Injector::Driver(..) | Injector::Device(_) => -1,
        }
    }

    /// Occupies the CPU from `at` until `until`. To be called shortly before `at`. Returns when that
    /// began; none if it occupies nothing.
    pub(super) fn inject(&self, at: Nanos, until: Nanos) -> io::Result<Option<Nanos>> {
        match self {
            Injector::None => Ok(None),
            Injector::Task(_) => {
                let began = clock::spin_until(at);
                clock::spin_until(until);
                Ok(Some(began))
            }
            Injector::Driver(driver, cause) => driver.inject(*cause, at, until).map(Some),
            Injector::Device(driver) => {
                let began = clock::spin_until(at);
                driver.arm(InterruptSource::DeviceAtOnce { busy: until - began })?;
                Ok(Some(began))
            }
        }
    }
}
