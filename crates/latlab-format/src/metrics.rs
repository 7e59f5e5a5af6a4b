//! Metrics for Prometheus (text format 0.0.4): of the adaptation daemon and, in a file, of a
//! measurement.

pub mod run;

use latlab_mechanism::Mode;
use latlab_mechanism::status::Status;
use latlab_mechanism::violations::Violations;
use std::fmt::{Display, Write as _};

/// Returns the page of the daemon, which Prometheus scrapes.
pub fn page(status: &Status) -> String {
    let mut page = String::new();
    if let Some(tasks) = status.realtime_tasks {
        let help = "User tasks with a real-time scheduling policy.";
        one(&mut page, "latlab_realtime_tasks", "gauge", help, tasks);
    }
    if let Some(mode) = status.mode {
        let latency = u8::from(mode == Mode::Latency);
        let help = "1 in latency mode, while there are real-time tasks and for a second after the last; 0 \
             in throughput mode.";
        one(&mut page, "latlab_latency_mode", "gauge", help, latency);
    }
    let help = "Knobs that are set now, scheduling policies of threads included.";
    one(&mut page, "latlab_knobs_turned", "gauge", help, status.changes.len());
    let help = "Decisions to set a knob, to restore it, or to leave it alone.";
    let count = |name: &String| status.decisions.get(name).copied().unwrap_or_default();
    let names = status.mechanisms.iter();
    let per: Vec<(&str, u64)> = names.map(|name| (name.as_str(), count(name))).collect();
    each(&mut page, "latlab_decisions_total", "counter", help, ("mechanism", &per));
    let asked: Vec<(&str, u64)> = status.asked().into_iter().collect();
    let help = "Processes that request a device group.";
    each(&mut page, "latlab_requests", "gauge", help, ("group", &asked));
    let help = "Requests that were refused.";
    one(&mut page, "latlab_requests_refused_total", "counter", help, status.refused);
    if let Some(Violations { by_interrupts, by_others, .. }) = status.violations {
        let help = "Wake-ups of real-time tasks by tasks of lower priority.";
        let by = [("interrupts", by_interrupts), ("others", by_others)];
        each(&mut page, "latlab_violations_total", "counter", help, ("by", &by));
    }
    let help = "CPU time of all threads of the daemon.";
    let seconds = status.cpu.as_secs_f64();
    one(&mut page, "latlab_cpu_seconds_total", "counter", help, seconds);
    if let Some(programs) = status.programs {
        let help = "CPU time of the BPF programs while they were accounted.";
        let seconds = programs.taken.as_secs_f64();
        one(&mut page, "latlab_bpf_cpu_seconds_total", "counter", help, seconds);
        let help = "Time during which the BPF programs were accounted: one second per minute.";
        let seconds = programs.counted.as_secs_f64();
        one(&mut page, "latlab_bpf_counted_seconds_total", "counter", help, seconds);
    }
    page
}

fn one(page: &mut String, name: &str, kind: &str, help: &str, value: impl Display) {
    let _ = write!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
}

/// Writes a metric with a value for each label.
fn each(
    page: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    (label, values): (&str, &[(&str, u64)]),
) {
    let _ = write!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    for (of, value) in values {
        // Names of mechanisms and groups contain no character that must be escaped.
        let _ = writeln!(page, "{name}{{{label}=\"{of}\"}} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::time::Nanos;
    use latlab_mechanism::Request;
    use latlab_mechanism::violations::BpfCost;

    #[test]
    fn page_has_prometheus_format() {
        let status = Status {
            mechanisms: ["suppress", "mode"].map(str::to_owned).to_vec(),
            mode: Some(Mode::Latency),
            realtime_tasks: Some(1),
            requests: vec![Request { process: 9, thread: None, groups: vec!["AUDIO".to_owned()] }],
            decisions: [("suppress".to_owned(), 4)].into(),
            refused: 3,
            violations: Some(Violations {
                by_interrupts: 5,
                by_others: 6,
                ..Violations::default()
            }),
            cpu: Nanos::from_millis(1500),
            programs: Some(BpfCost { counted: Nanos::from_secs(1), taken: Nanos::from_millis(3) }),
            ..Status::default()
        };
        let page = page(&status);
        let values: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "latlab_realtime_tasks 1",
            "latlab_latency_mode 1",
            "latlab_knobs_turned 0",
            "latlab_decisions_total{mechanism=\"suppress\"} 4",
            "latlab_decisions_total{mechanism=\"mode\"} 0",
            "latlab_requests{group=\"AUDIO\"} 1",
            "latlab_requests_refused_total 3",
            "latlab_violations_total{by=\"interrupts\"} 5",
            "latlab_violations_total{by=\"others\"} 6",
            "latlab_cpu_seconds_total 1.5",
            "latlab_bpf_cpu_seconds_total 0.003",
            "latlab_bpf_counted_seconds_total 1",
        ];
        assert_eq!(values, expected);
        for line in page.lines().filter(|line| line.starts_with('#')) {
            assert!(line.starts_with("# HELP latlab_") || line.starts_with("# TYPE latlab_"));
        }
        assert!(page.ends_with('\n'));
    }
}
