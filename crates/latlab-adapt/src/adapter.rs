//! The adapter: observes the machine, lets mechanisms decide, and applies the decisions.

use super::apply::{Applier, Unapplied};
use super::decision_log::DecisionLog;
use super::mailbox::RequestReader;
use super::observation::ObservationSource;
use super::precheck;
use super::reporter::Reporter;
use super::starvation::StarvationDetector;
use crate::mechanism;
use latlab_bpf::wakers::WakerCounters;
use latlab_core::record::Change;
use latlab_core::time::Nanos;
use latlab_mechanism::configuration::Configuration;
use latlab_mechanism::violations::Violations;
use latlab_mechanism::{Adaptation, Decision, Mode, Observation};
use latlab_part::failure::{Failure, Result};
use latlab_sys::claim::{Claim, ClaimError};
use latlab_sys::guard::{GuardError, Restored, Unrestored};
use latlab_sys::root::Root;
use latlab_sys::sched::Policy;
use latlab_sys::{clock, sched};

/// Longest time between two steps.
const INTERVAL: Nanos = Nanos::from_millis(100);
/// Steps may use one part in `SHARE` of a CPU's time, except for steps that can't wait. The pause
/// after a step is never longer than `LONGEST_PAUSE`.
const SHARE: u64 = 10;
const LONGEST_PAUSE: Nanos = Nanos::from_secs(1);

/// The adapter's connections to the daemon. The default has none, as in a run with `--adapt`.
#[derive(Debug, Default)]
pub(super) struct DaemonLinks {
    pub(super) decision_log: DecisionLog,
    pub(super) requests: RequestReader,
    pub(super) starvation: StarvationDetector,
}

/// Active mechanisms on a machine. Dropping it restores everything.
pub(super) struct Adapter {
    adaptation: Adaptation,
    source: ObservationSource,
    applier: Applier,
    decision_log: DecisionLog,
    reporter: Reporter,
    /// Least time until the next step, in proportion to the CPU time of the last one.
    pause: Nanos,
    _claim: Claim,
}

/// Result of an adaptation.
#[derive(Debug, Default)]
pub struct Adapted {
    /// Each change once, however often it was made.
    pub changes: Vec<Change>,
    /// Warnings for a record made meanwhile.
    pub warnings: Vec<String>,
    /// Whether everything was restored.
    pub complete: bool,
}

impl Adapter {
    /// Starts the mechanisms called `names`, and applies their first decisions. Fails where a
    /// mechanism can do nothing on this machine, or another latlab adapts it.
    pub(super) fn start(
        names: &[String],
        configuration: &Configuration,
        links: DaemonLinks,
        root: Root,
        reporter: Reporter,
    ) -> Result<Adapter> {
        let adaptation = mechanism::adaptation(names, configuration)?;
        let claim = match Claim::take(&root, "adapt") {
            // The changes of the other latlab would look like a limitation of the machine.
            Err(taken @ ClaimError::Taken(_)) => return Err(claim_failure(&taken)),
            claim => claim,
        };
        let limitations = precheck::check(&adaptation, names, &root)?;
        let claim = claim.map_err(|e| claim_failure(&e))?;
        let DaemonLinks { mut decision_log, requests, starvation } = links;
        decision_log.open_file()?;
        let source = ObservationSource::start(&adaptation, names, &root)?;
        let mut adapter = Adapter {
            adaptation,
            source: source.with_daemon(requests, starvation),
            applier: Applier::new(root),
            decision_log,
            reporter,
            pause: Nanos(0),
            _claim: claim,
        };
        for limitation in limitations {
            adapter.reporter.warn(limitation);
        }
        match adapter.first_step() {
            Ok(()) => Ok(adapter),
            Err(failure) => Err(adapter.abandon(failure)),
        }
    }

    /// Restores everything after this failure, and adds to it what could not be restored.
    fn abandon(mut self, failure: Failure) -> Failure {
        self.applier.restore();
        let all: Vec<String> = self.applier.unrestored().iter().map(ToString::to_string).collect();
        failure.with_unrestored(Failure::not_restored(&all))
    }

    /// Observes, decides and applies for the first time. Fails at the first decision that could not
    /// be applied and is not [dispensable](Adapter::is_dispensable).
    fn first_step(&mut self) -> Result<()> {
        self.warn_of_problem();
        let seen = self.observe();
        self.log_unfulfillable_wishes(&seen);
        let decisions = self.decide(&seen);
        for unapplied in self.applier.apply(&decisions, &mut self.reporter) {
            if !self.is_dispensable(&unapplied) {
                return Err(guard_failure(&unapplied.error));
            }
            self.give_up(&unapplied);
        }
        Ok(())
    }

