//! Tests of studies: parsing, errors, figures, findings.

mod figures;
mod joining;

use super::claim::ClaimVerdict;
use super::figure::{FigureSource, Statistic, StudyFigure};
use super::quantity::Quantity;
use super::*;
use crate::histogram::Histogram;
use crate::machine::{Machine, TimeDomain};
use crate::plan::{Length, Plan};
use crate::record::{self, Counts, Record, Series, Work};
use crate::scan::Scan;
use crate::time::Nanos;

const STUDY: &str = r#"
title = "Two kernels"
paper = "Somebody 2001"
redoes = "table 1"
published_in = "table 1"

[plan]
probes = ["cyclic"]
for = "2s"
warm_up = "1s"

[[axis]]
name = "kernel"
each = [
  { label = "rt", on = "lab:rt" },
  { label = "rt-adapted", on = "lab:rt", adapt = true },
]

[[axis]]
name = "load"
each = [{ label = "idle" }, { label = "fork", loads = ["fork"], count = 100, adapt = "suppress" }]

[[figure]]
name = "worst"
probe = "cyclic"

[[figure]]
name = "messages"
title = "messages per second of CPU time"
load = "fork"
take = "rate"

[published]
"rt.idle" = { worst = "about 0.4 s" }

[[claim]]
says = "it is quick"
source = "section 4"
claim = "rt.idle.worst < 100us"
bound = "paper: 100 us, in section 4"

[[claim]]
says = "it does much"
claim = "rt.fork.messages > 5"
bound = "physics: one process takes at most 200 ms"
"#;

fn record(latencies: &[u64]) -> Record {
    let mut histogram = Histogram::new();
    for latency in latencies {
        histogram.record(Nanos(*latency));
    }
    let mut series = Series {
        probe: "cyclic".to_owned(),
        span: ("a".to_owned(), "b".to_owned()),
        counts: Counts { recorded: latencies.len() as u64, missed: 3, below_zero: 0 },
        first: Some(Nanos(7)),
        ..Series::default()
    };
    series.set_histogram(&histogram);
    let work = Work {
        load: "fork".to_owned(),
        unit: "processes".to_owned(),
        done: 30,
        cpu_ns: Nanos::from_secs(2),
    };
    let plan = Plan::bare("", "0".parse().unwrap(), Length::Count(1));
    let record = Record::new("", Nanos(0), plan, Machine::default());
    Record { series: vec![series], work: vec![work], ..record }
}

#[test]
fn study_with_too_many_cells_is_refused_before_they_take_memory() {
    let axis = |name: usize| {
        let labels = (0..10).map(|n| format!("{{ label = \"l{n}\" }}"));
        format!(
            "[[axis]]\nname = \"a{name}\"\neach = [{}]\n",
            labels.collect::<Vec<_>>().join(", ")
        )
    };
    let ten: String = (0..10).map(axis).collect();
    let fault = Study::read(&STUDY.replacen("[[axis]]", &format!("{ten}[[axis]]"), 1)).unwrap_err();
    assert_eq!(fault.why, "with this axis there are more than 10000 cells");
}

#[test]
fn cells_are_all_combinations_and_later_axes_override_earlier_ones() {
    let study = Study::read(STUDY).unwrap();
    let labels: Vec<&str> = study.cells.iter().map(|cell| cell.label.as_str()).collect();
    assert_eq!(labels, ["rt.idle", "rt.fork", "rt-adapted.idle", "rt-adapted.fork"]);
    let terms = |nth: usize| &study.cells[nth].terms;
    assert_eq!(terms(0).length, Some(Length::For(Nanos::from_secs(2))));
    assert_eq!(terms(1).length, Some(Length::Count(100)));
    assert_eq!(terms(0).warm_up, Some(Nanos::from_secs(1)));
    assert!(terms(0).loads.is_none() && terms(1).loads.as_ref().unwrap()[0].text == "fork");
    let adapt = |nth| terms(nth).adapt.clone().flatten().map(|words| words.text);
    assert_eq!(
        [adapt(0), adapt(2), adapt(3)],
        [None, Some(String::new()), Some("suppress".into())]
    );
}

#[test]
fn target_after_a_plus_is_appended_to_that_of_earlier_axes() {
    let axis = "[[axis]]\nname = \"model\"\neach = [{ label = \"plain\" }, { label = \"lazy\", on = \"+-lazy\" }]\n\n[[figure]]";
    let study = Study::read(
        &STUDY
            .replacen("[[figure]]", axis, 1)
            .replace("rt.idle", "rt.idle.plain")
            .replace("rt.fork", "rt.fork.plain"),
    );
    let targets: Vec<String> = study
        .expect("a study")
        .cells
        .iter()
        .map(|cell| cell.terms.on.as_ref().expect("a target").text.clone())
        .collect();
    assert_eq!(targets[..2], ["lab:rt", "lab:rt-lazy"]);
}

