//! Contents of the Parquet tables.

use super::{Column, Table, Values};
use crate::picture::NamedRecord;
use latlab_core::histogram::Histogram;
use latlab_core::record::{Charge, Figure, Sample, Series};
use latlab_core::time::Nanos;

/// A table that grows row by row.
struct Rows(Table);

impl Rows {
    fn of(name: &'static str) -> Rows {
        Rows(Table { name, columns: Vec::new() })
    }

    /// Adds a row; all rows of a table have the same columns.
    fn add(&mut self, row: Vec<(&'static str, Datum)>) {
        if self.0.columns.is_empty() {
            self.0.columns = row.iter().map(|(name, value)| value.column(name)).collect();
        }
        for (column, (_, value)) in self.0.columns.iter_mut().zip(row) {
            match (&mut column.values, value) {
                (Values::Text(all), Datum::Text(one)) => all.push(one),
                (Values::Count(all), Datum::Count(one)) => all.push(one),
                (Values::Large(all), Datum::Large(one)) => all.push(one),
                (Values::Number(all), Datum::Number(one)) => all.push(one),
                _ => unreachable!("the same code makes all rows of a table"),
            }
        }
    }
}

/// Value of one row in one column.
enum Datum {
    Text(Option<String>),
    Count(Option<u64>),
    Large(Option<u128>),
    Number(Option<f64>),
}

impl Datum {
    fn column(&self, name: &'static str) -> Column {
        let values = match self {
            Datum::Text(_) => Values::Text(Vec::new()),
            Datum::Count(_) => Values::Count(Vec::new()),
            Datum::Large(_) => Values::Large(Vec::new()),
            Datum::Number(_) => Values::Number(Vec::new()),
        };
        Column { name, values }
    }
}

fn text(value: &str) -> Datum {
    Datum::Text(Some(value.to_owned()))
}

fn maybe(value: Option<&str>) -> Datum {
    Datum::Text(value.map(str::to_owned))
}

fn count(value: u64) -> Datum {
    Datum::Count(Some(value))
}

fn time(value: impl Into<Option<Nanos>>) -> Datum {
    Datum::Count(value.into().map(|time| time.0))
}

fn index(nth: usize) -> Datum {
    Datum::Count(u64::try_from(nth).ok())
}

/// Returns the tables of these records, without those that have no rows.
pub(super) fn tables(sources: &[NamedRecord]) -> Vec<Table> {
    let mut all = ["series", "samples", "worst", "figures"].map(Rows::of);
    let [series, samples, worst, figures] = &mut all;
    for source in sources {
        for (nth, one) in source.record.series.iter().enumerate() {
            series.add(series_row(source, nth, one));
            // Records whose histograms can't be decoded are refused when they are read.
            for bucket in one.histogram().iter().flat_map(Histogram::buckets) {
                samples.add(vec![
                    ("record", text(&source.name)),
                    ("series", index(nth)),
                    ("value_ns", time(bucket.from)),
                    ("below_ns", time(bucket.to)),
                    ("count", count(bucket.count)),
                ]);
            }
        }
        for (nth, sample) in source.record.worst.iter().enumerate() {
            for row in worst_rows(source, nth, sample) {
                worst.add(row);
            }
        }
        for figure in &source.record.figures {
            figures.add(figure_row(source, figure));
        }
    }
    all.into_iter().map(|rows| rows.0).filter(|table| !table.columns.is_empty()).collect()
}

fn series_row(source: &NamedRecord, nth: usize, series: &Series) -> Vec<(&'static str, Datum)> {
    let (record, warm_up) = (&source.record, series.warm_up);
    let (raw, corrected) = (series.quantiles, series.corrected);
    vec![
        ("record", text(&source.name)),
        ("series", index(nth)),
        ("target", text(&record.plan.target)),
        ("kernel", text(&record.machine.kernel)),
        ("time_domain", text(record.machine.time_domain.word())),
        ("started_ns", time(record.started)),
        ("runs", count(record.runs)),
        ("seed", count(record.plan.seed)),
        ("probe", text(&series.probe)),
        ("span_from", text(&series.span.0)),
        ("span_to", text(&series.span.1)),
        ("cpu", count(series.cpu.into())),
        ("cpus", text(&series.cpus().to_string())),
        ("load", text(&series.load.join(" "))),
        ("profile", maybe(series.profile.as_deref())),
        ("policy", text(&series.schedule.policy)),
        ("priority", count(series.schedule.priority.into())),
        ("slack_ns", time(series.schedule.slack)),
        ("interval_ns", time(series.interval)),
        ("recorded", count(series.counts.recorded)),
        ("missed", count(series.counts.missed)),
        ("below_zero", count(series.counts.below_zero)),
        ("min_ns", time(series.min)),
        ("max_ns", time(series.max)),
        ("mean_ns", time(series.mean)),
        ("stddev_ns", time(series.stddev)),
        ("sum_ns", Datum::Large(Some(series.sum))),
        ("p50_ns", time(raw.p50)),
        ("p90_ns", time(raw.p90)),
        ("p99_ns", time(raw.p99)),
        ("p99_9_ns", time(raw.p99_9)),
        ("p99_99_ns", time(raw.p99_99)),
        ("corrected_p50_ns", time(corrected.p50)),
        ("corrected_p90_ns", time(corrected.p90)),
        ("corrected_p99_ns", time(corrected.p99)),
        ("corrected_p99_9_ns", time(corrected.p99_9)),
        ("corrected_p99_99_ns", time(corrected.p99_99)),
        ("first_ns", time(series.first)),
        ("warm_up_recorded", Datum::Count(warm_up.map(|warm_up| warm_up.recorded))),
        ("warm_up_missed", Datum::Count(warm_up.map(|warm_up| warm_up.missed))),
        ("warm_up_max_ns", time(warm_up.map(|warm_up| warm_up.max))),
        ("warm_up_sum_ns", Datum::Large(warm_up.map(|warm_up| warm_up.sum))),
        ("minor_faults", count(series.disturbed.minor_faults)),
        ("major_faults", count(series.disturbed.major_faults)),
        ("preempted", count(series.disturbed.preempted)),
        ("cpu_ns", time(series.cpu_ns)),
    ]
}

/// Returns a row for each charge, or one without a cause if the sample has no explanation.
fn worst_rows(
    source: &NamedRecord,
    nth: usize,
    sample: &Sample,
) -> Vec<Vec<(&'static str, Datum)>> {
    let row = |charge: Option<&Charge>| {
        let stack = charge.map(|charge| charge.stack.join(";")).filter(|stack| !stack.is_empty());
        vec![
            ("record", text(&source.name)),
            ("rank", index(nth + 1)),
            ("probe", text(&sample.probe)),
            ("cpu", count(sample.cpu.into())),
            ("at_ns", time(sample.at)),
            ("latency_ns", time(sample.latency)),
            ("index", Datum::Count(sample.index)),
            ("unexplained_ns", time(sample.unexplained)),
            ("cause", maybe(charge.map(|charge| charge.cause.as_str()))),
            ("from_ns", time(charge.map(|charge| charge.from))),
            ("ns", time(charge.map(|charge| charge.ns))),
            ("culprit", maybe(charge.map(|charge| charge.culprit.as_str()))),
            ("stack", Datum::Text(stack)),
        ]
    };
    if sample.causes.is_empty() {
        return vec![row(None)];
    }
    sample.causes.iter().map(|charge| row(Some(charge))).collect()
}

fn figure_row(source: &NamedRecord, figure: &Figure) -> Vec<(&'static str, Datum)> {
    vec![
        ("record", text(&source.name)),
        ("probe", text(&figure.probe)),
        ("name", text(&figure.name)),
        ("value", Datum::Number(Some(figure.value))),
        ("unit", text(&figure.unit)),
        ("load", text(&figure.load.join(" "))),
        ("profile", maybe(figure.profile.as_deref())),
    ]
}
