//! Tests of bounds: simulated wake-ups among the observed sections and interrupts never exceed them.

use super::trace::Trace;
use super::{Interrupt, NoObservation, Observation, Section, Term, compose};
use crate::path::Location;
use crate::record::Record;
use crate::time::Nanos;
use proptest::prelude::*;
use std::collections::HashMap;

/// All sections of one run, and its interrupts as (vector, begin, length).
#[derive(Clone, Debug)]
struct Run {
    sections: HashMap<Term, Vec<u64>>,
    interrupts: Vec<(u8, u64, u64)>,
    timer: u64,
}

impl Run {
    fn observation(&self) -> Observation {
        let section = |(term, lengths): (&Term, &Vec<u64>)| {
            let ns = Nanos(*lengths.iter().max()?);
            Some((*term, Section { ns, ..Section::default() }))
        };
        let interrupt = |(vector, begin, length): &(u8, u64, u64)| Interrupt {
            name: vector.to_string(),
            begin: Nanos(*begin),
            end: Nanos(begin + length),
            own: Nanos(*length),
        };
        Observation {
            sections: self.sections.iter().filter_map(section).collect(),
            interrupts: self.interrupts.iter().map(interrupt).collect(),
            timer: Nanos(self.timer),
            ..Observation::default()
        }
    }
}

fn runs() -> impl Strategy<Value = Vec<Run>> {
    let lengths = || prop::collection::vec(1u64..3_000, 1..6);
    let sections = prop::array::uniform5(lengths());
    let sections = sections.prop_map(|lengths| Term::ALL.into_iter().zip(lengths).collect());
    // Gaps and lengths: interrupts of one CPU do not overlap.
    let interrupts = prop::collection::vec((0u8..3, 100u64..4_000, 1u64..900), 0..30);
    let interrupts = interrupts.prop_map(|parts| {
        let mut at = 0;
        let place = |(vector, gap, length): (u8, u64, u64)| {
            let begin = at + gap;
            at = begin + length;
            (vector, begin, length)
        };
        parts.into_iter().map(place).collect()
    });
    let run = (sections, interrupts, 0u64..200).prop_map(|(sections, interrupts, timer)| Run {
        sections,
        interrupts,
        timer,
    });
    prop::collection::vec(run, 1..4)
}

/// The choices of one wake-up, as large numbers that select by their remainders.
#[derive(Clone, Debug)]
struct Choices {
    run: usize,
    /// Which section of each term it meets, and of which run.
    sections: [usize; 5],
    /// Whether it meets the tail of a switch instead of another section, and how far in.
    tail: bool,
    into: u64,
    /// When it is due in the run whose interrupts it meets.
    due: u64,
    timer: usize,
}

fn choices() -> impl Strategy<Value = Choices> {
    let sections = prop::array::uniform5(any::<usize>());
    let (tail, into, due) = (any::<bool>(), any::<u64>(), 0u64..90_000);
    (any::<usize>(), sections, tail, into, due, any::<usize>()).prop_map(
        |(run, sections, tail, into, due, timer)| Choices { run, sections, tail, into, due, timer },
    )
}

/// The latency of a wake-up that meets observed sections in some order, and the interrupts of one
/// run from some moment on.
fn simulate(runs: &[Run], chosen: &Choices) -> u64 {
    let all = |term: Term| -> Vec<u64> {
        runs.iter().flat_map(|run| run.sections[&term].iter().copied()).collect()
    };
    let pick = |term: Term, choice: usize| {
        let lengths = all(term);
        lengths[choice % lengths.len()]
    };
    let first = if chosen.tail { Term::St } else { Term::Poid };
    let met = pick(first, chosen.sections[0]);
    let rest = [Term::Paie, Term::Psd, Term::Return];
    let rest = rest.iter().zip(&chosen.sections[1..]).map(|(term, choice)| pick(*term, *choice));
    let mut work = met - chosen.into % met + rest.sum::<u64>();

    let interrupts = &runs[chosen.run % runs.len()].interrupts;
    let mut now = chosen.due;
    let mut waiting =
        interrupts.iter().filter(|(_, begin, length)| begin + length >= chosen.due).peekable();
    loop {
        // Interrupts go first; each begins when it did in its run, or when the one before is over.
        if let Some((.., length)) = waiting.next_if(|(_, begin, _)| *begin <= now) {
            now += length;
            continue;
        }
        let until = waiting.peek().map_or(u64::MAX, |(_, begin, _)| *begin);
        if now + work <= until {
            break;
        }
        work -= until - now;
        now = until;
    }
    let timers: Vec<u64> = runs.iter().map(|run| run.timer).collect();
    now + work - chosen.due + timers[chosen.timer % timers.len()]
}