#[test]
fn findings_have_measured_and_published_values() {
    let study = Study::read(STUDY).unwrap();
    let measured = [Some(vec![record(&[5, 70]), record(&[90])]), None, None, None];
    let findings = study.findings(&measured);
    let (worst, published) = findings.rows[0].values[0];
    assert_eq!((worst.unwrap().value, published), (90.0, Some("about 0.4 s")));
    assert_eq!(findings.rows[0].values[1].0, Some(Quantity::number(15.0)));
    assert_eq!(findings.rows[1].values[0], (None, None));
    assert_eq!(findings.claims[0].1.verdict, ClaimVerdict::Holds);
    assert_eq!(findings.claims[0].1.ground(), "rt.idle.worst is 90 ns; 2 of 2 repetitions agree");
    assert_eq!(findings.claims[1].1.word(), "not measured");
    assert_eq!(findings.claims[1].1.ground(), "no value for rt.fork.messages");
}

#[test]
fn claim_with_a_vanished_cause_no_longer_holds_if_it_differs() {
    let judged = |reason: &str, latency: u64| {
        let claim = format!("claim = \"rt.idle.worst < 100us\"\n{reason}");
        let text = STUDY.replacen("claim = \"rt.idle.worst < 100us\"\n", &claim, 1);
        let study = Study::read(&text).unwrap();
        let measured = [Some(vec![record(&[latency])]), None, None, None];
        study.findings(&measured).claims[0].1.word()
    };
    assert_eq!(judged("gone = \"no such loop\"\n", 200_000), "no longer holds");
    assert_eq!(judged("why = \"slow\"\n", 200_000), "differs");
    assert_eq!(judged("gone = \"no such loop\"\n", 50), "holds");
}

#[test]
fn claim_that_the_set_up_decides_never_holds() {
    let text = STUDY.replacen("paper: 100 us", "by construction: 100 us", 1);
    let study = Study::read(&text).unwrap();
    let word = |latency: u64| {
        study.findings(&[Some(vec![record(&[latency])]), None, None, None]).claims[0].1.word()
    };
    assert_eq!([word(50), word(200_000)], ["by construction", "differs"]);
}

#[test]
fn changes_of_a_bound_are_kept_in_order() {
    let changed = "claim = \"rt.idle.worst < 100us\"\nchanged = [{ from = \"50 us\", to = \
                   \"100 us\", when = \"1 May\", why = \"a misprint\" }]\n";
    let text = STUDY.replacen("claim = \"rt.idle.worst < 100us\"\n", changed, 1);
    let study = Study::read(&text).unwrap();
    let said: Vec<String> = study.claims[0].changes.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["changed on 1 May from 50 us to 100 us: a misprint"]);
}

fn figure(of: FigureSource, take: Statistic) -> StudyFigure {
    StudyFigure { name: String::new(), title: String::new(), at: 0, of, take }
}

#[test]
fn records_of_another_time_domain_or_kernel_are_mismatches() {
    let study = Study::read(STUDY).unwrap();
    let on = |target: &str, kernel: &str, time_domain| {
        let mut record = record(&[5]);
        record.plan.target = target.to_owned();
        record.machine = Machine { kernel: kernel.to_owned(), time_domain, ..Machine::default() };
        record
    };
    let lab = |target: &str, kernel: &str| on(target, kernel, TimeDomain::Instructions);
    let said = |measured: &[Option<Vec<Record>>]| {
        let mismatches = study.mismatches(measured).into_iter();
        mismatches.map(|(nth, mismatch)| format!("{nth}: {mismatch}")).collect::<Vec<_>>()
    };
    let (a, b) = (lab("lab:a", "6.12"), lab("lab:b", "6.12-rt"));
    let alike =
        [Some(vec![a.clone()]), None, Some(vec![b.clone(), b.clone()]), Some(vec![a.clone()])];
    assert_eq!(said(&alike), [""; 0]);
    let other = [Some(vec![a.clone()]), None, Some(vec![b.clone(), lab("lab:b", "6.1")])];
    assert_eq!(
        said(&other),
        ["2: lab:b was Linux 6.1 when it was measured, and Linux 6.12-rt when rt-adapted.idle was"]
    );
    let time =
        [Some(vec![a]), Some(vec![on("lab:b", "6.12-rt", TimeDomain::Silicon)]), Some(vec![b])];
    assert_eq!(
        said(&time),
        [
            "1: its record is in silicon time, that of rt.idle in instructions time: their nanoseconds are not comparable"
        ]
    );
}

