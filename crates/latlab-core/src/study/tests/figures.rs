//! Tests of figures: their values, and the cells that have them.

use super::*;

#[test]
fn figures_cover_all_repetitions() {
    let all = [record(&[10, 20]), record(&[60])];
    let taken = |take| {
        let of = FigureSource::Series { probe: "cyclic".to_owned(), span: None };
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
    let other = FigureSource::Series { probe: "timer".to_owned(), span: None };
    assert_eq!(of(other, Statistic::Recorded), None);
    let span = FigureSource::Series { probe: "cyclic".to_owned(), span: Some("c".to_owned()) };
    assert_eq!(of(span, Statistic::Recorded), None);
    let switches = FigureSource::Value { probe: "cyclic".to_owned(), name: "switches".to_owned() };
    assert_eq!(of(switches, Statistic::Mean), None);
    let empty =
        figure(FigureSource::Series { probe: "cyclic".to_owned(), span: None }, Statistic::Max);
    assert_eq!(empty.of(&[record(&[])]), None);
}

/// Both the source of a figure and the parts of the cells may be misspelt: the parts are checked
/// first.
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
    assert_eq!(claim.judge(&known).verdict, ClaimVerdict::Holds);
}

#[test]
fn sections_of_a_scan_are_counted_and_have_a_peak() {
    let scan = record::tests::scan();
    let mut both = [record(&[1]), record(&[1])];
    let of = || FigureSource::Series { probe: format!("scan.{}", scan.call.name), span: None };
    let taken = |all: &[Record]| figure(of(), Statistic::Sections).of(all);
    let peak = |all: &[Record]| figure(of(), Statistic::Peak).of(all);
    assert_eq!(taken(&both), None);
    both[0].scans = vec![scan.clone()];
    assert_eq!(taken(&both), None, "one of them has none");
    both[1].scans = vec![Scan { sections: Vec::new(), ..scan.clone() }];
    // The longest latency at one moment was 52.202 us, the minimum at that moment 52.2 us.
    assert_eq!(peak(&both), Some(Quantity::time(Nanos(52_200))));
    let of_scan = |take| figure(of(), take).of(&both);
    assert_eq!(of_scan(Statistic::Duration), Some(Quantity::time(scan.duration.median)));
    assert_eq!(of_scan(Statistic::Irt), scan.longest_irt().map(Quantity::time));
    let number = |n: u8| Some(Quantity::number(f64::from(n)));
    assert_eq!(scan.sections.len(), 1);
    assert_eq!((taken(&both), taken(&both[1..])), (number(1), number(0)));
    assert!(
        !FigureSource::Series { probe: "cyclic".to_owned(), span: None }.has(Statistic::Sections)
    );
}
