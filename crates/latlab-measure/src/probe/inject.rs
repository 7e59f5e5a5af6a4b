//! Injected delays: late wake-ups of known cause and length.

mod delay;

use super::{Probe, interval};
use crate::rig::{Pacing, Phase, Rig, Sampler, Scheduling, SecondTask};
use delay::{InjectedCause, Injector};
use latlab_core::cpulist::CpuList;
use latlab_core::record::{Warning, WarningCode};
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::needs::Needs;
use latlab_part::part::{About, Describe};
use latlab_sys::clock;
use latlab_sys::driver::{Driver, InterruptSource};
use latlab_sys::mapping::{Mapping, Pages};
use latlab_sys::semaphore::Semaphore;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Measures the time from timer expiry until a thread runs that is delayed by a known cause for a
/// known time.
///
/// It is the test of `latlab explain`: `latlab explain inject:cause=interrupts-off,time=300us
/// --count 23` must name that cause and charge 300 us of each sample to it. As in `cyclic`, one
/// thread per CPU sleeps until a set time. A second task occupies the CPU from shortly before that
/// time until `time` after it: in the kernel through the test driver, or by computing at a higher
/// or equal priority. With `page-fault` the thread itself touches unpopulated memory before it
/// reads the clock; with `mutex` it calls for the mutex of the test driver that the second task, of
/// lower priority, holds for that time; with `none` the second task wakes up and does nothing.
/// Causes in the kernel need the module latlab (kmod/), which the laboratory loads. Causes that
/// start at a set time need high-resolution timers, so a kernel without `highres=off`. On
/// `PREEMPT_RT` softirqs run in preemptible tasks, so that `softirq` delays no thread there.
/// Nothing is subtracted.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Inject {
    /// Cause of the delay
    #[arg(long, default_value = "higher-priority")]
    cause: InjectedCause,
    /// Minimum delay, 1us to 9ms; at most 900us with cause=interrupt
    #[arg(long, default_value = "300us", value_parser = time)]
    time: Nanos,
    /// Time between two wake-ups
    #[arg(long, default_value = "10ms", value_parser = interval)]
    interval: Nanos,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

/// Time from the start of the delay to the wake-up of the thread.
const LEAD: Nanos = Nanos::from_micros(10);
/// Time from the wake-up of the injecting task to the start of the delay.
const AHEAD: Nanos = Nanos::from_micros(200);
/// Part of an interval that is left for everything but the delay, which takes at most half of it.
const REST: Nanos = Nanos::from_millis(1);
/// Memory to touch: more pages than the kernel can populate in a millisecond.
const SIZE: Bytes = Bytes(4 << 20);

/// Request of the measuring thread to the injecting task.
struct DelayRequest {
    sent: Semaphore,
    /// Time at which the measuring thread is due to wake up.
    due: AtomicU64,
}

fn time(text: &str) -> std::result::Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|e| format!("{e}"))?;
    if (1_000..=9_000_000).contains(&time.0) {
        return Ok(time);
    }
    Err(format!("{text} is out of range: a delay is 1us to 9ms"))
}

impl Describe for Inject {
    const ABOUT: About =
        About { name: "inject", summary: "a wake-up delayed by a known cause, to test explain" };
}

impl Probe for Inject {
    fn needs(&self) -> Needs {
        self.cause.needs()
    }

