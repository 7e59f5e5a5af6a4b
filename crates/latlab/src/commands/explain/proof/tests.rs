//! Tests of proofs on a target whose runs fail or are ended.

use super::*;
use latlab_core::plan::Length;
use latlab_core::proof::Remedy;
use latlab_core::record::explained::{Explained, Share};
use latlab_format::progress::Bar;
use latlab_measure::probe::PROBES;
use latlab_part::part;
use latlab_sys::signal::Signals;
use latlab_testing::sample;
use serde_json::json;

/// A target that carries out each plan in this way.
struct Scripted(fn(&Plan, &mut Session<'_>) -> Result<Outcome>);

impl Target for Scripted {
    fn run(&self, plans: &[Prepared], session: &mut Session<'_>) -> Vec<Result<Outcome>> {
        plans.iter().map(|plan| (self.0)(plan.plan(), session)).collect()
    }
}

/// The outcome of an explained run of a FIFO task of priority 10, which a task of higher priority
/// delayed.
fn explained() -> Outcome {
    let mut record = sample::record(1);
    let probe = part::parse("probe", PROBES, "cyclic:policy=fifo,priority=10", &[]);
    record.plan.probes = vec![probe.unwrap()];
    record.plan.loads.clear();
    record.plan.length = Length::Count(1);
    let (total, worst) = (Nanos::from_millis(10), Nanos::from_millis(1));
    let cause = "higher-priority".to_owned();
    let culprit = "rival".to_owned();
    let share = Share { cause, culprit, function: None, count: 10, total, worst };
    record.explained =
        Some(Explained { late: 10, total, causes: vec![share], ..Explained::default() });
    Outcome { record, verdict: None }
}

/// Tries a higher priority on a target. Returns the outcome, and whether the session is ended.
fn proven(target: &Scripted) -> (Outcome, bool) {
    let outcome = explained();
    let plan = Prepared::of(&outcome.record.plan).unwrap();
    let signals = Signals::block().unwrap();
    let (mut view, mut bar) = (live::view(None), Bar::new(&signals));
    let mut session = Session {
        here: |_, _, _| unreachable!("the target is not this machine"),
        signals: &signals,
        watch: view.as_mut(),
        progress: &mut bar,
        keep: None,
        jobs: 1,
        fresh: false,
        cold: false,
        accel: None,
        limit: None,
        ended: false,
    };
    let outcome = prove(outcome, &plan, target, &mut session);
    let ended = session.ended;
    (outcome, ended)
}

fn has_remedy(plan: &Plan) -> bool {
    plan.probes[0].params["priority"] != json!(10)
}

#[test]
fn remedy_that_cannot_be_undone_ends_the_proof() {
    let (outcome, _) = proven(&Scripted(|plan, _| {
        let unrestored = Failure::not_restored(&["ksm (EIO)".to_owned()]);
        unrestored.filter(|_| has_remedy(plan)).map_or(Ok(explained()), Err)
    }));
    let failure = outcome.failure().expect("it failed").to_string();
    assert!(failure.starts_with("trying remedies: not restored: ksm (EIO)"), "{failure}");
}

#[test]
fn remedy_that_cannot_be_undone_is_reported_after_an_interruption() {
    let (outcome, _) = proven(&Scripted(|_, session| {
        session.ended = true;
        Ok(Outcome { verdict: Failure::not_restored(&["ksm (EIO)".to_owned()]), ..explained() })
    }));
    let failure = outcome.failure().expect("it failed").to_string();
    assert!(failure.starts_with("trying remedies: not restored: ksm (EIO)"), "{failure}");
}

#[test]
fn remedy_that_cannot_be_made_is_refused() {
    let (outcome, _) = proven(&Scripted(|plan, _| {
        if has_remedy(plan) { Err(Failure::failed("no load")) } else { Ok(explained()) }
    }));
    assert_eq!(outcome.failure(), None);
    let tried = &outcome.record.proofs.expect("a remedy was tried").tried[0];
    assert_eq!(tried.outcome, proof::Outcome::Refused("no load".to_owned()));
}

/// The outcome of a run with a warning that a part of it was lost.
fn lost(code: WarningCode, text: &str) -> Outcome {
    let mut outcome = explained();
    outcome.record.warnings.push(Warning::new(code, text));
    outcome
}

#[test]
fn remedy_whose_run_lost_a_load_is_refused() {
    let (outcome, _) = proven(&Scripted(|plan, _| {
        let whole = !has_remedy(plan);
        Ok(if whole { explained() } else { lost(WarningCode::LoadEnded, "the load fork ended") })
    }));
    assert_eq!(outcome.failure(), None);
    let tried = &outcome.record.proofs.expect("a remedy was tried").tried[0];
    assert_eq!(tried.outcome, proof::Outcome::Refused("the load fork ended".to_owned()));
    assert_eq!(tried.pairs, 0, "its run is not judged");
}

#[test]
fn remedy_whose_setting_another_program_turns_is_refused() {
    let refusal = |old_values: &[&str]| {
        let (knob, value) = ("timer_migration".to_owned(), "0".to_owned());
        let remedy = Remedy::Knob(Setting { knob, value });
        let candidate = Candidate { remedy, causes: vec!["interrupt".to_owned()] };
        let plan = Prepared::of(&explained().record.plan).unwrap();
        let mut turns = Turns::of(&plan, vec![candidate]);
        for old in old_values {
            let mut run = explained();
            run.record.changes = vec![Change {
                knob: "timer_migration".to_owned(),
                old: (*old).to_owned(),
                new: "0".to_owned(),
                reason: "asked for".to_owned(),
                restored: true,
                unrestored: None,
            }];
            turns.keep(Some(0), Ok(run)).unwrap();
        }
        turns.trials.remove(0).outcome
    };
    assert_eq!(refusal(&["1", "1"]), None);
    let turned =
        "timer_migration was 1 before one run and 0 before another: another program turns it";
    assert_eq!(refusal(&["1", "0"]), Some(proof::Outcome::Refused(turned.to_owned())));
    let there = "timer_migration was 0 before a run set it: another program has turned it";
    assert_eq!(refusal(&["0"]), Some(proof::Outcome::Refused(there.to_owned())));
}

#[test]
fn run_without_remedy_that_lost_a_cpu_ends_the_proof() {
    let (outcome, _) = proven(&Scripted(|plan, _| {
        let whole = has_remedy(plan);
        Ok(if whole { explained() } else { lost(WarningCode::CpuOffline, "CPU 1 went offline") })
    }));
    let failure = outcome.failure().expect("it failed").to_string();
    assert_eq!(failure, "trying remedies: CPU 1 went offline");
    let tried = &outcome.record.proofs.expect("a remedy was tried").tried[0];
    assert!(matches!(&tried.outcome, proof::Outcome::Judged(one) if one.effect == Effect::Unknown));
}

/// A seed of its own distinguishes each turn.
#[test]
fn turns_before_a_failure_are_not_denied() {
    let (outcome, _) = proven(&Scripted(|plan, _| {
        let turn = plan.seed - explained().record.plan.seed + 1;
        if has_remedy(plan) && turn == 7 {
            return Err(Failure::failed("no memory"));
        }
        Ok(explained())
    }));
    assert_eq!(outcome.failure(), None);
    let tried = &outcome.record.proofs.expect("a remedy was tried").tried[0];
    let sentence = tried.sentence(|time| time.to_string());
    assert_eq!(sentence, "FIFO priority 98 failed after 6 pairs of runs: no memory");
}

#[test]
fn end_of_the_turns_ends_the_session() {
    let (outcome, ended) = proven(&Scripted(|_, session| {
        session.ended = true;
        Err(Failure::cut_short("ended"))
    }));
    assert_eq!(outcome.failure().map(|failure| failure.kind), Some(FailureKind::CutShort));
    assert!(ended, "the next target would be measured");
}
