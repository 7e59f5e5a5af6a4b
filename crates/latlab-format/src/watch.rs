//! Loops of a running program as a table and as JSON.

use super::table::fitted;
use super::text::plain_table;
use super::width::Width;
use super::{grouped, printable};
use latlab_core::histogram::Histogram;
use latlab_core::record::Disturbed;
use latlab_core::watch::{ThreadUsage, WatchedLoop};
use serde_json::{Value, json};

/// A loop, with the usage of its thread and the last CPU of the thread.
pub struct Shown {
    /// What was measured.
    pub seen: WatchedLoop,
    /// What the kernel counted.
    pub usage: ThreadUsage,
    /// The CPU that the thread was last on.
    pub cpu: u32,
}

impl Shown {
    /// A loop whose thread was not looked at yet.
    pub fn new(seen: WatchedLoop) -> Shown {
        Shown { usage: seen.before, cpu: 0, seen }
    }

    fn disturbed(&self) -> Disturbed {
        self.seen.disturbed(self.usage)
    }

    /// `fifo 80`, `deadline`.
    fn policy(&self) -> String {
        match self.seen.priority {
            0 => self.seen.policy.to_owned(),
            priority => format!("{} {priority}", self.seen.policy),
        }
    }
}

const COLUMNS: [&str; 14] = [
    "loop",
    "policy",
    "period",
    "cycles",
    "overruns",
    "missed",
    "faults",
    "late min",
    "median",
    "99.9 %",
    "max",
    "running median",
    "99.9 %",
    "max",
];

/// Columns that a narrow terminal does not show, the least important first.
const OPTIONAL: [usize; 9] = [12, 7, 11, 1, 6, 5, 13, 8, 9];

/// Returns a row for each loop.
pub fn text(loops: &[&Shown], width: Width) -> String {
    let mut table = plain_table(&COLUMNS);
    for one in loops {
        let WatchedLoop { lateness, running, .. } = &one.seen;
        let Disturbed { minor_faults, major_faults, .. } = one.disturbed();
        let name = match one.seen.state {
            "running" => printable(&one.seen.name),
            state => format!("{} ({state})", printable(&one.seen.name)),
        };
        let times = [
            lateness.min(),
            lateness.quantile(0.5),
            lateness.quantile(0.999),
            lateness.max(),
            running.quantile(0.5),
            running.quantile(0.999),
            running.max(),
        ];
        let counts = [
            lateness.count(),
            one.seen.overruns,
            one.seen.missed,
            minor_faults.saturating_add(major_faults),
        ];
        let cells = [name, one.policy(), one.seen.period.to_string()];
        let cells = cells.into_iter().chain(counts.map(grouped));
        table.add_row(cells.chain(times.map(|time| time.to_string())));
    }
    fitted(table, width, &OPTIONAL).text + "\n"
}

/// Returns the table with control sequences that replace the contents of the screen.
pub fn screen(loops: &[&Shown], width: Width) -> String {
    let lines = width.lay_out(&text(loops, width)).replace('\n', "\x1b[K\n");
    format!("\x1b[H{lines}\x1b[J")
}

/// Returns a line of JSON.
pub fn json(loops: &[&Shown]) -> String {
    let loops: Vec<Value> = loops.iter().map(|one| object(one)).collect();
    json!({ "loops": loops }).to_string() + "\n"
}

fn object(one: &Shown) -> Value {
    let seen = &one.seen;
    let disturbed = one.disturbed();
    json!({
        "name": seen.name,
        "thread": seen.thread,
        "policy": seen.policy,
        "priority": seen.priority,
        "period": seen.period,
        "spin": seen.spin,
        "on_overrun": seen.on_overrun,
        "state": seen.state,
        "cycles": seen.lateness.count(),
        "overruns": seen.overruns,
        "missed": seen.missed,
        "minor_faults": disturbed.minor_faults,
        "major_faults": disturbed.major_faults,
        "preempted": disturbed.preempted,
        "cpu_time": one.usage.cpu - seen.before.cpu,
        "lateness": times(&seen.lateness),
        "running": times(&seen.running),
    })
}

fn times(histogram: &Histogram) -> Value {
    json!({
        "min": histogram.min(),
        "median": histogram.quantile(0.5),
        "p99.9": histogram.quantile(0.999),
        "max": histogram.max(),
    })
}
