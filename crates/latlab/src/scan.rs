//! Scanning a call: the interrupt moves across it, and each time it is seen how late the task
//! runs that it wakes.

mod consumer;
mod pace;
mod producer;

pub(crate) use consumer::serve;

use crate::call::CALLS;
use crate::failure::{Failure, Result, failed};
use crate::rig::Watch;
use crate::window::Times;
use crate::{driver, registry};
use consumer::{Consumer, Measured};
use latlab_core::histogram::Histogram;
use latlab_core::plan::ScanPlan;
use latlab_core::record::{Counts, Schedule, Series, Warning};
use latlab_core::scan::{Interrupt, Measurement, Offset, Part, Scan, Spread, Survey};
use latlab_core::time::Nanos;
use latlab_sys::sched::{self, Policy};
use latlab_sys::shared::SharedPage;
use latlab_sys::signal::{Event, Signals};
use latlab_sys::{clock, process};
use pace::Pace;
use producer::Producer;

/// Priority of the task that the interrupt wakes.
const PRODUCER: u32 = 90;
/// And of who looks after them, so that a Consumer that never ends is ended.
const WATCHER: u32 = 99;

/// Windows without an interrupt, by which it is known how long the call takes.
const UNDISTURBED: usize = 9;

/// What a scan gave.
pub(crate) struct Scanned {
    pub(crate) scan: Scan,
    /// All measurements as distributions, the disturbed ones included.
    pub(crate) series: Vec<Series>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) interrupted: bool,
    /// What ended it early; what was measured until then is here.
    pub(crate) failure: Option<Failure>,
}

/// Refuses a scan that can't work here.
pub(crate) fn check(plan: &ScanPlan) -> Result<()> {
    registry::build("call", CALLS, &plan.call)?.check()?;
    interrupt(plan).map(drop)
}

/// Scans a call on this CPU.
pub(crate) fn run(
    plan: &ScanPlan,
    cpu: u32,
    signals: &Signals,
    watch: &mut dyn Watch,
) -> Result<Scanned> {
    let interrupt = interrupt(plan)?;
    // Before there is anything that could hang.
    let _watcher = Watcher::begin();
    let mut conduct = Conduct::start(plan, interrupt, cpu, signals, watch)?;
    conduct.watch.begin(&probe(plan), &[]);
    let scanned = conduct.scan();
    conduct.watch.end();
    scanned
}

/// What is to interrupt the call.
fn interrupt(plan: &ScanPlan) -> Result<Interrupt> {
    let driver_needed = registry::build("call", CALLS, &plan.call)?.needs_driver();
    let resolution = clock::resolution().map_err(|e| failed("the resolution of timers", e))?;
    let ticks = resolution > Nanos(1);
    let fitting = match (ticks, driver_needed) {
        (true, _) => Interrupt::Device,
        (false, true) => Interrupt::Driver,
        (false, false) => Interrupt::Timer,
    };
    if driver_needed {
        driver::open()?;
    }
    let why = || {
        format!(
            "timers only fire at ticks here, every {resolution}: they can't interrupt a call at a \
             chosen moment"
        )
    };
    match plan.interrupt.unwrap_or(fitting) {
        Interrupt::Timer | Interrupt::Driver if ticks => Err(Failure::Unsupported(why())),
        Interrupt::Timer => Ok(Interrupt::Timer),
        Interrupt::Driver => driver::open().map(|_| Interrupt::Driver),
        device @ (Interrupt::Device | Interrupt::DeviceThread) => {
            let device = driver::check_device().map(|()| device);
            device.map_err(|failure| if ticks { failure.about(&why()) } else { failure })
        }
    }
}

/// The name under which a record has the measurements.
fn probe(plan: &ScanPlan) -> String {
    format!("scan.{}", plan.call.name)
}

/// Everything at work for a scan.
struct Conduct<'a> {
    plan: &'a ScanPlan,
    interrupt: Interrupt,
    cpu: u32,
    consumer: Consumer,
    producer: Producer,
    signals: &'a Signals,
    watch: &'a mut dyn Watch,
    began: Nanos,
    pace: Pace,
    interrupted: bool,
    measured: Vec<Measurement>,
}

