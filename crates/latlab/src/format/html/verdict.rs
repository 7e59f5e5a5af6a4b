//! What a report says first: the worst, the usual bad case, and out of how many.

use crate::format::picture::{Source, corrected, distribution, load};
use crate::format::{grouped, micro, printable, series_name};
use latlab_core::compare::compare;
use latlab_core::histogram::Histogram;
use latlab_core::record::Series;

/// One sentence about one latency, over all CPUs.
pub(super) struct Verdict {
    /// Which latency, where there could be doubt.
    pub(super) about: String,
    /// What was measured.
    pub(super) text: String,
    /// What missed periods change about it.
    pub(super) but: String,
}

/// What a comparison says of each latency that two sources have; nothing of more or fewer sources.
pub(super) fn of_both(sources: &[Source]) -> Vec<Verdict> {
    let [a, b] = sources else {
        return Vec::new();
    };
    // Records that have nothing in common are shown beside each other all the same.
    let Ok(comparison) = compare(a.each_run(), b.each_run()) else {
        return Vec::new();
    };
    let (both, ground) = (format!("{} against {}", b.name, a.name), comparison.design.words());
    let names = comparison.latency_names();
    let verdicts = comparison.latencies.iter().zip(names).map(|(latency, name)| Verdict {
        about: printable(&format!("{name} · {both}")),
        text: capital(&latency.sentence()).replace(" us", " µs"),
        but: format!("{}. {ground}", capital(&latency.worst.words())).replace(" us", " µs"),
    });
    verdicts.collect()
}

fn capital(sentence: &str) -> String {
    let mut rest = sentence.chars();
    let first = rest.next().map(|c| c.to_uppercase().collect::<String>());
    first.unwrap_or_default() + rest.as_str()
}

/// One verdict for each probe, those of scans excepted, under each load of each record.
pub(super) fn verdicts(sources: &[Source]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
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
            let mut about = vec![series_name(&source.record, first), load(first)];
            about.extend(first.profile.clone());
            if sources.len() > 1 {
                about.insert(0, source.name.clone());
            }
            verdicts.push(verdict(about.join(" · "), &group));
        }
    }
    verdicts
}

fn verdict(about: String, group: &[&Series]) -> Verdict {
    let (mut raw, mut whole) = (Histogram::new(), Histogram::new());
    for series in group {
        let histogram = distribution(series);
        whole.add(corrected(series, &histogram).as_ref().unwrap_or(&histogram));
        raw.add(&histogram);
    }
    let worst = group.iter().max_by_key(|series| series.max);
    let text = match worst.filter(|_| raw.count() > 0) {
        Some(worst) => format!(
            "worst {} on CPU {}, p99.9 {} over {} samples",
            micro(worst.max),
            worst.cpu,
            micro(raw.quantiles().p99_9),
            grouped(raw.count()),
        ),
        None => "no samples".to_owned(),
    };
    let but = match group.iter().map(|series| series.counts.missed).sum() {
        0 => String::new(),
        missed => format!(
            "{} periods were missed; corrected for them, p99.9 is {}",
            grouped(missed),
            micro(whole.quantiles().p99_9)
        ),
    };
    Verdict { about, text, but }
}
