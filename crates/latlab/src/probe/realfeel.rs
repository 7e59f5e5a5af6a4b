//! Interrupts of a clock device: how late they reach the task that reads it.

use super::Probe;
use crate::failure::{Failure, Result, failed};
use crate::needs::{Device, Needs};
use crate::registry::About;
use crate::rig::{Lane, Rhythm, Rig, Scheduling, Span};
use latlab_core::cpulist::CpuList;
use latlab_core::periods;
use latlab_core::record::Warning;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::hpet::{self, Hpet};
use latlab_sys::rtc::{self, Rtc};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Has a clock device interrupt periodically and records how late its reader runs.
///
/// Realfeel (M. Hahn), which Seo et al. 2009 measure figures 5, 6 and 9 with: a task blocks in
/// read(2) on /dev/rtc0 or /dev/hpet. The first series begins when the interrupt was due and ends
/// when that has returned; the second is what Realfeel itself shows, by how much the time between
/// two returns differs from the period, either way; the third is that time.
///
/// When an interrupt was due: the RTC's periodic interrupt has been a timer of the kernel's, on
/// CLOCK_MONOTONIC, since Linux 2.6.39. It is set while the task turns it on, and all that follow
/// are whole periods later: figure "phase known within" says how exactly that is known, and the
/// earliest is taken. The HPET is a device, with a line and a handler, which is a thread on a
/// real-time kernel: its comparator is read after each interrupt for when the next is due, and the
/// end is read from its counter, too.
///
/// There is one such device: only the last of the CPUs is measured on. Periods whose interrupt
/// was lost, or answered together with another, are missed; figure "interrupts" is how many came
/// as read(2) has it. It needs root, or the right to the device and a frequency up to the limit
/// for users. After a run that was killed the RTC keeps the frequency, without interrupting.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Realfeel {
    /// Interrupts a second, 64 to 8192; for the RTC a power of two
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(64..=8192))]
    frequency: u32,
    /// Which device interrupts
    #[arg(long, default_value = "rtc")]
    device: Source,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
enum Source {
    Rtc,
    Hpet,
}

const SPANS: [Span; 3] = [
    ("interrupt due", "read returned"),
    ("period", "time between returns"),
    ("read returned", "next read returned"),
];
const LATE: usize = 0;
const APART: usize = 1;
const BETWEEN: usize = 2;

/// A device that says nothing for so long is broken.
const SILENCE: Nanos = Nanos::from_secs(5);

impl Probe for Realfeel {
    const ABOUT: About = About {
        name: "realfeel",
        summary: "how late a clock device's interrupts reach the task that reads it",
    };

    fn needs(&self) -> Needs {
        match self.device {
            Source::Rtc => Needs { modules: ["rtc-cmos"].into(), ..Needs::default() },
            Source::Hpet => Needs { devices: [Device::Hpet].into(), ..Needs::default() },
        }
    }

    fn check(&self, _: &CpuList) -> Result<()> {
        if self.device == Source::Rtc && !self.frequency.is_power_of_two() {
            let why = "realfeel: the RTC knows powers of two only: give frequency=64, 128, … 8192";
            return Err(Failure::Failed(why.to_owned()));
        }
        match self.device {
            Source::Rtc => self.try_out::<OfRtc>()?,
            Source::Hpet => self.try_out::<OfHpet>()?,
        }
        self.scheduling.check()
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        match self.device {
            Source::Rtc => self.measure::<OfRtc>(rig),
            Source::Hpet => self.measure::<OfHpet>(rig),
        }
    }
}

impl Realfeel {
    fn try_out<D: Interrupts>(&self) -> Result<()> {
        let mut device = D::open().map_err(|error| self.not_opened(&error))?;
        device.start(self.frequency).map(drop).map_err(|error| self.not_started(&error))
    }

