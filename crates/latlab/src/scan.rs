//! Scanning a call: the interrupt moves across it, and each time it is seen how late the task
//! runs that it wakes.

mod consumer;
mod producer;

pub(crate) use consumer::serve;

use crate::call::CALLS;
use crate::failure::{Failure, Result, failed};
use crate::registry;
use crate::rig::Watch;
use crate::window::Times;
use consumer::Consumer;
use latlab_core::histogram::Histogram;
use latlab_core::record::{Counts, Schedule, Series, Warning};
use latlab_core::scan::{Interrupt, Measurement, Offset, Scan, ScanPlan, Spread, Survey};
use latlab_core::time::Nanos;
use latlab_sys::sched::{self, Policy};
use latlab_sys::shared::SharedPage;
use latlab_sys::signal::{Event, Signals};
use latlab_sys::{clock, process};

/// Priorities of the two tasks: that of the interrupt's own task has to be the higher one.
const PRODUCER: u32 = 90;
const CONSUMER: u32 = 50;
/// And of who looks after them, so that a Consumer that never ends is ended.
const WATCHER: u32 = 99;

/// Windows that are ordered at a time: so often a request to end is heard.
const ORDER: usize = 16;
/// Windows without an interrupt, by which it is known how long the call takes.
const UNDISTURBED: usize = 9;

/// What a scan gave.
pub(crate) struct Scanned {
    pub(crate) scan: Scan,
    /// All measurements as distributions, the disturbed ones included.
    pub(crate) series: Vec<Series>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) interrupted: bool,
}

/// Scans a call on this CPU.
pub(crate) fn run(
    plan: &ScanPlan,
    cpu: u32,
    signals: &Signals,
    watch: &mut dyn Watch,
) -> Result<Scanned> {
    registry::build("call", CALLS, &plan.call)?.check()?;
    let interrupt = interrupt(plan)?;
    let mut conduct = Conduct::start(plan, cpu, signals, watch)?;
    let _watcher = Watcher::begin();
    conduct.watch.begin(&probe(plan), &[], plan.limit);
    let scanned = conduct.scan(interrupt);
    conduct.watch.end();
    scanned
}

/// What is to interrupt the call.
fn interrupt(plan: &ScanPlan) -> Result<Interrupt> {
    let resolution = clock::resolution().map_err(|e| failed("the resolution of timers", e))?;
    match plan.interrupt.unwrap_or(Interrupt::Timer) {
        Interrupt::Timer if resolution > Nanos(1) => Err(Failure::Unsupported(format!(
            "timers only fire at ticks here, every {resolution}: they can't interrupt a call at a \
             chosen moment"
        ))),
        interrupt => Ok(interrupt),
    }
}

/// The name under which a record has the measurements.
fn probe(plan: &ScanPlan) -> String {
    format!("scan.{}", plan.call.name)
}

/// Everything at work for a scan.
struct Conduct<'a> {
    plan: &'a ScanPlan,
    cpu: u32,
    consumer: Consumer,
    signals: &'a Signals,
    watch: &'a mut dyn Watch,
    began: Nanos,
    interrupted: bool,
    measured: Vec<Measurement>,
}

impl<'a> Conduct<'a> {
    fn start(
        plan: &'a ScanPlan,
        cpu: u32,
        signals: &'a Signals,
        watch: &'a mut dyn Watch,
    ) -> Result<Conduct<'a>> {
        let page = SharedPage::new().map_err(|e| failed("a shared page", e))?;
        let theirs = page.try_clone().map_err(|e| failed("a shared page", e))?;
        let (hear, alarm) = process::pipe().map_err(|e| failed("a pipe", e))?;
        // First who is woken: without the right to its priority nothing else is worth starting.
        producer::start(cpu, Times::new(theirs), hear)?;
        let consumer = Consumer::start(&plan.call, cpu, &Times::new(page), &alarm)?;
        let (began, interrupted) = (clock::now(), false);
        let measured = Vec::new();
        Ok(Conduct { plan, cpu, consumer, signals, watch, began, interrupted, measured })
    }

    fn scan(&mut self, interrupt: Interrupt) -> Result<Scanned> {
        let undisturbed = self.order(&[None; UNDISTURBED])?;
        // The first is the coldest.
        let durations = undisturbed.iter().skip(1).map(|m| m.duration).collect();
        let Some(duration) = Spread::of(durations) else {
            return Err(Failure::Failed(format!("{}: ended too early", probe(self.plan))));
        };
        let mut survey = Survey::new(self.plan, duration.median);
        let mut warnings = Vec::new();
        while !self.interrupted {
            let next = survey.next();
            if next.is_empty() {
                break;
            }
            if clock::now() - self.began > self.plan.limit {
                warnings.push(self.too_short(&survey));
                break;
            }
            let next = &next[..next.len().min(ORDER)];
            let windows: Vec<Option<Offset>> = next.iter().copied().map(Some).collect();
            for (asked, measurement) in next.iter().zip(self.order(&windows)?) {
                survey.add(*asked, measurement);
                self.measured.push(measurement);
            }
        }
        let findings = survey.findings();
        let scan = Scan {
            call: self.plan.call.clone(),
            profile: None,
            cpu: self.cpu,
            interrupt,
            duration,
            baseline: findings.baseline,
            noise: findings.noise,
            points: findings.points,
            regions: findings.regions,
        };
        let interrupted = self.interrupted;
        Ok(Scanned { scan, series: self.series(), warnings, interrupted })
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
    fn order(&mut self, windows: &[Option<Offset>]) -> Result<Vec<Measurement>> {
        let deadline = clock::now() + PATIENCE;
        self.consumer.ask(windows)?;
        loop {
            if let Some(answers) = self.consumer.answer()? {
                return answers.into_iter().collect();
            }
            let now = clock::now();
            if now > deadline {
                return Err(Failure::Failed(format!(
                    "{}: the call did not end within {PATIENCE}",
                    probe(self.plan)
                )));
            }
            if self.signals.wait(self.watch.pace().min(deadline - now)) == Event::End {
                self.interrupted = true;
                return Ok(Vec::new());
            }
            self.watch.update(clock::now() - self.began);
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

/// How long a Consumer may take for what was ordered before it counts as hung.
const PATIENCE: Nanos = Nanos::from_secs(20);

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
