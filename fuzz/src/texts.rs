//! Texts that users write: durations, claims, studies, configurations, requests.

use latlab_check::PerfMap;
use latlab_core::cpulist::CpuList;
use latlab_core::explain::charge::Circumstances;
use latlab_core::plan::Setting;
use latlab_core::record::Record;
use latlab_core::size::Bytes;
use latlab_core::study::claim::{Claim, NamedValue};
use latlab_core::study::{self, Study};
use latlab_core::symbols::{KallsymsLine, Symbols};
use latlab_core::time::Nanos;
use latlab_measure::cause;
use latlab_mechanism::configuration::{Configuration, DEFAULT, loopback};
use latlab_mechanism::protocol::{Answer, Command, LONGEST, line};
use latlab_trace::{Trace, section, timehist};
use std::sync::LazyLock;

/// A duration: it is never longer than its parts, and shown in one of the units.
pub fn time(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    match text.parse::<Nanos>() {
        Ok(time) => {
            let again = format!("{}ns", time.0).parse();
            assert_eq!(again, Ok(time));
            assert!(time.to_string().len() <= 24, "{time}");
        }
        Err(error) => assert!(error.to_string().contains(text)),
    }
}

/// A size: its shortest form means the same.
pub fn size(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(size) = text.parse::<Bytes>() {
        assert_eq!(size.to_string().parse(), Ok(size));
    }
}

/// A list of CPUs: its shortest form means the same.
pub fn cpulist(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(list) = text.parse::<CpuList>() {
        assert_eq!(list.to_string().parse(), Ok(list.clone()));
        assert_eq!(list.iter().count(), list.len());
        assert!(list.minus(&list).is_empty());
    }
}

/// A knob and its value.
pub fn setting(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(Setting { knob, value }) = text.parse() {
        assert_eq!(format!("{knob}={value}"), text);
    }
}

/// A claim, judged with and without values; an error names a place in the text.
pub fn claim(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let claim = match Claim::read(text) {
        Ok(claim) => claim,
        Err(fault) => return assert!(fault.at <= text.len(), "{fault:?}"),
    };
    for value in [None, Some(0.0), Some(1.5), Some(f64::MAX)] {
        let named = |(name, time): (&str, i32)| NamedValue { name: name.to_owned(), time, value };
        let known = [("a.b", 1), ("rt.max", 1), ("baseline.rt.max", 1), ("a.n", 0)].map(named);
        if let Err(fault) = claim.check(&known) {
            assert!(fault.at <= text.len(), "{fault:?}");
        }
        let _ = claim.unknown(&known);
        let _ = claim.judge(&known);
        if let Ok(claim) = claim.clone().with_baseline() {
            let _ = claim.judge(&known);
        }
    }
}

/// A study; an error names a place in the file.
pub fn study(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let mut study = match Study::read(text) {
        Ok(study) => study,
        Err(fault) => {
            let (line, column) = study::place(text, fault.at);
            assert!(line > 0 && column > 0 && fault.at <= text.len(), "{fault:?}");
            return;
        }
    };
    let _ = study.unmeasured();
    let results = study.results();
    assert!(study.claims.iter().all(|one| one.claim.unknown(&results).is_none()));
    (0..study.cells.len()).for_each(|cell| assert!(!study.labels(cell).is_empty()));
    let _ = study.set_length(Nanos::from_secs(1));
    let _ = study.set_length(Nanos::MAX);
}

/// The configuration of the daemon, and what it decides about devices and users.
pub fn configuration(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(configuration) = Configuration::read(text) {
        assert!((1..=98).contains(&configuration.ceiling), "{}", configuration.ceiling);
        assert!(configuration.metrics.is_none_or(|address| address.ip().is_loopback()));
        for group in &configuration.groups {
            assert!(configuration.group(&group.name).is_ok_and(|found| found == group));
            let _ = group.has("eth0-TxRx-0", Some("e1000e"));
        }
    }
    if let Ok(address) = loopback(text) {
        assert!(address.ip().is_loopback());
    }
}

/// A request to the daemon, as it arrives, and the answer to one.
pub fn protocol(bytes: &[u8]) {
    static CONFIGURATION: LazyLock<Configuration> =
        LazyLock::new(|| Configuration::read(DEFAULT).expect("it is shipped"));
    if let Ok(Some(line)) = line(bytes) {
        assert!(line.len() < LONGEST && !line.contains(char::is_control));
        if let Ok(Command::Groups { groups, thread }) = Command::read(line, &CONFIGURATION) {
            assert!(!groups.is_empty() && groups.len() <= CONFIGURATION.groups.len());
            assert!(thread.is_none_or(|thread| thread > 0));
        }
    }
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Some(answer) = Answer::read(text) {
        assert_eq!(Answer::read(&answer.to_string()), Some(answer));
    }
}

/// A perf map; and the kernel's symbols: each address is found in the function that begins there.
pub fn symbols(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let functions = PerfMap::of(text);
    let _ = [0, 1 << 12, u64::MAX].map(|address| functions.frame(address));
    let Ok(symbols) = Symbols::parse(text) else { return };
    for line in text.lines().filter_map(KallsymsLine::parse).filter(KallsymsLine::is_function) {
        let found = symbols.find(line.address).expect("a function begins there");
        assert_eq!(found.offset, 0);
        let _ = symbols.find(line.address.wrapping_sub(1));
        let _ = symbols.find(line.address.wrapping_add(1 << 20));
    }
}

/// The trace of another tool: its wake-ups are in order, and their charges add up.
pub fn recording(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut trace = Trace::new(None);
    text.lines().for_each(|line| trace.expect(line));
    text.lines().for_each(|line| trace.read(line));
    trace.end();
    let table = timehist::read(&text, None).map(|table| table.windows).unwrap_or_default();
    for window in trace.take().into_iter().chain(table) {
        assert!(window.due <= window.ran, "{window:?}");
        let explanation = cause::explain(&window, &Circumstances::default());
        assert_eq!(explanation.latency(), window.latency(), "{window:?}");
    }
    if let Some(Ok(section)) = section::read(&text) {
        let mut trace = Trace::new(None);
        section.events.iter().for_each(|line| trace.read(line));
    }
    let _ = (trace.limits(), trace.lack(), trace.tasks(), trace.new_names());
}

/// The result of another tool: as a record it is consistent, and read again.
pub fn foreign(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Some(Ok(record)) = latlab_core::foreign::read(text) {
        let again = Record::from_json(&record.to_json()).expect("latlab reads what it writes");
        assert_eq!(again.series, record.series);
    }
}
