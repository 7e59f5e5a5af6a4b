//! Delays of known cause and length: a thread that is late on purpose.

mod delay;

use super::{Probe, interval};
use crate::failure::{Failure, Result};
use crate::needs::Needs;
use crate::registry::About;
use crate::rig::{Lane, Partner, Phase, Rhythm, Rig, Scheduling};
use delay::{Bringer, Cause};
use latlab_core::cpulist::CpuList;
use latlab_core::record::Warning;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::driver::{Driver, Source};
use latlab_sys::mapping::{Mapping, Pages};
use latlab_sys::semaphore::Semaphore;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Makes a sleeping thread late, by a cause and for a time that are known.
///
/// It is the test of `latlab explain`, for anybody to repeat: `latlab explain
/// inject:cause=interrupts-off,time=300us --count 23` has to name that cause, and to charge 300 us
/// of each sample to it. One thread a CPU sleeps until a set time, as that of `cyclic`. Another one
/// beside it keeps the CPU from a little before that time until `time` after it: in the kernel, by
/// the test driver, or by computing with a priority that is higher, or as high. With `page-fault`
/// the thread itself touches memory that is not there before it looks at the clock; with `none` the
/// other one wakes and does nothing. Causes in the kernel need the module latlab (kmod/), which the
/// laboratory brings along. Those that have to begin at a set time need timers that do, so no
/// kernel with `highres=off`. On `PREEMPT_RT` softirqs belong to tasks and are preempted with them:
/// `softirq` makes nobody late there. Nothing is subtracted.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Inject {
    /// What makes the thread late
    #[arg(long, default_value = "higher-priority")]
    cause: Cause,
    /// How late it is made at least, 1us to 9ms; with cause=interrupt 900us at most
    #[arg(long, default_value = "300us", value_parser = time)]
    time: Nanos,
    /// Time between two wake-ups
    #[arg(long, default_value = "10ms", value_parser = interval)]
    interval: Nanos,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

/// How long before the thread is to wake the delay begins.
const LEAD: Nanos = Nanos::from_micros(10);
/// How long before that the one who brings it about is awake.
const AHEAD: Nanos = Nanos::from_micros(200);
/// What is left of an interval for everything but the delay, which takes no more than half of it.
const REST: Nanos = Nanos::from_millis(1);
/// Memory to be touched: more pages than the kernel finds in a millisecond.
const SIZE: Bytes = Bytes(4 << 20);

/// What the thread that is late tells the one who sees to it.
struct Order {
    given: Semaphore,
    /// When the thread is to wake.
    due: AtomicU64,
}

fn time(text: &str) -> std::result::Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|e| format!("{e}"))?;
    if (1_000..=9_000_000).contains(&time.0) {
        return Ok(time);
    }
    Err(format!("{text} is out of range: a delay is 1us to 9ms"))
}

impl Probe for Inject {
    const ABOUT: About = About {
        name: "inject",
        summary: "a thread that is late by a known cause: the test of explain",
    };

    fn needs(&self) -> Needs {
        self.cause.needs()
    }

    fn check(&self, _: &CpuList) -> Result<()> {
        self.check_times()?;
        self.scheduling.check_ranks(Self::ABOUT.name, 1)?;
        if self.cause == Cause::HigherPriority && self.scheduling.priority == 99 {
            let why = "cause=higher-priority: priority=99 leaves no room above it, where another \
                       task is to stand: use priority=98 or less";
            return Err(Failure::Failed(format!("inject: {why}")));
        }
        self.cause.check(Self::ABOUT.name)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let late = AtomicU64::new(0);
        let (name, spans) = (Self::ABOUT.name, [("timer expiry", "thread running")]);
        let rhythm = Rhythm::Every(self.interval);
        let done = rig.on_each_cpu(name, &spans, rhythm, &self.scheduling, |lane| {
            let order = Order { given: Semaphore::futex(0), due: AtomicU64::new(0) };
            let driver = self.cause.needs().driver.then(Driver::open).transpose();
            let bringer = self.cause.bringer(driver.map_err(io::Error::other)?);
            lane.beside(
                self.scheduling.policy_at(bringer.above()),
                |partner| self.bring_about(partner, &order, &bringer, &late),
                |lane| self.be_late(lane, &order),
            )
        });
        let late = late.into_inner();
        if late > 0 {
            let text = format!(
                "inject: {late} delays were begun too late, as the machine was busy: some threads \
                 may have been late for another cause, or not at all"
            );
            rig.warnings.push(Warning::new("late-delay", text));
        }
        done
    }
}

impl Inject {
    fn check_times(&self) -> Result<()> {
        let least = Nanos(2 * self.time.0) + REST;
        if self.interval < least {
            return Err(Failure::Failed(format!(
                "inject: interval={} is too short for time={}: use interval={least} or more",
                self.interval, self.time
            )));
        }
        let longest = Source::BUSIEST - Nanos::from_micros(100);
        if self.cause == Cause::Interrupt && self.time > longest {
            return Err(Failure::Failed(format!(
                "inject: the handler of cause=interrupt keeps the CPU for {longest} at most: give \
                 time={longest} or less"
            )));
        }
        Ok(())
    }

    fn be_late(&self, lane: &mut Lane<'_>, order: &Order) -> io::Result<()> {
        let mut fresh = match self.cause {
            Cause::PageFault => Some(Fresh::new()?),
            _ => None,
        };
        let mut due = lane.begin(Phase::Shifted);
        while lane.running() {
            if fresh.is_none() {
                order.give(due)?;
            }
            if !lane.wait_for(|| Ok(clock::sleep_until(due)))? {
                return Ok(());
            }
            let now = match &mut fresh {
                Some(fresh) => fresh.touch_until(due + self.time)?,
                None => clock::now(),
            };
            due = lane.wakeup(due, now);
        }
        Ok(())
    }

    /// The partner.
    fn bring_about(
        &self,
        partner: &Partner<'_>,
        order: &Order,
        bringer: &Bringer,
        late: &AtomicU64,
    ) -> io::Result<()> {
        while partner.wait_for(|| order.given.wait())? {
            let due = Nanos(order.due.load(Relaxed));
            let at = due - LEAD;
            if !partner.wait_for(|| Ok(clock::sleep_until(at - AHEAD)))? {
                break;
            }
            if clock::now() > at && !matches!(bringer, Bringer::Nobody) {
                late.fetch_add(1, Relaxed);
            }
            bringer.bring_about(at, due + self.time)?;
        }
        Ok(())
    }
}

impl Order {
    fn give(&self, due: Nanos) -> io::Result<()> {
        self.due.store(due.0, Relaxed);
        self.given.post()
    }
}

/// Memory of which no page has been touched.
struct Fresh(Mapping);

impl Fresh {
    fn new() -> io::Result<Fresh> {
        let mut memory = Mapping::new(SIZE)?;
        memory.prefer(Pages::Small);
        // As it is locked, it has memory already.
        memory.empty()?;
        Ok(Fresh(memory))
    }

    /// Touches page after page, and gives the first reading of the clock that is not before `end`.
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
