//! Periodic interrupts of a clock device: time until the task that reads the device runs.

mod device;

use super::Probe;
use crate::rig::{Pacing, Rig, Sampler, Scheduling, Span};
use device::{HpetInterrupts, InterruptDevice, RtcInterrupts};
use latlab_core::cpulist::CpuList;
use latlab_core::record::{Warning, WarningCode};
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result, failed, lock};
use latlab_part::part::needs::{Device, Needs};
use latlab_part::part::{About, Describe};
use latlab_sys::{clock, hpet, rtc};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Measures the time from the due interrupt of a clock device until read(2) returns to the task
/// that waits for it.
///
/// This is Realfeel (M. Hahn), with which Seo et al. 2009 measure figures 5, 6 and 9: a task blocks
/// in read(2) on /dev/rtc0 or /dev/hpet. The first series is the time from the due interrupt until
/// read(2) returns. The second is what Realfeel itself shows, the absolute difference between the
/// time from one return to the next and the period. The third is the time between returns.
///
/// Since Linux 2.6.39 the periodic interrupt of the RTC has been a kernel timer on CLOCK_MONOTONIC.
/// It is armed when the task enables it, and all further ones follow at whole periods: figure
/// "phase known within" is the uncertainty of the first, of which the earliest time is used. The
/// HPET is a device with an interrupt line and a handler, which is a thread on a real-time kernel:
/// its comparator is read after each interrupt for the due time of the next one, and the end of the
/// latency is read from its counter, too.
///
/// There is one such device, so only the last of the CPUs is measured. Periods whose interrupt was
/// lost, or was returned together with another one, are missed; figure "interrupts" is the number
/// that read(2) returned. It needs root, or access to the device and a frequency within the limit
/// for users. After a run that was killed the RTC keeps the frequency, without interrupting.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Realfeel {
    /// Interrupts per second, 64 to 8192; for the RTC a power of two
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(64..=8192))]
    frequency: u32,
    /// Device that interrupts
    #[arg(long, default_value = "rtc")]
    device: ClockDevice,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
enum ClockDevice {
    Rtc,
    Hpet,
}

const SPANS: [Span; 3] = [
    ("interrupt due", "read returned"),
    ("period", "time between returns"),
    ("read returned", "next read returned"),
];
const LATE: usize = 0;
const DIFFERENCE: usize = 1;
const BETWEEN: usize = 2;

/// Longest time without an interrupt of a working device.
const TIMEOUT: Nanos = Nanos::from_secs(5);

impl Describe for Realfeel {
    const ABOUT: About = About {
        name: "realfeel",
        summary: "time from the RTC's or HPET's interrupt until its reader runs",
    };
}

impl Probe for Realfeel {
    fn needs(&self) -> Needs {
        match self.device {
            ClockDevice::Rtc => Needs { devices: [Device::Rtc].into(), ..Needs::default() },
            ClockDevice::Hpet => Needs { devices: [Device::Hpet].into(), ..Needs::default() },
        }
    }

    fn check(&self, _: &CpuList) -> Result<()> {
        if self.device == ClockDevice::Rtc && !self.frequency.is_power_of_two() {
            let why =
                "realfeel: the RTC supports powers of two only: use frequency=64, 128, … 8192";
            return Err(Failure::failed(why));
        }
        match self.device {
            ClockDevice::Rtc => self.try_device::<RtcInterrupts>()?,
            ClockDevice::Hpet => self.try_device::<HpetInterrupts>()?,
        }
        self.scheduling.check()
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        match self.device {
            ClockDevice::Rtc => self.run_with::<RtcInterrupts>(rig),
            ClockDevice::Hpet => self.run_with::<HpetInterrupts>(rig),
        }
    }
}

impl Realfeel {
    fn try_device<D: InterruptDevice>(&self) -> Result<()> {
        let mut device = D::open().map_err(|error| self.not_opened(&error))?;
        device.start(self.frequency).map(drop).map_err(|error| self.not_started(&error))
    }

    fn run_with<D: InterruptDevice>(&self, rig: &mut Rig<'_>) -> Result<()> {
        let cpu = rig.cpus().iter().last().unwrap_or_default();
        let period = Nanos(1_000_000_000 / u64::from(self.frequency));
        let seen = InterruptFigures::default();
        self.warn_of_coarse_timers(period, rig);
        // The device outlives the measuring thread: to stop the RTC, the kernel spins until the
        // handler of its timer has ended, and under PREEMPT_RT a real-time task woken by the
        // handler would keep it from ending.
        let device = Mutex::new(D::open().map_err(|error| self.not_opened(&error))?);
        let done = rig.on_cpu_sets(
            &[CpuList::from_iter([cpu])],
            Self::ABOUT.name,
            &SPANS,
            Pacing::External { period, timeout: TIMEOUT },
            &self.scheduling,
            |sampler| self.measure(&mut *lock(&device), sampler, &seen),
        );
        seen.add_to(rig);
        done
    }