proptest! {
    #[test]
    fn bound_exceeds_every_composition_of_observed_sections(
        runs in runs(),
        chosen in prop::collection::vec(choices(), 1..50),
    ) {
        let observed: Vec<Observation> = runs.iter().map(Run::observation).collect();
        // Interrupts without pause leave no bound.
        if let Some(bound) = compose(&observed) {
            for chosen in chosen {
                let latency = simulate(&runs, &chosen);
                prop_assert!(latency <= bound.ns.0, "{latency} > {}: {chosen:?}", bound.ns);
            }
        }
    }

    #[test]
    fn bound_of_more_runs_is_not_shorter(runs in runs(), other in runs()) {
        let observed = |runs: &[Run]| runs.iter().map(Run::observation).collect::<Vec<_>>();
        let (few, all) = (observed(&runs), observed(&[runs, other].concat()));
        if let (Some(few), Some(all)) = (compose(&few), compose(&all)) {
            prop_assert!(few.ns <= all.ns);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(longest|begin|interrupt|wake|apart|poid|st|[ ,0-9a-f]|\n){0,80}") {
        let _ = Trace::read(&text);
    }
}

fn run(sections: &[(Term, u64)], interrupts: &[(u8, u64, u64)]) -> Observation {
    let sections = sections.iter().map(|(term, length)| (*term, vec![*length])).collect();
    Run { sections, interrupts: interrupts.to_vec(), timer: 7 }.observation()
}

#[test]
fn bound_is_sum_of_terms_and_of_interrupts_that_met() {
    let sections = [
        (Term::Poid, 500),
        (Term::St, 300),
        (Term::Paie, 10),
        (Term::Psd, 200),
        (Term::Return, 90),
    ];
    // Two of vector 1 overlap a window of 990 ns, and one of vector 2; the longest of vector 1 comes alone.
    let interrupts = [(1, 0, 50), (1, 900, 60), (2, 5_000, 70), (1, 9_000, 100)];
    let bound = compose(&[run(&sections, &interrupts)]).expect("there is a run");
    assert_eq!(bound.ns, Nanos(7 + 500 + 10 + 200 + 90 + 110 + 70));
    let met = bound.interrupts.iter().map(|one| (one.name.as_str(), one.times, one.ns.0));
    assert_eq!(met.collect::<Vec<_>>(), [("1", 2, 100), ("2", 1, 70)]);
    assert!(bound.counts(Term::Poid) && !bound.counts(Term::St));
}

#[test]
fn longest_section_is_that_of_any_run() {
    let [a, b] = [[(Term::Poid, 100), (Term::St, 400)], [(Term::Poid, 300), (Term::St, 200)]];
    let bound = compose(&[run(&a, &[]), run(&b, &[])]).expect("there are runs");
    assert_eq!(bound.ns, Nanos(7 + 400));
    assert_eq!(bound.section(Term::Poid).map(|section| section.ns), Some(Nanos(300)));
}

#[test]
fn interrupts_without_pause_leave_no_bound() {
    let interrupts: Vec<_> = (0..2_000).map(|n| (1, n * 1_000_000, 999_999)).collect();
    let observed = run(&[(Term::Poid, 1_000)], &interrupts);
    assert_eq!(compose(&[observed]), None);
    assert_eq!(compose(&[]), None);
}

const TRACE: &str = "\
wake 1 0 0 800
longest poid 9999 b0,a0,0,0 c0,0,0,0
interrupt 900 9900 9000 d0
apart 500
begin
wake 1 0 0 1000
longest poid 40 a0,b0,0,0 c0,0,0,0
longest poid 50 b0,a0,0,0 c0,0,0,0
longest poid-none 900 c0,0,0,0 c0,0,0,0
longest psd 30 c0,0,0,0 a0,b0,0,0
longest return 20 a0,c0,0,0 0,0,0,0
interrupt 1000070 1000090 15 d0
wake 2 1000070 60 1000150
longest poid 70 a0,b0,0,0 c0,0,0,0
";

/// The record of the trace: the second sample was due at 1 000 050 ns.
fn record(preempt: &str) -> Record {
    let mut record = crate::record::tests::record(0, &[(0, (vec![40, 100], 0))]);
    record.machine.preempt = Some(preempt.to_owned());
    record.series[0].interval = Some(Nanos::from_millis(1));
    record.worst[0].index = Some(2);
    record
}

fn place(address: u64) -> Option<Location<'static>> {
    let function = match address {
        0xa0 => "_raw_spin_lock",
        0xb0 => "do_work",
        0xc0 => "__schedule",
        0xd0 => "asm_sysvec_apic_timer_interrupt",
        _ => return None,
    };
    Some(Location { function, offset: 0 })
}

