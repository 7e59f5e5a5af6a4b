//! Headlines of a report: maximum, p99.9 and number of samples of each latency, and why it was late.

use crate::picture::{NamedRecord, corrected, distribution, load};
use crate::{at_least, capital, grouped, lower_bound, micro, printable, series_name, with_micro};
use latlab_core::compare::compare;
use latlab_core::histogram::Histogram;
use latlab_core::path::Off;
use latlab_core::record::Series;
use latlab_core::time::Nanos;
use latlab_core::verdict::leading_causes;

/// Functions of the worst sample that are named.
const BUSIEST: usize = 3;

/// One sentence about one latency of all CPUs.
pub(super) struct Headline {
    /// The latency it is about.
    pub(super) subject: String,
    /// The result.
    pub(super) text: String,
    /// Further results and qualifications, such as missed periods, one line each.
    pub(super) notes: Vec<String>,
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
    let headlines = comparison.latencies.iter().zip(names).map(|(latency, name)| {
        let text = capital(&latency.sentence());
        let worst = capital(&latency.worst.words_of([&a.name, &b.name]));
        // The sentence on an inconclusive result names the design already.
        let known = text.to_lowercase().contains(design.to_lowercase().trim_end_matches('.'));
        let note = if known { worst } else { format!("{worst}. {design}") };
        Headline {
            subject: printable(&format!("{name} · {sides}")),
            text: with_micro(&text),
            notes: vec![with_micro(&printable(&note))],
        }
    });
    headlines.collect()
}

/// A headline for each configuration of a probe under each load of each record, without the probes of
/// scans.
pub(super) fn probe_headlines(sources: &[NamedRecord]) -> Vec<Headline> {
    let mut headlines = Vec::new();
    for source in sources {
        let mut rest: Vec<&Series> =
            source.record.series.iter().filter(|series| !series.is_of_scan()).collect();
        while let Some(first) = rest.first().copied() {
            let (group, others) = rest.into_iter().partition(|one| one.same_conditions(first));
            rest = others;
            let name = with_micro(&series_name(&source.record, first));
            let mut subject = vec![name, load(first)];
            if sources.len() > 1 {
                subject.insert(0, source.name.clone());
            } else {
                subject.extend(first.profile.clone());
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
    let bounded = group.iter().find(|series| series.beyond.is_some()).unwrap_or(&group[0]);
    let text = match worst.filter(|_| measured.count() > 0) {
        Some(worst) => format!(
            "max {} on {}, p99.9 {}, {} samples",
            micro(worst.max),
            worst.cpus().in_words(),
            at_least(bounded, measured.quantiles().p99_9, micro),
            grouped(measured.count()),
        ),
        None => "no samples".to_owned(),
    };
    let missed = group.iter().map(|series| series.counts.missed).sum();
    let note = (missed > 0).then(|| {
        format!(
            "{} periods were missed; corrected for them, p99.9 is {}",
            grouped(missed),
            lower_bound(bounded, whole.quantiles().p99_9, micro)
        )
    });
    Headline { subject, text, notes: note.into_iter().collect() }
}

/// A headline for each explained record: the leading causes of its late wake-ups, with remedies.
pub(super) fn cause_headlines(sources: &[NamedRecord]) -> Vec<Headline> {
    let several = sources.len() > 1;
    let headlines = sources.iter().filter_map(|source| {
        let causes = leading_causes(&source.record).into_iter();
        let mut causes = causes.map(|line| with_micro(&printable(&line)));
        let name = if several { format!("{} · ", source.name) } else { String::new() };
        let subject = format!("{name}why wake-ups were late");
        Some(Headline { subject, text: causes.next()?, notes: causes.collect() })
    });
    headlines.collect()
}

/// A headline for each record with tried remedies: their effects, and how to keep the helpful ones.
pub(super) fn proof_headlines(sources: &[NamedRecord]) -> Vec<Headline> {
    let several = sources.len() > 1;
    let headlines = sources.iter().filter_map(|source| {
        let proofs = source.record.proofs.as_ref()?;
        let mut lines = proofs.sentences(|time| time.to_string()).into_iter();
        let mut lines = lines.by_ref().map(|line| with_micro(&printable(&line)));
        let name = if several { format!("{} · ", source.name) } else { String::new() };
        let subject = format!("{name}what helped against it");
        Some(Headline { subject, text: lines.next()?, notes: lines.collect() })
    });
    headlines.collect()
}

/// A headline for each record of the laboratory's microscope: what delayed the worst sample.
pub(super) fn path_headlines(sources: &[NamedRecord]) -> Vec<Headline> {
    let several = sources.len() > 1;
    let headlines = sources.iter().filter_map(|source| {
        let traced = source.record.worst.iter().find(|sample| sample.path.is_some())?;
        let path = traced.path.as_ref()?;
        let busiest = path.functions.iter().take(BUSIEST);
        let busiest: Vec<String> = busiest
            .map(|spent| format!("{} {}", spent.function, micro(Nanos(spent.instructions))))
            .collect();
        let busiest = format!("most expensive functions: {}", busiest.join(", "));
        let longest = path.held.iter().max_by_key(|held| held.ns).map(|held| {
            let what = match held.what {
                Off::Interrupts => "interrupts",
                Off::Preemption => "preemption",
            };
            format!("{what} off for {} of {}", micro(held.ns), micro(traced.latency))
                + &format!(", by {}", held.function)
        });
        let mut lines = longest.into_iter().chain([busiest]).map(|line| printable(&line));
        let name = if several { format!("{} · ", source.name) } else { String::new() };
        let subject = format!("{name}why the worst wake-up was late");
        Some(Headline { subject, text: lines.next()?, notes: lines.collect() })
    });
    headlines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::tests::source;

    /// CPU 2 has another interval, and CPU 1 another policy.
    #[test]
    fn configurations_of_a_probe_have_headlines_of_their_own() {
        let mut source = source("run", 1);
        source.record.series[2].interval = Some(Nanos::from_micros(200));
        source.record.series[1].schedule.policy = "rr".to_owned();
        let headlines = probe_headlines(&[source]);
        let subjects: Vec<&str> = headlines.iter().map(|one| one.subject.as_str()).collect();
        assert_eq!(
            subjects,
            [
                "cyclic, every 1 ms, fifo 90 · disk",
                "cyclic, every 1 ms, rr 90 · disk",
                "cyclic, every 200 µs, fifo 90 · disk",
            ]
        );
        assert!(headlines[0].text.contains(" on CPU 0, ") && headlines[0].notes.is_empty());
    }
}
