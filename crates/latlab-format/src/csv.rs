//! Series of records as CSV (RFC 4180): a row for each series, times in nanoseconds.

use latlab_core::record::{Record, Series};
use latlab_core::time::Nanos;

/// The columns. Their names and order are stable; new ones are added at the end.
const COLUMNS: [&str; 24] = [
    "target",
    "kernel",
    "probe",
    "span_from",
    "span_to",
    "cpus",
    "policy",
    "priority",
    "recorded",
    "missed",
    "min_ns",
    "mean_ns",
    "stddev_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "p99_9_ns",
    "p99_99_ns",
    "max_ns",
    "corrected_p50_ns",
    "corrected_p90_ns",
    "corrected_p99_ns",
    "corrected_p99_9_ns",
    "corrected_p99_99_ns",
];

/// Returns the line with the names of the columns.
pub fn header() -> String {
    lines([COLUMNS])
}

/// Returns a line for each series of a record.
pub fn series(record: &Record) -> String {
    lines(record.series.iter().map(|series| row(record, series)))
}

fn row(record: &Record, series: &Series) -> [String; COLUMNS.len()] {
    let ns = |Nanos(time): Nanos| time.to_string();
    let (q, c) = (series.quantiles, series.corrected);
    [
        record.plan.target.clone(),
        record.machine.kernel.clone(),
        series.probe.clone(),
        series.span.0.clone(),
        series.span.1.clone(),
        series.cpus().to_string(),
        series.schedule.policy.clone(),
        series.schedule.priority.to_string(),
        series.counts.recorded.to_string(),
        series.counts.missed.to_string(),
        ns(series.min),
        ns(series.mean),
        ns(series.stddev),
        ns(q.p50),
        ns(q.p90),
        ns(q.p99),
        ns(q.p99_9),
        ns(q.p99_99),
        ns(series.max),
        ns(c.p50),
        ns(c.p90),
        ns(c.p99),
        ns(c.p99_9),
        ns(c.p99_99),
    ]
}

/// Returns rows as lines, with quotation marks where they are necessary.
pub fn lines<T: AsRef<[u8]>, R: IntoIterator<Item = T>>(
    rows: impl IntoIterator<Item = R>,
) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.write_record(row).expect("rows have as many fields, and memory takes them");
    }
    let bytes = writer.into_inner().expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("the fields are UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::tests::source;

    #[test]
    fn series_has_a_field_for_each_column() {
        let mut record = source("", 3).record;
        record.series[0].span.1 = "a \"b\", c".to_owned();
        let text = header() + &series(&record);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap(), &csv::StringRecord::from(COLUMNS.to_vec()));
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), record.series.len());
        assert_eq!(&rows[0][4], "a \"b\", c");
        assert_eq!(rows[0][18], record.series[0].max.0.to_string());
    }
}
