//! A real-time task: it reads a clock that interrupts periodically.

use super::{Bench, Load, Place};
use crate::failure::{Failure, Result, failed};
use crate::needs::Needs;
use crate::registry::About;
use crate::rig::Scheduling;
use latlab_sys::rtc::{DEVICE, Rtc};
use latlab_sys::sched::{self, Policy};
use std::io;

/// Blocks in read(2) on the RTC, as a task of FIFO that each of its interrupts wakes.
///
/// Realfeel (M. Hahn), which Seo et al. 2009 run with real-time priority beside the benchmarks of
/// figures 7 and 8: what throughput costs is measured while there is somebody to be served. How
/// late such a reader runs is what the probe realfeel records. The RTC has one reader at a time:
/// beside this the probe takes device=hpet. It needs root, or the right to the device and a
/// frequency up to the limit for users. Its work is counted in interrupts.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Realfeel {
    /// Interrupts a second, a power of two from 64 to 8192
    #[arg(long, default_value_t = 256, value_parser = frequency)]
    frequency: u32,
    /// The reader's real-time priority under fifo
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=99))]
    priority: u32,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

fn frequency(text: &str) -> std::result::Result<u32, String> {
    let known = |hertz: &u32| (64..=8192).contains(hertz) && hertz.is_power_of_two();
    let why = || format!("the RTC knows powers of two only, here 64, 128, … 8192, and not {text}");
    text.parse().ok().filter(known).ok_or_else(why)
}

impl Load for Realfeel {
    const ABOUT: About =
        About { name: "realfeel", summary: "a real-time task that reads a clock's interrupts" };
    const UNIT: &'static str = "interrupts";
    const ONE_WORKER: bool = true;

    fn place(&self) -> &Place {
        &self.place
    }

    fn needs(&self) -> Needs {
        Needs { modules: ["rtc-cmos"].into(), ..Needs::default() }
    }

    fn check(&self, _: u64) -> Result<()> {
        let (policy, priority) = ("fifo".to_owned(), self.priority);
        Scheduling { policy, priority, slack: None, runtime: None }
            .check_ranks(Self::ABOUT.name, 0)?;
        let rtc = Rtc::open().map_err(|error| not_opened(&error))?;
        rtc.set_rate(self.frequency).map_err(|error| {
            let hertz = self.frequency;
            Failure::Unsupported(format!(
                "realfeel: {DEVICE} is not to interrupt {hertz} times a second here ({error}): do \
                 it as root, or give a lower frequency"
            ))
        })
    }

    fn work(&self, bench: &Bench) -> io::Result<()> {
        let rtc = Rtc::open()?;
        rtc.set_rate(self.frequency)?;
        sched::set_policy(Policy::Fifo(self.priority))?;
        rtc.start()?;
        bench.ready();
        while bench.running() {
            bench.done(rtc.wait()?.unwrap_or_default());
        }
        // To stop the RTC, the kernel spins until its timer's handler is done, and under PREEMPT_RT
        // a real-time task that it woke would keep that from ever happening.
        sched::set_policy(Policy::Other)
    }
}

fn not_opened(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::Unsupported(format!(
            "realfeel: there is no {DEVICE}: load its driver (modprobe rtc-cmos)"
        )),
        io::ErrorKind::PermissionDenied => Failure::Unsupported(format!(
            "realfeel: {DEVICE} is refused: it is only for root, or for those whom its owner and \
             mode allow (ls -l)"
        )),
        io::ErrorKind::ResourceBusy => Failure::Failed(format!(
            "realfeel: {DEVICE} is in use by another program: end that (fuser {DEVICE} names it)"
        )),
        _ => failed(&format!("realfeel: {DEVICE} can't be opened"), error),
    }
}