#[test]
fn observation_names_callers_of_locks_and_ends_with_the_last_sample() {
    let trace = Trace::read(TRACE).expect("it is a trace");
    let observed = Observation::of(&trace, &record("full"), place).expect("a sample is known");
    let poid = &observed.sections[&Term::Poid];
    assert_eq!(
        (poid.ns, poid.begin.as_str(), poid.end.as_str()),
        (Nanos(50), "do_work", "__schedule")
    );
    assert_eq!(observed.sections[&Term::Return].end, "[program]");
    assert_eq!(observed.interrupts[0].name, "sysvec_apic_timer_interrupt");
    // The interrupt came 20 ns after the sample was due; interrupts had been enabled for 60 ns.
    assert_eq!((observed.timer, observed.maximum, observed.samples), (Nanos(20), Nanos(100), 2));
}

#[test]
fn timer_that_expires_at_ticks_is_late_whether_interrupts_were_enabled_or_not() {
    let trace = Trace::read(&TRACE.replace("1000070 60 ", "1000070 5 ")).expect("it is a trace");
    let timer = |resolution| {
        let mut record = record("full");
        record.machine.timer_resolution_ns = Some(resolution);
        Observation::of(&trace, &record, place).expect("a sample is known").timer
    };
    assert_eq!((timer(1), timer(4_000_000)), (Nanos(5), Nanos(20)));
}

#[test]
fn kernel_without_preemption_runs_on_to_its_scheduling_point() {
    let trace = Trace::read(TRACE).expect("it is a trace");
    let observed = Observation::of(&trace, &record("voluntary"), place).expect("a sample is known");
    assert_eq!(observed.sections[&Term::Poid].ns, Nanos(900));
    assert_eq!(observed.sections[&Term::Psd].ns, Nanos(30));
}

#[test]
fn line_that_was_cut_off_is_no_part_of_a_trace() {
    let whole = Trace::read(TRACE).expect("it is a trace");
    assert_eq!(Trace::read(&format!("{TRACE}wake 3")), Ok(whole));
}

#[test]
fn trace_that_proves_nothing_is_refused() {
    let refused = |text: &str| {
        let trace = Trace::read(text).expect("it is a trace");
        Observation::of(&trace, &record("full"), place).unwrap_err()
    };
    assert_eq!(refused("apart 99\napart 2\nwake 2 0 0 10\n"), NoObservation::Apart(101));
    assert_eq!(refused("drift 2\nwake 2 0 0 10\n"), NoObservation::Drift(2));
    let cut = |seen| NoObservation::Cut { seen, samples: 2 };
    assert_eq!(refused(""), cut(0));
    assert_eq!(refused("wake 1 0 0 10\n"), cut(1));
    assert_eq!(refused("wake 7 0 0 10\nwake 8 0 0 10\n"), NoObservation::NoSample);
    let damaged = Trace::read("interrupt 9 8 1 a0\nwake 1 0 0 10\n").unwrap_err().to_string();
    assert!(damaged.contains("line 1"), "{damaged}");
}