    /// Observes, decides and applies once more.
    pub(super) fn step(&mut self) {
        let begin = clock::thread_cpu_time();
        let seen = self.observe();
        self.warn_of_problem();
        let decisions = self.decide(&seen);
        for unapplied in self.applier.apply(&decisions, &mut self.reporter) {
            self.give_up(&unapplied);
        }
        if let Err(error) = self.applier.settle() {
            self.reporter.warn(error.to_string());
        }
        let cost = clock::thread_cpu_time() - begin;
        self.pause = Nanos(cost.0 * SHARE).min(LONGEST_PAUSE);
    }

    /// Waits until there may be something to decide.
    pub(super) fn wait(&mut self) {
        let adaptation = &self.adaptation;
        self.source.wait(INTERVAL, self.pause, |wake| adaptation.knows(wake));
    }

    /// Runs the adapter in the calling thread from now on. It gets a real-time policy if real-time
    /// tasks are observed: ordinary tasks that keep all CPUs busy must not delay its reaction to a
    /// new real-time task.
    pub(super) fn run_in_this_thread(&mut self) {
        if self.source.is_urgent()
            && let Err(error) = sched::set_policy(Policy::Fifo(1))
        {
            self.reporter.warn(format!("real-time tasks may be detected late: {error}"));
        }
        self.decision_log.decide_in_this_thread();
    }

    /// Restores everything.
    pub(super) fn finish(mut self) -> Adapted {
        self.report_violations();
        let changes = self.applier.restore();
        self.reporter.logger().be_patient();
        for Unrestored { knob, why } in self.applier.unrestored() {
            self.reporter.warn(format!("{knob} can't be restored yet: {why}"));
        }
        for Restored { knob, value } in self.applier.restored() {
            self.reporter.log(&format!("{knob} restored to {value}"));
        }
        let complete = self.applier.unrestored().is_empty();
        Adapted { changes, warnings: self.reporter.take_warnings(), complete }
    }

    /// Counts of wake-ups by lower-priority tasks, which another thread may read; none where they
    /// are not watched.
    pub(super) fn meter(&self) -> Option<WakerCounters> {
        self.source.meter()
    }

    pub(super) fn reporter(&self) -> &Reporter {
        &self.reporter
    }

    fn observe(&mut self) -> Observation {
        let adaptation = &self.adaptation;
        self.source.observe(|wake| adaptation.knows(wake))
    }

    fn decide(&mut self, seen: &Observation) -> Vec<Decision> {
        let decisions = self.adaptation.decide(seen);
        if let Some(error) = self.decision_log.record(seen, &decisions, self.adaptation.mode()) {
            self.reporter.log(&error);
        }
        decisions
    }

    /// Leaves the knobs of these decisions alone from now on, and says what happened instead.
    fn give_up(&mut self, unapplied: &Unapplied<'_>) {
        for decision in unapplied.decisions {
            self.adaptation.give_up(decision);
            let why = unapplied.error.to_string();
            if let Some(error) = self.decision_log.record_failure(decision, &why) {
                self.reporter.log(&error);
            }
            self.reporter.warn(match decision {
                Decision::Set { knob, .. } => format!("{knob} left unchanged: {why}"),
                _ => why,
            });
        }
    }

    /// Whether adapting makes sense without these decisions. A single thread matters little, and
    /// knobs for latency are only an addition to the others.
    fn is_dispensable(&self, unapplied: &Unapplied<'_>) -> bool {
        let for_latency = self.adaptation.knobs_for(Mode::Latency);
        let thread_refused = matches!(unapplied.error, GuardError::Refused(..));
        unapplied.decisions.iter().all(|decision| {
            (decision.thread().is_some() && thread_refused)
                || for_latency.contains(&decision.knob())
        })
    }

    fn log_unfulfillable_wishes(&self, seen: &Observation) {
        for (mechanism, knob, wish) in self.adaptation.wishes(&seen.knobs) {
            if let Err(why) = wish {
                let (name, value) = (knob.name, knob.value);
                self.reporter.log(&format!("{mechanism}: {name} stays {value}: {why}"));
            }
        }
    }

    fn warn_of_problem(&mut self) {
        if let Some(problem) = self.source.problem() {
            self.reporter.warn(problem);
        }
    }

    fn report_violations(&self) {
        let violations = self.source.meter().map(|meter| meter.violations());
        if let Some(Violations { by_interrupts, by_others, .. }) = violations {
            self.reporter.log(&format!(
                "wake-ups of real-time tasks by lower-priority tasks (rtapp/sleep violations): \
                 {by_interrupts} from IRQ threads, {by_others} from others"
            ));
        }
    }
}

fn claim_failure(error: &ClaimError) -> Failure {
    match error {
        ClaimError::Taken(pid) => Failure::failed(format!(
            "another latlab (process {pid}) adapts this machine: end that one first"
        )),
        ClaimError::Failed(..) => {
            Failure::unsupported(format!("{error}: run latlab as root to adapt a machine"))
        }
    }
}

fn guard_failure(error: &GuardError) -> Failure {
    match error {
        GuardError::Refused(..) | GuardError::Taken { .. } => Failure::failed(error.to_string()),
        _ => Failure::unsupported(error.to_string()),
    }
}
