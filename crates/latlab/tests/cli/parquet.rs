//! Records as Parquet, read by DuckDB and pandas.

use crate::program::{Missing, folder, latlab, not_run};
use latlab_core::record::{Charge, Figure, Record};
use latlab_core::time::Nanos;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Reads all tables with both libraries and prints their contents, line by line.
const READER: &str = r#"
import json, sys
import duckdb, pandas
folder = sys.argv[1]
def ask(text):
    rows = duckdb.sql(text.replace("@", folder + "/")).fetchall()
    print(*[value for row in rows for value in row])
ask("select record, series, probe, sum_ns, max_ns, recorded, missed, p99_9_ns, interval_ns from '@series.parquet' order by record, series")
ask("select series.record, sum(count)::bigint, min(value_ns), bool_and(value_ns < below_ns) from '@samples.parquet' samples join '@series.parquet' series using (record, series) group by all order by 1")
ask("select rank, latency_ns, unexplained_ns, sum(ns)::bigint from '@worst.parquet' where cause is not null group by all order by 1")
ask("select cause, culprit, stack from '@worst.parquet' where cause is not null order by from_ns")
ask("select count(*) from '@worst.parquet' where cause is null")
ask("select record, name, value, unit, profile from '@figures.parquet'")
for name in ["series", "samples", "worst", "figures"]:
    by_pandas, by_duckdb = pandas.read_parquet(f"{folder}/{name}.parquet"), duckdb.sql(f"select * from '{folder}/{name}.parquet'")
    assert list(by_pandas.columns) == by_duckdb.columns, name
    rows = [[None if value is None or value != value else value for value in row] for row in by_pandas.astype(object).values.tolist()]
    assert rows == [list(row) for row in by_duckdb.fetchall()], name
    about = dict(duckdb.sql(f"select key, value from parquet_kv_metadata('{folder}/{name}.parquet')").fetchall())
    assert about[b"latlab.schema"] == b"2", about
    records = json.loads(about[b"latlab.records"])
    assert [record["record"] for record in records] == ["one", "two"], records
    assert records[0]["plan"]["probes"][0]["name"] == "cyclic", records
print("both agree")
"#;

/// Returns a Python with DuckDB and pandas, in a virtual environment that is kept in the target
/// folder. None, with a record that the test is not run, if it cannot be installed.
fn python() -> Option<PathBuf> {
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let python = venv.join("bin/python");
    let is_complete = || {
        let mut command = Command::new(&python);
        let output = command.args(["-c", "import duckdb, pandas, pyarrow"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    if is_complete() {
        return Some(python);
    }
    let steps: [(&Path, &[&str]); 2] = [
        (Path::new("python3"), &["-m", "venv"]),
        (&python, &["-m", "pip", "install", "--quiet", "duckdb", "pandas", "pyarrow"]),
    ];
    for (program, words) in steps {
        let mut command = Command::new(program);
        command.args(words);
        if words.ends_with(&["venv"]) {
            command.arg(&venv);
        }
        let output = command.output().map_or_else(
            |e| e.to_string(),
            |output| {
                if output.status.success() {
                    return String::new();
                }
                String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
            },
        );
        if let Some(why) = output.lines().rfind(|line| !line.trim().is_empty()) {
            let needs = "a part of it needs python3-venv, and duckdb, pandas and pyarrow from PyPI";
            not_run(Missing::Required, &format!("{needs}: {why}"));
            return None;
        }
    }
    assert!(is_complete(), "the packages were installed");
    Some(python)
}

/// Creates a record with a figure and an explained worst sample.
fn record(path: &Path) -> Record {
    let output =
        latlab(&format!("run --policy other --for 300ms --cpus 0 --json --out {}", path.display()));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let mut record = output.record();
    let worst = &mut record.worst[0];
    let part = |cause: &str, from, ns, who: &str, stack: &[&str]| Charge {
        cause: cause.to_owned(),
        from: Nanos(from),
        ns: Nanos(ns),
        culprit: who.to_owned(),
        stack: stack.iter().map(ToString::to_string).collect(),
    };
    worst.causes =
        vec![part("interrupt", 0, 20, "timer", &["b", "a"]), part("softirq", 20, 5, "", &[])];
    worst.unexplained = Some(worst.latency - Nanos(25));
    record.figures = vec![Figure {
        probe: "cyclic".to_owned(),
        name: "a \"name\", quoted".to_owned(),
        value: 1.5,
        unit: "µs".to_owned(),
        load: Vec::new(),
        profile: None,
    }];
    fs::write(path, record.to_json()).expect("the folder can be written");
    record
}

#[test]
fn parquet_tables_are_read_by_duckdb_and_pandas() {
    let folder = folder();
    let inside = |name: &str| folder.path().join(name);
    let records = [record(&inside("one.json")), record(&inside("two.json"))];
    let [one, two] = ["one.json", "two.json"].map(|name| inside(name).display().to_string());
    let (page, tables) = (inside("page.html"), inside("tables"));
    let words = format!("report {one} {two} -o {} --parquet {}", page.display(), tables.display());
    let output = latlab(&words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let sizes = |folder: &Path| {
        ["series", "samples", "worst", "figures"].map(|name| {
            fs::read(folder.join(format!("{name}.parquet"))).expect("the table is written")
        })
    };
    let before = sizes(&tables);
    assert!(before.iter().all(|bytes| bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")));
    latlab(&words);
    assert!(sizes(&tables) == before, "the same records give the same bytes");

    let Some(python) = python() else { return };
    let read = Command::new(python).args(["-c", READER]).arg(&tables).output();
    let read = read.expect("python starts");
    let output = String::from_utf8_lossy(&read.stdout);
    assert!(read.status.success(), "{output}{}", String::from_utf8_lossy(&read.stderr));
    let mut lines = output.lines();
    let mut next = || lines.next().expect("there is a line for each query").to_owned();
    let of_both = |of: &dyn Fn(&str, &Record) -> String| {
        let all = ["one", "two"].iter().zip(&records).map(|(name, record)| of(name, record));
        all.collect::<Vec<_>>().join(" ")
    };
    let series = of_both(&|name, record| {
        let one = &record.series[0];
        let (counts, p99_9) = (one.counts, one.quantiles.p99_9.0);
        let (sum, max) = (one.sum, one.max.0);
        format!("{name} 0 cyclic {sum} {max} {} {} {p99_9} 1000000", counts.recorded, counts.missed)
    });
    assert_eq!(next(), series);
    let samples = of_both(&|name, record| {
        let histogram = record.series[0].histogram().expect("the histogram is valid");
        let least = histogram.buckets().next().expect("the histogram has samples").from.0;
        format!("{name} {} {least} True", histogram.count())
    });
    assert_eq!(next(), samples);
    let explained = next();
    for record in &records {
        let latency = record.worst[0].latency.0;
        assert!(explained.contains(&format!("1 {latency} {} 25", latency - 25)), "{explained}");
    }
    assert_eq!(next(), "interrupt timer b;a interrupt timer b;a softirq  None softirq  None");
    let others: usize = records.iter().map(|record| record.worst.len() - 1).sum();
    assert_eq!(next(), others.to_string());
    assert_eq!(next(), "one a \"name\", quoted 1.5 µs None two a \"name\", quoted 1.5 µs None");
    assert_eq!(next(), "both agree");
}
