//! Real-time load: a SCHED_FIFO task that waits for the periodic interrupt of the RTC.

use super::{Load, LoadContext, Place};
use crate::rig::Scheduling;
use latlab_part::failure::{Failure, Result, failed};
use latlab_part::part::needs::{Device, Needs};
use latlab_part::part::{About, Describe};
use latlab_sys::rtc::{DEVICE, Rtc};
use latlab_sys::sched::{self, Policy};
use std::io;

/// Blocks in read(2) on the RTC, as a SCHED_FIFO task that is woken by each of its interrupts.
///
/// Realfeel (M. Hahn), which Seo et al. 2009 run with real-time priority together with the
/// benchmarks of figures 7 and 8: throughput is measured while a real-time task runs. The latency
/// of such a reader is measured by the probe realfeel. The RTC has one reader at a time: together
/// with this load the probe needs device=hpet. Needs root, or access to the device and a frequency
/// up to the limit for users. Counts interrupts.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Realfeel {
    /// Interrupts per second, a power of two from 64 to 8192
    #[arg(long, default_value_t = 256, value_parser = frequency)]
    frequency: u32,
    /// SCHED_FIFO priority of the reader
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=99))]
    priority: u32,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

fn frequency(text: &str) -> std::result::Result<u32, String> {
    let known = |hertz: &u32| (64..=8192).contains(hertz) && hertz.is_power_of_two();
    let why = || format!("{text}: the RTC has powers of two only, here 64, 128, … 8192");
    text.parse().ok().filter(known).ok_or_else(why)
}

impl Describe for Realfeel {
    const ABOUT: About = About {
        name: "realfeel",
        summary: "a real-time task that waits for interrupts of the RTC",
    };
}

impl Load for Realfeel {
    fn unit(&self) -> &'static str {
        "interrupts"
    }

    fn one_worker(&self) -> bool {
        true
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn needs(&self) -> Needs {
        Needs { devices: [Device::Rtc].into(), ..Needs::default() }
    }

    fn check(&self, _: u64) -> Result<()> {
        let (policy, priority) = ("fifo".to_owned(), self.priority);
        Scheduling { policy, priority, slack: None, runtime: None }
            .check_priorities(Self::ABOUT.name, 0)?;
        let rtc = Rtc::open().map_err(|error| not_opened(&error))?;
        rtc.set_rate(self.frequency).map_err(|error| {
            let hertz = self.frequency;
            Failure::unsupported(format!(
                "realfeel: {DEVICE} can't be set to {hertz} Hz ({error}): run latlab as root, or \
                 choose a lower frequency"
            ))
        })
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        let rtc = Rtc::open()?;
        rtc.set_rate(self.frequency)?;
        sched::set_policy(Policy::Fifo(self.priority))?;
        rtc.start()?;
        context.ready();
        while context.running() {
            context.done(rtc.wait()?.unwrap_or_default());
        }
        // To stop the RTC, the kernel spins until the handler of its timer has finished. Under
        // PREEMPT_RT a real-time task would keep the handler from finishing.
        sched::set_policy(Policy::Other)
    }
}

fn not_opened(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::unsupported(format!(
            "realfeel: there is no {DEVICE}: load its driver (on a PC: modprobe rtc-cmos)"
        )),
        io::ErrorKind::PermissionDenied => Failure::unsupported(format!(
            "realfeel: no permission for {DEVICE}: run latlab as root, or change the owner or the \
             mode of the device"
        )),
        io::ErrorKind::ResourceBusy => Failure::failed(format!(
            "realfeel: {DEVICE} is in use by another program: end it (fuser {DEVICE} names it)"
        )),
        _ => failed(&format!("realfeel: {DEVICE} can't be opened"), error),
    }
}