    fn measure<D: Interrupts>(&self, rig: &mut Rig<'_>) -> Result<()> {
        let cpu = rig.cpus().iter().last().unwrap_or_default();
        let every = Nanos(1_000_000_000 / u64::from(self.frequency));
        let seen = Seen::default();
        self.warn_of_coarse_timers(every, rig);
        // It outlives the measuring thread: to stop the RTC, the kernel spins until its timer's
        // handler is done, and under PREEMPT_RT a real-time task that it woke would keep that
        // from ever happening.
        let device = Mutex::new(D::open().map_err(|error| self.not_opened(&error))?);
        let done = rig.on_each_of(
            &[CpuList::from_iter([cpu])],
            Self::ABOUT.name,
            &SPANS,
            Rhythm::Driven { every, within: SILENCE },
            &self.scheduling,
            |lane| {
                let mut device = device.lock().unwrap_or_else(PoisonError::into_inner);
                self.feel(&mut *device, lane, &seen)
            },
        );
        seen.show(rig);
        done
    }

    /// The kernel makes the period of its timer no shorter than their resolution.
    fn warn_of_coarse_timers(&self, every: Nanos, rig: &mut Rig<'_>) {
        let resolution = clock::resolution().unwrap_or_default();
        if self.device == Source::Rtc && resolution > every {
            let text = format!(
                "realfeel: the timers of this kernel fire every {resolution}, and the RTC's \
                 interrupts are one of them: those that {} Hz would have between are missed",
                self.frequency
            );
            rig.warnings.push(Warning::new("coarse-timers", text));
        }
    }

    fn feel<D: Interrupts>(
        &self,
        device: &mut D,
        lane: &mut Lane<'_>,
        seen: &Seen,
    ) -> io::Result<()> {
        seen.known_to.store(device.start(self.frequency)?.0, Relaxed);
        let period = device.period();
        // The first return has none before it to be measured from.
        let mut first = device.wait()?;
        while first.is_none() && lane.running() {
            first = device.wait()?;
        }
        let mut before = device.now();
        device.answered(before, first.unwrap_or_default());
        lane.begin_at(before);
        while lane.running() {
            let Some(count) = device.wait()? else { continue };
            let now = device.now();
            let (latency, missed) = device.answered(now, count);
            if let Some(latency) = latency {
                let between = now - before;
                lane.sample(LATE, now, latency);
                lane.sample(APART, now, Nanos(between.0.abs_diff(period.0)));
                lane.sample(BETWEEN, now, between);
            }
            lane.pass(now, missed);
            if lane.counts() {
                seen.interrupts.fetch_add(count, Relaxed);
            }
            before = now;
        }
        Ok(())
    }

    fn not_opened(&self, error: &io::Error) -> Failure {
        let (path, remedy, rights) = match self.device {
            Source::Rtc => (
                rtc::DEVICE,
                "load its driver (modprobe rtc-cmos), or use device=hpet",
                "it is only for root, or for those whom its owner and mode allow (ls -l)",
            ),
            Source::Hpet => (
                hpet::DEVICE,
                "it needs a PC and a kernel that have one (CONFIG_HPET), or use device=rtc",
                "it is only for root, and its counter only where the kernel was not started with \
                 hpet_mmap=0",
            ),
        };
        match error.kind() {
            io::ErrorKind::NotFound => {
                Failure::Unsupported(format!("realfeel: there is no {path}: {remedy}"))
            }
            io::ErrorKind::PermissionDenied => {
                Failure::Unsupported(format!("realfeel: {path} is refused: {rights}"))
            }
            io::ErrorKind::ResourceBusy => Failure::Failed(format!(
                "realfeel: {path} is in use by another program: end that (fuser {path} names it)"
            )),
            _ => failed(&format!("realfeel: {path} can't be opened"), error),
        }
    }

    fn not_started(&self, error: &io::Error) -> Failure {
        let (path, limit) = match self.device {
            Source::Rtc => (rtc::DEVICE, "/sys/class/rtc/rtc0/max_user_freq"),
            Source::Hpet => (hpet::DEVICE, "/proc/sys/dev/hpet/max-user-freq"),
        };
        let hertz = self.frequency;
        Failure::Unsupported(match error.kind() {
            io::ErrorKind::PermissionDenied => format!(
                "realfeel: {path}: users may have no {hertz} Hz: measure as root, write {hertz} \
                 to {limit}, or give a lower frequency"
            ),
            _ => format!(
                "realfeel: {path} can't interrupt periodically here ({error}): use the other \
                 device (device=rtc, device=hpet)"
            ),
        })
    }
}

