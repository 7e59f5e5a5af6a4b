//! Tests of pieces: cutting plans and joining records.

use super::*;
use crate::record::{Incomparable, Sample};

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
    let of = FigureSource::Series { probe: "cyclic".to_owned(), span: None };
    for take in Statistic::ALL.map(|(_, take)| take).into_iter().filter(|take| of.has(*take)) {
        let figure = figure(of.clone(), take);
        let times = if take == Statistic::Missed { 3.0 } else { 1.0 };
        let expected = figure.of(std::slice::from_ref(&at_once)).unwrap().value * times;
        let value = figure.of(std::slice::from_ref(&joined)).unwrap().value;
        assert!((value - expected).abs() < 1e-6, "{take:?}: {value}, not {expected}");
    }
    assert_eq!(pieces::join(&whole, Vec::new()).unwrap(), None);
    let mut elsewhere = parts;
    elsewhere[1].machine.kernel = "6.1".to_owned();
    assert!(pieces::join(&whole, elsewhere).unwrap_err().to_string().contains("their kernel"));
}

#[test]
fn time_lines_of_pieces_follow_each_other() {
    let whole = Plan { length: Length::For(Nanos::from_secs(25)), ..record(&[]).plan };
    let cut = pieces::cut(&whole, Nanos::from_secs(10));
    let piece = |(plan, worst): (Plan, u64)| {
        let mut piece = Record { plan, ..record(&[worst]) };
        let at = Nanos::from_secs(1);
        piece.series[0].timeline.record(at, Nanos(worst));
        piece.worst = vec![sample(at, Nanos(worst))];
        piece
    };
    let parts = cut.into_iter().zip([700, 500, 900]).map(piece).collect();
    let joined = pieces::join(&whole, parts).unwrap().unwrap();
    let timeline = &joined.series[0].timeline;
    let at = |wanted: u64| {
        let (at, _) = timeline.points().find(|(_, worst)| worst.0 == wanted).unwrap();
        at.as_secs_f64()
    };
    let expected = [(700, 1.0), (500, 1.0 + 25.0 / 3.0), (900, 1.0 + 50.0 / 3.0)];
    for (worst, seconds) in expected {
        let off = (at(worst) - seconds).abs();
        assert!(off <= timeline.width().as_secs_f64(), "{worst}: {off} s off");
    }
    let late: Vec<_> = joined.worst.iter().map(|late| (late.latency.0, late.at)).collect();
    let starts = [Nanos(16_666_666_666), Nanos(0), Nanos(8_333_333_333)];
    let ends = starts.map(|start| start + Nanos::from_secs(1));
    assert_eq!(late, [(900, ends[0]), (700, ends[1]), (500, ends[2])]);
    let rises: Vec<u64> = timeline.running_maximum().iter().map(|(_, worst)| worst.0).collect();
    assert_eq!(rises, [700, 900]);
}

fn sample(at: Nanos, latency: Nanos) -> Sample {
    Sample {
        probe: "cyclic".to_owned(),
        cpu: 0,
        at,
        latency,
        index: None,
        causes: Vec::new(),
        unexplained: None,
        path: None,
    }
}

#[test]
fn pieces_of_different_builds_are_not_joined() {
    let whole = Plan { length: Length::For(Nanos(20)), ..record(&[]).plan };
    let piece = |(plan, build): (Plan, &str)| Record {
        plan,
        fingerprint: Some(build.to_owned()),
        ..record(&[5])
    };
    let joined = |builds: [&str; 2]| {
        let cut = pieces::cut(&whole, Nanos(10)).into_iter();
        pieces::join(&whole, cut.zip(builds).map(piece).collect())
    };
    assert_eq!(joined(["a", "a"]).unwrap().unwrap().fingerprint.as_deref(), Some("a"));
    assert_eq!(joined(["a", "b"]).unwrap_err(), Incomparable::Fingerprint);
}