#[test]
fn errors_are_reported_with_their_position() {
    let refused = |from: &str, to: &str| {
        let text = STUDY.replacen(from, to, 1);
        assert_ne!(text, STUDY, "{from}");
        let fault = Study::read(&text).unwrap_err();
        let (line, column) = place(&text, fault.at);
        format!("{line}:{column}: {}", fault.why)
    };
    let cases = [
        ("for = \"2s\"", "fro = \"2s\"", "9:1: unknown field `fro`"),
        ("for = \"2s\"", "for = \"2\"", "9:7: '2' has no unit"),
        ("for = \"2s\"", "for = \"900d\"", "9:7: a cell is measured for at most"),
        ("for = \"2s\"", "for = 2", "9:7: invalid type: integer `2`, expected a string"),
        ("for = \"2s\"", "for = \"2s\"\ncount = 5", "9:7: give either 'for' or 'count'"),
        ("count = 100", "count = 0", "21:"),
        ("label = \"idle\" }", "loads = [] }", "20:8: each choice on an axis needs a label"),
        ("\"rt-adapted\"", "\"rt\"", "16:13: the label 'rt' is defined twice"),
        ("\"rt-adapted\"", "\"Rt adapted\"", "16:13: a name begins with a lower-case letter"),
        ("adapt = true", "adapt = 5", "16:"),
        ("take = \"rate\"", "take = \"mean\"", "31:8: take must be one of: done, rate"),
        ("take = \"rate\"", "take = \"rat\"", "31:8: unknown statistic 'rat': did you mean rate"),
        ("load = \"fork\"\n", "", "28:8: a figure needs either a probe"),
        ("name = \"messages\"", "name = \"worst\"", "28:8: the figure 'worst' is defined twice"),
        (
            "\"rt.idle\" = {",
            "\"rt.idel\" = {",
            "34:1: unknown cell 'rt.idel': did you mean rt.idle",
        ),
        ("{ worst = \"about", "{ wrost = \"about", "34:15: unknown figure 'wrost'"),
        ("worst < 100us", "worst < 100", "39:26: "),
        (
            "bound = \"paper: 100 us, in section 4\"\n",
            "",
            "39:9: this claim has no bound: write where its limits come from",
        ),
        ("bound = \"paper: 100", "bound = \"guess: 100", "40:10: a bound begins with 'paper:'"),
        ("bound = \"paper: 100 us, in section 4", "bound = \"paper:", "40:10: a bound begins"),
        ("rt.fork.messages >", "rt.fork.massages >", "44:10: unknown result 'rt.fork.massages'"),
        ("rt.fork.messages >", "rt.idle.messages >", "44:10: unknown result 'rt.idle.messages'"),
        ("\"Two kernels\"", &format!("\"{}\"", "x".repeat(73)), "2:9: a title has at most 72"),
        ("rt.fork.messages > 5", "rt.fork.messages", "44:26: expected a comparison"),
        (
            "claim = \"rt.fork",
            "why = \"a\"\ngone = \"b\"\nclaim = \"rt.fork",
            "45:8: a claim has either 'why' or 'gone'",
        ),
        ("title =", "title", "2:"),
    ];
    for (from, to, said) in cases {
        let refused = refused(from, to);
        assert!(refused.starts_with(said), "{from} → {to}: {refused}");
    }
}

#[test]
fn study_without_cells_is_refused() {
    let text = "title = 'x'\npaper = 'y'\nredoes = 'z'\nfigure = []\n";
    assert!(Study::read(text).unwrap_err().why.contains("[[axis]]"));
}

#[test]
fn full_lengths_are_those_of_the_file_and_extend_the_limit() {
    let with = |full: &str| {
        let text = STUDY.replacen("[plan]", &format!("limit = \"1min\"\n[plan]\n{full}"), 1);
        Study::read(&text)
    };
    let mut study = with("full = \"20min\"").unwrap();
    study.set_full_length().unwrap();
    let all = study.cells.iter().map(|cell| cell.terms.length);
    assert!(all.clone().all(|length| length == Some(Length::For(Nanos::from_secs(1200)))));
    assert_eq!(study.limit, Some(Nanos::from_secs(60 + 50 * 300)));
    assert_eq!(study.lengths, Lengths::Full);
    let mut study = with("full = 50").unwrap();
    study.set_full_length().unwrap();
    assert!(study.cells.iter().all(|cell| cell.terms.length == Some(Length::Count(50))));
    let refused = Study::read(STUDY).unwrap().set_full_length().unwrap_err();
    assert_eq!(refused, "the study gives no full length");
    for (full, why) in [("full = 0", "at least 1"), ("full = \"8d\"", ""), ("full = true", "")] {
        assert!(with(full).unwrap_err().why.contains(why), "{full}");
    }
}

#[test]
fn length_set_by_the_user_applies_to_all_cells() {
    let mut study = Study::read(&STUDY.replacen("[plan]", "limit = \"1min\"\n[plan]", 1)).unwrap();
    study.set_length(Nanos::from_secs(36_000)).unwrap();
    let all = study.cells.iter().map(|cell| cell.terms.length);
    assert!(all.clone().all(|length| length == Some(Length::For(Nanos::from_secs(36_000)))));
    assert_eq!(study.limit, Some(Nanos::from_secs(60 + 50 * 300)));
    let scans = STUDY.replacen("adapt = true", "scans = [\"fork\"]", 1);
    let refused = Study::read(&scans).unwrap().set_length(Nanos(1)).unwrap_err();
    assert!(refused.starts_with("the cell rt-adapted.idle scans calls"), "{refused}");
    let refused = Study::read(STUDY).unwrap().set_length(Nanos::from_secs(700_000)).unwrap_err();
    assert!(refused.starts_with("a cell is measured for at most"), "{refused}");
}