impl<'a> Conduct<'a> {
    fn start(
        plan: &'a ScanPlan,
        interrupt: Interrupt,
        cpu: u32,
        signals: &'a Signals,
        watch: &'a mut dyn Watch,
    ) -> Result<Conduct<'a>> {
        let times = SharedPage::new().map_err(|e| failed("a shared page", e))?;
        let theirs = times.try_clone().map_err(|e| failed("a shared page", e))?;
        let (hear, alarm) = process::pipe().map_err(|e| failed("a pipe", e))?;
        // First who is woken: without the right to its priority nothing else is worth starting.
        let producer = Producer::start(cpu, interrupt, Times::new(theirs), hear)?;
        let consumer = Consumer::start(&plan.call, interrupt, cpu, &Times::new(times), &alarm)?;
        Ok(Conduct {
            plan,
            interrupt,
            cpu,
            consumer,
            producer,
            signals,
            watch,
            began: clock::now(),
            pace: Pace::unknown(),
            interrupted: false,
            measured: Vec::new(),
        })
    }

    fn scan(&mut self) -> Result<Scanned> {
        let (duration, parts) = self.undisturbed()?;
        let mut survey = Survey::new(self.plan, duration.median);
        let (mut warnings, mut failure) = (Vec::new(), None);
        while !self.interrupted {
            let next = survey.next();
            if next.is_empty() {
                break;
            }
            let over = clock::now() - self.began > self.plan.limit;
            if over && !self.measured.is_empty() {
                warnings.push(self.too_short(&survey));
                break;
            }
            self.watch.note(&self.progress(next.len()));
            let next = &next[..next.len().min(self.pace.windows())];
            let windows: Vec<Option<Offset>> = next.iter().copied().map(Some).collect();
            let measured = match self.order(&windows) {
                Err(why) if !self.measured.is_empty() => {
                    failure = Some(why);
                    break;
                }
                measured => measured?,
            };
            for (asked, measured) in next.iter().zip(measured) {
                let measurement = measured.measurement;
                survey.add(*asked, measurement);
                self.measured.push(measurement);
            }
        }
        let findings = survey.findings();
        let mut scan = Scan {
            call: self.plan.call.clone(),
            profile: None,
            cpu: self.cpu,
            interrupt: self.interrupt,
            duration,
            baseline: findings.baseline,
            noise: findings.noise,
            points: findings.points,
            regions: findings.regions,
            parts,
        };
        scan.number(&self.measured, self.producer.before());
        let interrupted = self.interrupted;
        Ok(Scanned { scan, series: self.series(), warnings, interrupted, failure })
    }

    /// How long the call takes when nothing interrupts it, and what it is made of where it says so.
    fn undisturbed(&mut self) -> Result<(Spread, Vec<Part>)> {
        let mut all: Vec<Measured> = Vec::new();
        // A call that takes long is not repeated for as long as everything is to take.
        while all.len() < UNDISTURBED
            && (all.len() < 2 || clock::now() - self.began < Nanos(self.plan.limit.0 / 8))
        {
            let windows = self.pace.windows().min(UNDISTURBED - all.len());
            let measured = self.order(&vec![None; windows])?;
            if self.interrupted {
                return Ok((Spread::default(), Vec::new()));
            }
            all.extend(measured);
        }
        // The first is the coldest.
        let warm = all.split_off(1);
        let durations = warm.iter().map(|one| one.measurement.duration).collect();
        let cleanest = warm.into_iter().min_by_key(|one| one.measurement.duration);
        let parts = cleanest.map_or(Vec::new(), |one| one.parts);
        Ok((Spread::of(durations).unwrap_or_default(), parts))
    }

    fn progress(&self, left: usize) -> String {
        let (name, cpu, done) = (probe(self.plan), self.cpu, self.measured.len());
        format!("{name} on CPU {cpu}: {done} measurements made, {left} wanted now")
    }

    fn too_short(&self, survey: &Survey) -> Warning {
        let text = format!(
            "{}: {} did not suffice; {} moments would have been looked at more closely",
            probe(self.plan),
            self.plan.limit,
            survey.next().len()
        );
        Warning::new("scan-limit", text)
    }

    /// Has these windows measured; none where the user ends it first.
    fn order(&mut self, windows: &[Option<Offset>]) -> Result<Vec<Measured>> {
        let begin = clock::now();
        let patience = self.pace.patience(windows.len());
        self.consumer.ask(windows)?;
        loop {
            if let Some(answers) = self.consumer.answer()? {
                self.pace = Pace::after(windows.len(), clock::now() - begin);
                let measured: Result<_> = answers.into_iter().collect();
                return measured.map_err(|why| self.producer.complaint().unwrap_or(why));
            }
            let waited = clock::now() - begin;
            if waited > patience {
                return Err(Failure::Failed(format!(
                    "{}: the call had not ended after {patience}, so latlab ended it",
                    probe(self.plan)
                )));
            }
            if self.signals.wait(self.watch.pace().min(patience - waited)) == Event::End {
                self.interrupted = true;
                return Ok(Vec::new());
            }
            self.watch.update(clock::now() - self.began, self.plan.limit);
        }
    }

    /// All measurements as distributions.
    fn series(&self) -> Vec<Series> {
        let woken = self.measured.iter().map(|m| m.pdlt);
        let served = self.measured.iter().filter_map(|m| m.irt);
        let mut all = vec![self.distribution("task running", woken)];
        if served.clone().next().is_some() {
            all.push(self.distribution("service routine", served));
        }
        all
    }

    fn distribution(&self, until: &str, latencies: impl Iterator<Item = Nanos>) -> Series {
        let mut histogram = Histogram::new();
        for latency in latencies {
            histogram.record(latency);
        }
        let mut series = Series {
            probe: probe(self.plan),
            span: ("interrupt".to_owned(), until.to_owned()),
            cpu: self.cpu,
            schedule: Schedule {
                policy: "fifo".to_owned(),
                priority: PRODUCER,
                ..Schedule::default()
            },
            counts: Counts { recorded: histogram.count(), ..Counts::default() },
            ..Series::default()
        };
        series.set_histogram(&histogram);
        series
    }
}

/// Gives the calling thread the priority to end what hangs, as long as it exists.
struct Watcher(Option<Policy>);

impl Watcher {
    fn begin() -> Watcher {
        let before = sched::policy().ok();
        // Where this is refused, so were the tasks' own priorities, which said so.
        let _ = sched::set_policy(Policy::Fifo(WATCHER));
        Watcher(before)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            let _ = sched::set_policy(before);
        }
    }
}