/// What was seen of the interrupts themselves.
#[derive(Default)]
struct Seen {
    interrupts: AtomicU64,
    known_to: AtomicU64,
}

impl Seen {
    #[expect(clippy::cast_precision_loss, reason = "a run has fewer than 2^52 interrupts")]
    fn show(&self, rig: &mut Rig<'_>) {
        let (name, interrupts) = (Realfeel::ABOUT.name, self.interrupts.load(Relaxed));
        if interrupts == 0 {
            return;
        }
        rig.figure(name, "interrupts", interrupts as f64, "in all");
        rig.figure(name, "phase known within", self.known_to.load(Relaxed) as f64, "ns");
    }
}

/// A device at work, and the clock that its interrupts are due by.
trait Interrupts: Sized + Send {
    fn open() -> io::Result<Self>;
    /// Lets it begin. How exactly it is known when the first interrupt is due.
    fn start(&mut self, hertz: u32) -> io::Result<Nanos>;
    fn period(&self) -> Nanos;
    /// How many came since the last wait; none if a signal ended it.
    fn wait(&self) -> io::Result<Option<u64>>;
    fn now(&mut self) -> Nanos;
    /// How late the answer came at `now` to so many interrupts, and how many periods had none.
    /// No lateness where it was to one that the answer before has come too late for.
    fn answered(&mut self, now: Nanos, count: u64) -> (Option<Nanos>, u64);
}

struct OfRtc {
    rtc: Rtc,
    period: Nanos,
    due: Nanos,
}

impl Interrupts for OfRtc {
    fn open() -> io::Result<OfRtc> {
        Ok(OfRtc { rtc: Rtc::open()?, period: Nanos(0), due: Nanos(0) })
    }

    fn start(&mut self, hertz: u32) -> io::Result<Nanos> {
        self.rtc.set_rate(hertz)?;
        let before = clock::now();
        self.rtc.start()?;
        // As the kernel cuts it off, too.
        self.period = Nanos(1_000_000_000 / u64::from(hertz));
        self.due = before + self.period;
        Ok(clock::now() - before)
    }

    fn period(&self) -> Nanos {
        self.period
    }

    #[inline]
    fn wait(&self) -> io::Result<Option<u64>> {
        self.rtc.wait()
    }

    #[inline]
    fn now(&mut self) -> Nanos {
        clock::now()
    }

    #[inline]
    fn answered(&mut self, now: Nanos, _: u64) -> (Option<Nanos>, u64) {
        let wakeup = periods::judge(self.due, self.period, now);
        if wakeup.early {
            return (None, 0);
        }
        self.due = wakeup.next;
        (Some(wakeup.latency), wakeup.missed)
    }
}

struct OfHpet {
    hpet: Hpet,
    due: Nanos,
}

impl Interrupts for OfHpet {
    fn open() -> io::Result<OfHpet> {
        Ok(OfHpet { hpet: Hpet::open()?, due: Nanos(0) })
    }

    fn start(&mut self, hertz: u32) -> io::Result<Nanos> {
        self.hpet.start(hertz)?;
        self.due = self.hpet.expiry();
        Ok(self.hpet.tick())
    }

    fn period(&self) -> Nanos {
        self.hpet.period()
    }

    #[inline]
    fn wait(&self) -> io::Result<Option<u64>> {
        self.hpet.wait()
    }

    #[inline]
    fn now(&mut self) -> Nanos {
        self.hpet.now()
    }

    #[inline]
    fn answered(&mut self, now: Nanos, count: u64) -> (Option<Nanos>, u64) {
        let due = std::mem::replace(&mut self.due, self.hpet.expiry());
        if now < due { (None, count) } else { (Some(now - due), count.saturating_sub(1)) }
    }
}
