//! Tables of the measured numbers: series, latencies, worst samples, figures.

use super::Scope;
use super::explained::largest;
use super::figure::Level;
use super::table::{number, per_record, section, words};
use crate::picture::{load, names};
use crate::{at_least, decimal, grouped, lower_bound, micro, scheduling};
use latlab_core::histogram::Quantiles;
use latlab_core::record::Series;
use maud::{Markup, html};

/// All tables of numbers; one without rows is left out.
pub(super) fn tables(scope: Scope<'_>) -> Markup {
    let names = names(scope.sources);
    let series: Vec<(&String, &Series)> =
        names.iter().zip(scope.sources.iter().flat_map(|source| &source.record.series)).collect();
    html! {
        (latencies(scope.level, &series))
        (conditions(scope.level, &series))
        (counts(scope.level, &series))
        (worst(scope))
        (figures(scope))
    }
}

fn latencies(level: Level, series: &[(&String, &Series)]) -> Markup {
    let mut rows = Vec::new();
    for (name, series) in series {
        let values = |q: &Quantiles| q.named().map(|(_, value)| at_least(series, value, micro));
        let mut row =
            vec![(*name).clone(), micro(series.min), lower_bound(series, series.mean, micro)];
        row.extend(values(&series.quantiles));
        row.push(micro(series.max));
        rows.push(row);
        if series.corrected != series.quantiles {
            let mut row = vec![format!("{name} · corrected"), String::new(), String::new()];
            let bound = |(_, value)| lower_bound(series, value, micro);
            row.extend(series.corrected.named().map(bound));
            row.push(String::new());
            rows.push(row);
        }
    }
    let columns = [
        words("Series"),
        number("min"),
        number("mean"),
        number("p50"),
        number("p90"),
        number("p99"),
        number("p99.9"),
        number("p99.99"),
        number("max"),
    ];
    let note = "p99: latency that 99 of 100 samples do not exceed. Corrected: for coordinated \
                omission, with samples for missed periods, except those shorter than a period; only shown where it \
                differs.";
    section(level, "Latencies", note, &columns, &rows)
}

fn conditions(level: Level, series: &[(&String, &Series)]) -> Markup {
    let row = |(name, series): &(&String, &Series)| {
        vec![
            (*name).clone(),
            format!("{} → {}", series.span.0, series.span.1),
            load(series),
            scheduling(series),
            series.interval.map(micro).unwrap_or_default(),
            series.first.map(micro).unwrap_or_default(),
            series.warm_up.map(|warm_up| micro(warm_up.max)).unwrap_or_default(),
        ]
    };
    let columns = [
        words("Series"),
        words("from → to"),
        words("load"),
        words("scheduling"),
        number("interval"),
        number("first sample"),
        number("max of warm-up"),
    ];
    let rows: Vec<Vec<String>> = series.iter().map(row).collect();
    section(level, "Measurement conditions", "", &columns, &rows)
}

fn counts(level: Level, series: &[(&String, &Series)]) -> Markup {
    let row = |(name, series): &(&String, &Series)| {
        let (counts, disturbed) = (&series.counts, &series.disturbed);
        let faults = disturbed.minor_faults + disturbed.major_faults;
        let numbers =
            [counts.recorded, counts.missed, counts.below_zero, disturbed.preempted, faults];
        std::iter::once((*name).clone()).chain(numbers.map(grouped)).collect()
    };
    let columns = [
        words("Series"),
        number("recorded"),
        number("missed"),
        number("below zero"),
        number("preempted"),
        number("page faults"),
    ];
    let note = "Recorded + missed = all periods that passed. Below zero: samples earlier than due, \
                counted as 0.";
    let rows: Vec<Vec<String>> = series.iter().map(row).collect();
    section(level, "Samples", note, &columns, &rows)
}

fn worst(scope: Scope<'_>) -> Markup {
    let columns = [
        words("probe"),
        number("CPU"),
        number("at"),
        number("latency"),
        words("causes"),
        number("unexplained"),
    ];
    per_record(scope, "Worst samples", &columns, |record| {
        let samples = record.worst.iter().map(|sample| {
            vec![
                sample.probe.clone(),
                record.cpus_of(sample).to_string(),
                micro(sample.at),
                micro(sample.latency),
                largest(record, sample),
                sample.unexplained.map(micro).unwrap_or_default(),
            ]
        });
        samples.collect()
    })
}

fn figures(scope: Scope<'_>) -> Markup {
    let columns = [
        words("probe"),
        words("figure"),
        number("value"),
        words("unit"),
        words("load"),
        words("profile"),
    ];
    per_record(scope, "Figures", &columns, |record| {
        let figures = record.figures.iter().map(|figure| {
            vec![
                figure.probe.clone(),
                figure.name.clone(),
                decimal(figure.value),
                figure.unit.clone(),
                figure.load.join(" + "),
                figure.profile.clone().unwrap_or_default(),
            ]
        });
        figures.collect()
    })
}
