//! Tests of studies: parsing, errors, figures, findings.

use super::claim::Verdict;
use super::figure::{Figure, Of, Statistic};
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

[[claim]]
says = "it does much"
claim = "rt.fork.messages > 5"
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
    Record {
        schema: record::SCHEMA,
        tool: String::new(),
        started: Nanos(0),
        runs: 1,
        plan: Plan::bare("", "0".parse().unwrap(), Length::Count(1)),
        fingerprint: None,
        machine: Machine::default(),
        series: vec![series],
        scans: Vec::new(),
        figures: Vec::new(),
        worst: Vec::new(),
        explained: None,
        work: vec![Work {
            load: "fork".to_owned(),
            unit: "processes".to_owned(),
            done: 30,
            cpu_ns: Nanos::from_secs(2),
        }],
        changes: Vec::new(),
        warnings: Vec::new(),
    }
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
fn findings_have_measured_and_published_values() {
    let study = Study::read(STUDY).unwrap();
    let measured = [Some(vec![record(&[5, 70]), record(&[90])]), None, None, None];
    let findings = study.findings(&measured);
    let (worst, published) = findings.rows[0].values[0];
    assert_eq!((worst.unwrap().value, published), (90.0, Some("about 0.4 s")));
    assert_eq!(findings.rows[0].values[1].0, Some(Quantity::number(15.0)));
    assert_eq!(findings.rows[1].values[0], (None, None));
    assert_eq!(findings.claims[0].1.verdict, Verdict::Holds);
    assert_eq!(findings.claims[0].1.ground(), "rt.idle.worst is 90 ns");
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
fn figures_cover_all_repetitions() {
    let all = [record(&[10, 20]), record(&[60])];
    let taken = |take| {
        let of = Of::Series { probe: "cyclic".to_owned(), span: None };
        figure(of, take).of(&all).map(|value| value.value)
    };
    let expected = [
        (Statistic::Min, 10.0),
        (Statistic::Mean, 30.0),
        (Statistic::Max, 60.0),
        (Statistic::Quantile(5_000), 20.0),
        (Statistic::First, 7.0),
        (Statistic::Recorded, 3.0),
        (Statistic::Missed, 6.0),
    ];
    for (take, value) in expected {
        assert_eq!(taken(take), Some(value), "{take:?}");
    }
    let of = |of, take| figure(of, take).of(&all);
    let other = Of::Series { probe: "timer".to_owned(), span: None };
    assert_eq!(of(other, Statistic::Recorded), None);
    let span = Of::Series { probe: "cyclic".to_owned(), span: Some("c".to_owned()) };
    assert_eq!(of(span, Statistic::Recorded), None);
    let switches = Of::Value { probe: "cyclic".to_owned(), name: "switches".to_owned() };
    assert_eq!(of(switches, Statistic::Mean), None);
    let empty = figure(Of::Series { probe: "cyclic".to_owned(), span: None }, Statistic::Max);
    assert_eq!(empty.of(&[record(&[])]), None);
}

fn figure(of: Of, take: Statistic) -> Figure {
    Figure { name: String::new(), title: String::new(), at: 0, of, take }
}

/// Both the source of a figure and the parts of the cells may be misspelt: the parts are checked first.
#[test]
fn figure_whose_source_no_cell_measures_is_refused() {
    let unmeasured = |from: &str, to: &str| {
        let text = STUDY.replacen(from, to, 1);
        let study = Study::read(&text).unwrap_or_else(|fault| panic!("{fault}"));
        study.unmeasured().map(|fault| (place(&text, fault.at), fault.why))
    };
    assert_eq!(unmeasured("2001", "2002"), None);
    let said = |place, why: &str| Some((place, why.to_owned()));
    let probe = "probe = \"nanosleep\"";
    assert_eq!(
        unmeasured("probe = \"cyclic\"", probe),
        said((25, 9), "no cell measures the probe 'nanosleep'")
    );
    assert_eq!(
        unmeasured("probe = \"cyclic\"", "probe = \"scan.fork\""),
        said((25, 9), "no cell measures a scan of 'fork'")
    );
    assert_eq!(
        unmeasured("load = \"fork\"", "load = \"disk\""),
        said((30, 8), "no cell measures the load 'disk'")
    );
}

#[test]
fn results_exist_only_for_cells_that_measure_the_figure() {
    let study = Study::read(STUDY).unwrap();
    let results = study.results();
    let names: Vec<&str> = results.iter().map(|result| result.name.as_str()).collect();
    assert!(names.contains(&"rt.fork.messages") && !names.contains(&"rt.idle.messages"));
    let claim = Claim::read("max(*.*.messages) > 5").unwrap();
    let measured = |nth: usize| (nth % 2 == 1).then(|| vec![record(&[5])]);
    let known = study.known(|cell, figure| Some(figure.of(&measured(cell)?)?.value));
    assert_eq!(claim.judge(&known).verdict, Verdict::Holds);
}

#[test]
fn sections_of_a_scan_are_counted_and_have_a_peak() {
    let scan = record::tests::scan();
    let mut both = [record(&[1]), record(&[1])];
    let of = || Of::Series { probe: format!("scan.{}", scan.call.name), span: None };
    let taken = |all: &[Record]| figure(of(), Statistic::Sections).of(all);
    let peak = |all: &[Record]| figure(of(), Statistic::Peak).of(all);
    assert_eq!(taken(&both), None);
    both[0].scans = vec![scan.clone()];
    assert_eq!(taken(&both), None, "one of them has none");
    both[1].scans = vec![Scan { regions: Vec::new(), ..scan.clone() }];
    // The longest latency at one moment was 52.202 us, the minimum at that moment 52.2 us.
    assert_eq!(peak(&both), Some(Quantity::time(Nanos(52_200))));
    let number = |n: u8| Some(Quantity::number(f64::from(n)));
    assert_eq!(scan.regions.len(), 1);
    assert_eq!((taken(&both), taken(&both[1..])), (number(1), number(0)));
    assert!(!Of::Series { probe: "cyclic".to_owned(), span: None }.has(Statistic::Sections));
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
        let mismatches = study.strangers(measured).into_iter();
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
        ("take = \"rate\"", "take = \"rat\"", "31:8: unknown statistic 'rat': did you mean rate?"),
        ("load = \"fork\"\n", "", "28:8: a figure needs either a probe"),
        ("name = \"messages\"", "name = \"worst\"", "28:8: the figure 'worst' is defined twice"),
        (
            "\"rt.idle\" = {",
            "\"rt.idel\" = {",
            "34:1: unknown cell 'rt.idel': did you mean rt.idle",
        ),
        ("{ worst = \"about", "{ wrost = \"about", "34:15: unknown figure 'wrost'"),
        ("worst < 100us", "worst < 100", "39:26: "),
        ("rt.fork.messages >", "rt.fork.massages >", "43:10: unknown result 'rt.fork.massages'"),
        ("rt.fork.messages >", "rt.idle.messages >", "43:10: unknown result 'rt.idle.messages'"),
        ("\"Two kernels\"", &format!("\"{}\"", "x".repeat(73)), "2:9: a title has at most 72"),
        ("rt.fork.messages > 5", "rt.fork.messages", "43:26: expected a comparison"),
        (
            "claim = \"rt.fork",
            "why = \"a\"\ngone = \"b\"\nclaim = \"rt.fork",
            "44:8: a claim has either 'why' or 'gone'",
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
fn pieces_add_up_to_the_whole_and_have_different_seeds() {
    let mut whole = Plan { seed: 5, ..record(&[]).plan };
    assert_eq!(pieces::cut(&whole, Nanos(1)), [whole.clone()], "a count is not cut");
    for (length, number) in [(1, 1), (10, 1), (11, 2), (25, 3), (30, 3), (31, 4)] {
        whole.length = Length::For(Nanos(length));
        let cut = pieces::cut(&whole, Nanos(10));
        assert_eq!(cut.len() as u64, number);
        assert_eq!(pieces::number(whole.length, Nanos(10)), number);
        let lengths: Vec<u64> = cut.iter().map(|piece| nanoseconds(piece.length)).collect();
        assert_eq!(lengths.iter().sum::<u64>(), length);
        assert!(lengths.iter().all(|length| (1..=10).contains(length)), "{lengths:?}");
        let seeds: Vec<u64> = cut.iter().map(|piece| piece.seed).collect();
        assert_eq!(seeds, (5..5 + number).collect::<Vec<_>>());
    }
}

fn nanoseconds(length: Length) -> u64 {
    match length {
        Length::For(time) => time.0,
        Length::Count(_) => panic!("it is a count"),
    }
}

#[test]
fn joined_pieces_give_the_figures_of_the_whole() {
    let samples: Vec<u64> = (0..1_000).map(|nth| 50 + nth * nth % 7_919).collect();
    let whole = Plan { length: Length::For(Nanos(25)), ..record(&[]).plan };
    let measured = |(plan, samples): (Plan, &[u64])| Record { plan, ..record(samples) };
    let cut = pieces::cut(&whole, Nanos(10)).into_iter();
    let parts: Vec<Record> = cut.zip(samples.chunks(400)).map(measured).collect();
    let joined = pieces::join(&whole, parts.clone()).unwrap().unwrap();
    assert_eq!((&joined.plan, joined.runs), (&whole, 3));
    let at_once = Record { plan: whole.clone(), ..record(&samples) };
    let of = Of::Series { probe: "cyclic".to_owned(), span: None };
    for take in Statistic::ALL.map(|(_, take)| take).into_iter().filter(|take| of.has(*take)) {
        let figure = figure(of.clone(), take);
        let times = if take == Statistic::Missed { 3.0 } else { 1.0 };
        let expected = figure.of(std::slice::from_ref(&at_once)).unwrap().value * times;
        let value = figure.of(std::slice::from_ref(&joined)).unwrap().value;
        assert!((value - expected).abs() < 1e-6, "{take:?}: {value}, not {expected}");
    }
    // Interrupted half-way: the record joined until then, merged with the rest.
    let mut resumed = pieces::join(&whole, parts[..2].to_vec()).unwrap().unwrap();
    resumed.merge(&pieces::join(&whole, parts[2..].to_vec()).unwrap().unwrap()).unwrap();
    assert_eq!(resumed.to_json(), joined.to_json());
    assert_eq!(pieces::join(&whole, Vec::new()).unwrap(), None);
    let mut elsewhere = parts;
    elsewhere[1].machine.kernel = "6.1".to_owned();
    assert!(pieces::join(&whole, elsewhere).unwrap_err().to_string().contains("their kernel"));
}

#[test]
fn length_set_by_the_user_applies_to_all_cells() {
    let mut study = Study::read(&STUDY.replacen("[plan]", "limit = \"1min\"\n[plan]", 1)).unwrap();
    study.last(Nanos::from_secs(36_000)).unwrap();
    let all = study.cells.iter().map(|cell| cell.terms.length);
    assert!(all.clone().all(|length| length == Some(Length::For(Nanos::from_secs(36_000)))));
    assert_eq!(study.limit, Some(Nanos::from_secs(60 + 50 * 300)));
    let scans = STUDY.replacen("adapt = true", "scans = [\"fork\"]", 1);
    let refused = Study::read(&scans).unwrap().last(Nanos(1)).unwrap_err();
    assert!(refused.starts_with("the cell rt-adapted.idle scans calls"), "{refused}");
    let refused = Study::read(STUDY).unwrap().last(Nanos::from_secs(700_000)).unwrap_err();
    assert!(refused.starts_with("a cell is measured for at most"), "{refused}");
}
