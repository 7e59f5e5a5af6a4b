//! Scanning a call: it is interrupted at one offset after another, and each time the latency of the
//! task that the interrupt wakes is measured.

mod consumer;
mod pace;
mod producer;

pub use consumer::serve;

use crate::call::Call;
use crate::call::window::Times;
use consumer::{Consumer, Measured};
use latlab_core::histogram::Histogram;
use latlab_core::plan::ScanPlan;
use latlab_core::record::{Counts, Schedule, Series, Warning, WarningCode};
use latlab_core::scan::{Interrupt, LoopSection, Measurement, Offset, Scan, Spread, Survey};
use latlab_core::time::Nanos;
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_part::part::driver;
use latlab_part::progress::Watch;
use latlab_sys::sched::{self, Policy};
use latlab_sys::shared::SharedPage;
use latlab_sys::signal::{Event, Signals};
use latlab_sys::{clock, process};
use pace::Pace;
use producer::Producer;

/// Priority of the Producer, the task that the interrupt wakes.
const PRODUCER: u32 = 90;
/// Priority of the thread that controls the scan, so that it can end a Consumer that hangs.
const CONTROL: u32 = 99;

/// Number of windows without an interrupt, which show how long the call takes.
const UNDISTURBED: usize = 9;

/// Result of a scan.
pub struct Scanned {
    /// What was measured.
    pub scan: Scan,
    /// All measurements as distributions, disturbed ones included.
    pub series: Vec<Series>,
    /// What limits its validity.
    pub warnings: Vec<Warning>,
    /// Whether it was ended before its time.
    pub interrupted: bool,
    /// The failure that ended the scan early; everything measured until then is kept.
    pub failure: Option<Failure>,
}

/// Refuses a scan that can't work here.
pub fn check(plan: &ScanPlan, call: &dyn Call) -> Result<()> {
    call.check()?;
    interrupt(plan, call).map(drop)
}

/// Scans a call on `cpu`.
pub fn run(
    plan: &ScanPlan,
    call: &dyn Call,
    cpu: u32,
    signals: &Signals,
    watch: &mut dyn Watch,
) -> Result<Scanned> {
    let interrupt = interrupt(plan, call)?;
    // Before anything that could hang.
    let _priority = ControlPriority::set();
    let mut session = ScanRun::start(plan, interrupt, cpu, signals, watch)?;
    session.watch.begin(&series_name(plan), &[]);
    let scanned = session.scan();
    session.watch.end();
    scanned
}

/// The interrupt for a plan. Refuses one that can't interrupt a call at a chosen moment here.
fn interrupt(plan: &ScanPlan, call: &dyn Call) -> Result<Interrupt> {
    let driver_needed = call.needs_driver();
    let resolution = clock::resolution();
    let low_resolution = resolution > Nanos(1);
    let default = match (low_resolution, driver_needed) {
        (true, _) => Interrupt::Device,
        (false, true) => Interrupt::Driver,
        (false, false) => Interrupt::Timer,
    };
    if driver_needed {
        driver::open()?;
    }
    let too_coarse = || {
        format!(
            "timers fire at ticks only, every {resolution}: they can't interrupt a call at a chosen \
             moment"
        )
    };
    match plan.interrupt.unwrap_or(default) {
        Interrupt::Timer | Interrupt::Driver if low_resolution => {
            Err(Failure::unsupported(too_coarse()))
        }
        Interrupt::Timer => Ok(Interrupt::Timer),
        Interrupt::Driver => driver::open().map(|_| Interrupt::Driver),
        device @ (Interrupt::Device | Interrupt::DeviceThread) => {
            let device = driver::check_device().map(|()| device);
            device.map_err(
                |failure| if low_resolution { failure.about(&too_coarse()) } else { failure },
            )
        }
    }
}

/// Name of the series in a record.
fn series_name(plan: &ScanPlan) -> String {
    format!("scan.{}", plan.call.name)
}

/// A scan in progress.
struct ScanRun<'a> {
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