    fn check(&self, _: &CpuList) -> Result<()> {
        self.check_times()?;
        self.scheduling.check_priorities(Self::ABOUT.name, 1)?;
        if self.cause == InjectedCause::HigherPriority && self.scheduling.priority == 99 {
            let why = "cause=higher-priority needs a priority above priority=99: use priority=98 \
                       or less";
            return Err(Failure::failed(format!("inject: {why}")));
        }
        self.cause.check(Self::ABOUT.name)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let late = AtomicU64::new(0);
        let (name, spans) = (Self::ABOUT.name, [("timer expiry", "thread running")]);
        let pacing = Pacing::Periodic(self.interval);
        let done = rig.on_each_cpu(name, &spans, pacing, &self.scheduling, |sampler| {
            let request = DelayRequest { sent: Semaphore::futex(0), due: AtomicU64::new(0) };
            let driver = self.cause.needs().driver.then(Driver::open).transpose();
            let injector = self.cause.injector(driver.map_err(io::Error::other)?);
            let contended = self.cause.takes_mutex().then_some(&injector);
            sampler.with_second_task(
                self.scheduling.policy_with_offset(injector.priority_offset()),
                |task| self.inject(task, &request, &injector, &late),
                |sampler| self.measure(sampler, &request, contended),
            )
        });
        let late = late.into_inner();
        if late > 0 {
            let text = format!(
                "inject: {late} delays were started too late because the machine was busy: some \
                 wake-ups may be late for another cause, or not at all"
            );
            rig.warnings.push(Warning::new(WarningCode::LateDelay, text));
        }
        done
    }
}

impl Inject {
    fn check_times(&self) -> Result<()> {
        let least = Nanos(2 * self.time.0) + REST;
        if self.interval < least {
            return Err(Failure::failed(format!(
                "inject: interval={} is too short for time={}: use interval={least} or more",
                self.interval, self.time
            )));
        }
        let longest = InterruptSource::BUSIEST - Nanos::from_micros(100);
        if self.cause == InjectedCause::Interrupt && self.time > longest {
            return Err(Failure::failed(format!(
                "inject: the handler of cause=interrupt runs for at most {longest}: use \
                 time={longest} or less"
            )));
        }
        Ok(())
    }

    /// Body of the measuring thread. It takes the lock of `contended` after each wake-up.
    fn measure(
        &self,
        sampler: &mut Sampler<'_>,
        request: &DelayRequest,
        contended: Option<&Injector>,
    ) -> io::Result<()> {
        let mut memory = match self.cause {
            InjectedCause::PageFault => Some(UntouchedMemory::new()?),
            _ => None,
        };
        let mut due = sampler.first_due(Phase::Shifted);
        while sampler.running() {
            if memory.is_none() {
                request.send(due)?;
            }
            if !sampler.wait_for(|| clock::wait_until(due))? {
                return Ok(());
            }
            let now = if let Some(memory) = &mut memory {
                memory.touch_until(due + self.time)?
            } else {
                if let Some(lock) = contended {
                    lock.inject(Nanos(0), Nanos(0))?;
                }
                clock::now()
            };
            due = sampler.record_wakeup(due, now);
        }
        Ok(())
    }

    /// Body of the injecting task.
    fn inject(
        &self,
        task: &SecondTask<'_>,
        request: &DelayRequest,
        injector: &Injector,
        late: &AtomicU64,
    ) -> io::Result<()> {
        while task.wait_for(|| request.sent.wait())? {
            let due = Nanos(request.due.load(Relaxed));
            let at = due - LEAD;
            if !task.wait_for(|| clock::wait_until(at - AHEAD))? {
                break;
            }
            let began = injector.inject(at, due + self.time)?;
            // From then on the thread may have been woken on time.
            if began.is_some_and(|began| began > due) {
                late.fetch_add(1, Relaxed);
            }
        }
        Ok(())
    }
}

impl DelayRequest {
    fn send(&self, due: Nanos) -> io::Result<()> {
        self.due.store(due.0, Relaxed);
        self.sent.post()
    }
}

/// Memory without populated pages.
struct UntouchedMemory(Mapping);

impl UntouchedMemory {
    fn new() -> io::Result<UntouchedMemory> {
        let mut memory = Mapping::new(SIZE)?;
        memory.prefer(Pages::Small);
        // All memory is locked, so the pages of a new mapping are already present.
        memory.empty()?;
        Ok(UntouchedMemory(memory))
    }

    /// Touches page after page until `end`. Returns the first reading of the clock at or after it.
    fn touch_until(&mut self, end: Nanos) -> io::Result<Nanos> {
        let mut now = clock::now();
        while now < end {
            self.0.touch_while(|| {
                now = clock::now();
                now < end
            });
            self.0.empty()?;
        }
        Ok(now)
    }
}
