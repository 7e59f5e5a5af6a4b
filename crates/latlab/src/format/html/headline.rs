//! Headlines of a report: maximum, p99.9 and number of samples of each latency.

use crate::format::picture::{NamedRecord, corrected, distribution, load};
use crate::format::{grouped, micro, printable, series_name};
use latlab_core::compare::compare;
use latlab_core::histogram::Histogram;
use latlab_core::record::Series;

/// One sentence about one latency of all CPUs.
pub(super) struct Headline {
    /// The latency it is about.
    pub(super) subject: String,
    /// The result.
    pub(super) text: String,
    /// Qualification, such as missed periods.
    pub(super) note: String,
}

/// The verdicts of a comparison, one for each latency that two sources have in common; none unless
/// there are exactly two sources.
pub(super) fn comparison_headlines(sources: &[NamedRecord]) -> Vec<Headline> {
    let [a, b] = sources else {
        return Vec::new();
    };
    // Records that have nothing in common are still shown side by side.
    let Ok(comparison) = compare(a.each_run(), b.each_run()) else {
        return Vec::new();
    };
    let (sides, design) = (format!("{} against {}", b.name, a.name), comparison.design.words());
    let names = comparison.latency_names();
    let headlines = comparison.latencies.iter().zip(names).map(|(latency, name)| Headline {
        subject: printable(&format!("{name} · {sides}")),
        text: capital(&latency.sentence()).replace(" us", " µs"),
        note: format!("{}. {design}", capital(&latency.worst.words())).replace(" us", " µs"),
    });
    headlines.collect()
}

/// Returns a sentence with its first letter in upper case.
fn capital(sentence: &str) -> String {
    let mut rest = sentence.chars();
    let first = rest.next().map(|c| c.to_uppercase().collect::<String>());
    first.unwrap_or_default() + rest.as_str()
}

/// A headline for each probe under each load of each record, without the probes of scans.
pub(super) fn probe_headlines(sources: &[NamedRecord]) -> Vec<Headline> {
    let mut headlines = Vec::new();
    for source in sources {
        let mut rest: Vec<&Series> =
            source.record.series.iter().filter(|series| !series.is_of_scan()).collect();
        while let Some(first) = rest.first().copied() {
            let alike = |s: &&Series| {
                let kind = |s: &Series| (s.probe.clone(), s.span.clone(), s.load.clone());
                kind(s) == kind(first) && s.profile == first.profile
            };
            let (group, others) = rest.into_iter().partition(alike);
            rest = others;
            let mut subject = vec![series_name(&source.record, first), load(first)];
            subject.extend(first.profile.clone());
            if sources.len() > 1 {
                subject.insert(0, source.name.clone());
            }
            headlines.push(series_headline(subject.join(" · "), &group));
        }
    }
    headlines
}

fn series_headline(subject: String, group: &[&Series]) -> Headline {
    let (mut measured, mut whole) = (Histogram::new(), Histogram::new());
    for series in group {
        let histogram = distribution(series);
        whole.add(corrected(series, &histogram).as_ref().unwrap_or(&histogram));
        measured.add(&histogram);
    }
    let worst = group.iter().max_by_key(|series| series.max);
    let text = match worst.filter(|_| measured.count() > 0) {
        Some(worst) => format!(
            "max {} on CPU {}, p99.9 {}, {} samples",
            micro(worst.max),
            worst.cpu,
            micro(measured.quantiles().p99_9),
            grouped(measured.count()),
        ),
        None => "no samples".to_owned(),
    };
    let note = match group.iter().map(|series| series.counts.missed).sum() {
        0 => String::new(),
        missed => format!(
            "{} periods were missed; corrected for them, p99.9 is {}",
            grouped(missed),
            micro(whole.quantiles().p99_9)
        ),
    };
    Headline { subject, text, note }
}