impl<'a> ScanRun<'a> {
    fn start(
        plan: &'a ScanPlan,
        interrupt: Interrupt,
        cpu: u32,
        signals: &'a Signals,
        watch: &'a mut dyn Watch,
    ) -> Result<ScanRun<'a>> {
        let times = SharedPage::new().context("a shared page")?;
        let shared = times.try_clone().context("a shared page")?;
        let (alarms, alarm) = process::pipe().context("a pipe")?;
        // The Producer first: without permission for its priority the scan can't start.
        let producer = Producer::start(cpu, interrupt, Times::new(shared), alarms)?;
        let consumer = Consumer::start(&plan.call, interrupt, cpu, &Times::new(times), &alarm)?;
        Ok(ScanRun {
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
            let timed_out = clock::now() - self.began > self.plan.limit;
            if timed_out && !self.measured.is_empty() {
                warnings.push(self.limit_warning(&survey));
                break;
            }
            self.watch.note(&self.progress(next.len()));
            let next = &next[..next.len().min(self.pace.windows())];
            let windows: Vec<Option<Offset>> = next.iter().copied().map(Some).collect();
            let measured = match self.measure(&windows) {
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
        let scan = self.result(&survey, duration, parts);
        let interrupted = self.interrupted;
        Ok(Scanned { scan, series: self.series(), warnings, interrupted, failure })
    }

    /// The scan as a record has it.
    fn result(&self, survey: &Survey, duration: Spread, parts: Vec<LoopSection>) -> Scan {
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
            sections: findings.sections,
            parts,
        };
        scan.index_peaks(&self.measured, self.producer.before());
        scan
    }

    /// Measures how long the call takes without an interrupt, and its parts if it reports them.
    fn undisturbed(&mut self) -> Result<(Spread, Vec<LoopSection>)> {
        let mut all: Vec<Measured> = Vec::new();
        // Repetitions of a long call use at most an eighth of the time limit.
        while all.len() < UNDISTURBED
            && (all.len() < 2 || clock::now() - self.began < Nanos(self.plan.limit.0 / 8))
        {
            let windows = self.pace.windows().min(UNDISTURBED - all.len());
            let measured = self.measure(&vec![None; windows])?;
            if self.interrupted {
                return Ok((Spread::default(), Vec::new()));
            }
            all.extend(measured);
        }
        // The first one runs with cold caches.
        let warm = all.split_off(1);
        let durations = warm.iter().map(|one| one.measurement.duration).collect();
        let cleanest = warm.into_iter().min_by_key(|one| one.measurement.duration);
        let parts = cleanest.map_or(Vec::new(), |one| one.parts);
        Ok((Spread::of(durations).unwrap_or_default(), parts))
    }

    fn progress(&self, left: usize) -> String {
        let (name, cpu, done) = (series_name(self.plan), self.cpu, self.measured.len());
        format!("{name} on CPU {cpu}: {done} measurements done, {left} requested")
    }

    fn limit_warning(&self, survey: &Survey) -> Warning {
        let text = format!(
            "{}: time limit of {} reached: {} points not measured, edges may not be refined to \
             --resolution",
            series_name(self.plan),
            self.plan.limit,
            survey.next().len()
        );
        Warning::new(WarningCode::ScanLimit, text)
    }

    /// Measures these windows. Returns nothing if the user ends the scan.
    fn measure(&mut self, windows: &[Option<Offset>]) -> Result<Vec<Measured>> {
        let begin = clock::now();
        let patience = self.pace.patience(windows.len());
        self.consumer.request(windows)?;
        loop {
            if let Some(answers) = self.consumer.answer()? {
                self.pace = Pace::after(windows.len(), clock::now() - begin);
                let measured: Result<_> = answers.into_iter().collect();
                return measured.map_err(|why| self.producer.failure().unwrap_or(why));
            }
            let waited = clock::now() - begin;
            if waited > patience {
                return Err(Failure::failed(format!(
                    "{}: the call did not end within {patience} and was killed",
                    series_name(self.plan)
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
            probe: series_name(self.plan),
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

/// Priority of the calling thread that lets it end tasks that hang; restored when dropped.
struct ControlPriority(Option<Policy>);

impl ControlPriority {
    fn set() -> ControlPriority {
        let before = sched::policy().ok();
        // If this is refused, so are the priorities of the tasks, which report it.
        let _ = sched::set_policy(Policy::Fifo(CONTROL));
        ControlPriority(before)
    }
}

impl Drop for ControlPriority {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            let _ = sched::set_policy(before);
        }
    }
}