    /// The kernel's period of a timer is at least its resolution.
    fn warn_of_coarse_timers(&self, period: Nanos, rig: &mut Rig<'_>) {
        let resolution = clock::resolution();
        if self.device == ClockDevice::Rtc && resolution > period {
            let text = format!(
                "realfeel: timers of this kernel, and so the interrupts of the RTC, come at most \
                 every {resolution}: the others of {} Hz are missed",
                self.frequency
            );
            rig.warnings.push(Warning::new(WarningCode::CoarseTimers, text));
        }
    }

    fn measure<D: InterruptDevice>(
        &self,
        device: &mut D,
        sampler: &mut Sampler<'_>,
        seen: &InterruptFigures,
    ) -> io::Result<()> {
        seen.uncertainty.store(device.start(self.frequency)?.0, Relaxed);
        let period = device.period();
        // The first return has no predecessor to be measured from.
        let mut first = device.wait()?;
        while first.is_none() && sampler.running() {
            first = device.wait()?;
        }
        let mut before = device.now();
        device.returned(before, first.unwrap_or_default());
        sampler.start_at(D::monotonic(before));
        while sampler.running() {
            let Some(count) = device.wait()? else { continue };
            let now = device.now();
            let at = D::monotonic(now);
            let (latency, missed) = device.returned(now, count);
            if let Some(latency) = latency {
                let between = now - before;
                sampler.record(LATE, at, latency);
                sampler.record(DIFFERENCE, at, Nanos(between.0.abs_diff(period.0)));
                sampler.record(BETWEEN, at, between);
            }
            sampler.advance(at, missed);
            if sampler.is_counting() {
                seen.interrupts.fetch_add(count, Relaxed);
            }
            before = now;
        }
        Ok(())
    }

    fn not_opened(&self, error: &io::Error) -> Failure {
        let (path, remedy, rights) = match self.device {
            ClockDevice::Rtc => (
                rtc::DEVICE,
                "load its driver (on a PC: modprobe rtc-cmos), or use device=hpet",
                "it needs root, or the rights of its owner and mode (ls -l)",
            ),
            ClockDevice::Hpet => (
                hpet::DEVICE,
                "it needs a PC with an HPET and a kernel with CONFIG_HPET, or use device=rtc",
                "it needs root, and for its counter a kernel booted without hpet_mmap=0",
            ),
        };
        match error.kind() {
            io::ErrorKind::NotFound => {
                Failure::unsupported(format!("realfeel: there is no {path}: {remedy}"))
            }
            io::ErrorKind::PermissionDenied => {
                Failure::unsupported(format!("realfeel: access to {path} is denied: {rights}"))
            }
            io::ErrorKind::ResourceBusy => Failure::failed(format!(
                "realfeel: {path} is in use by another program: stop it (fuser {path} names it)"
            )),
            _ => failed(&format!("realfeel: {path} can't be opened"), error),
        }
    }

    fn not_started(&self, error: &io::Error) -> Failure {
        let (path, limit) = match self.device {
            ClockDevice::Rtc => (rtc::DEVICE, "/sys/class/rtc/rtc0/max_user_freq"),
            ClockDevice::Hpet => (hpet::DEVICE, "/proc/sys/dev/hpet/max-user-freq"),
        };
        let hertz = self.frequency;
        Failure::unsupported(match error.kind() {
            io::ErrorKind::PermissionDenied => format!(
                "realfeel: {path}: {hertz} Hz is above the limit for users: measure as root, write \
                 {hertz} to {limit}, or use a lower frequency"
            ),
            _ => format!(
                "realfeel: {path} can't interrupt periodically here ({error}): use the other \
                 device (device=rtc, device=hpet)"
            ),
        })
    }
}

/// Figures of the interrupts themselves.
#[derive(Default)]
struct InterruptFigures {
    interrupts: AtomicU64,
    /// Uncertainty of the time of the first interrupt, in nanoseconds.
    uncertainty: AtomicU64,
}

impl InterruptFigures {
    #[expect(clippy::cast_precision_loss, reason = "a run has fewer than 2^52 interrupts")]
    fn add_to(&self, rig: &mut Rig<'_>) {
        let (name, interrupts) = (Realfeel::ABOUT.name, self.interrupts.load(Relaxed));
        if interrupts == 0 {
            return;
        }
        rig.add_figure(name, "interrupts", interrupts as f64, "in all");
        rig.add_figure(name, "phase known within", self.uncertainty.load(Relaxed) as f64, "ns");
    }
}
