//! Worst wake-ups as a trace for Perfetto (ui.perfetto.dev), in JSON Trace Event Format: a track
//! for each probe and CPU, a slice for each wake-up, and inside of it a slice for each charge; and
//! what a CPU did before the sample that ended the run, in one track for tasks and one for
//! interrupts.
//!
//! Slices of a track must be nested or disjoint, so tasks of one name that wait at the same time
//! have separate tracks. A slice is a pair of begin and end events rather than one event with a
//! duration: readers add durations in binary, and then a part may end after the whole.

use super::output::{self, Destination, Format};
use super::picture::NamedRecord;
use super::{micro, printable};
use latlab_core::record::explained::{Activity, History, Kind};
use latlab_core::record::{Charge, Sample};
use latlab_core::time::Nanos;
use latlab_part::part::About;
use serde_json::{Value, json};
use std::cmp::Reverse;

/// The format in the table of output formats.
pub(super) const FORMAT: Format = Format {
    about: About {
        name: "perfetto",
        summary: "Write the worst wake-ups and their causes as a trace for ui.perfetto.dev",
    },
    option: "perfetto",
    short: None,
    destination: Destination::File,
    needs_explanation: true,
    write: |contents, path| output::write(path, trace(contents.sources).as_bytes()),
};

/// Returns the trace, in which each record is a process.
pub fn trace(sources: &[NamedRecord]) -> String {
    let records = (1u32..).zip(sources).flat_map(|(pid, source)| record(pid, source));
    let events: Vec<Value> = records.collect();
    let trace = json!({ "displayTimeUnit": "ns", "traceEvents": events });
    format!("{trace}\n")
}

fn record(pid: u32, source: &NamedRecord) -> Vec<Value> {
    let mut events = vec![name("process_name", pid, 0, &source.name)];
    let mut tracks: Vec<Track<'_>> = Vec::new();
    let explained = source.record.worst.iter().filter(|sample| sample.unexplained.is_some());
    let mut explained: Vec<&Sample> = explained.collect();
    // Readers keep the order of the file for events of the same time.
    explained.sort_by_key(|sample| due(sample));
    for sample in explained {
        let known = tracks.iter().position(|track| track.has_room_for(sample));
        let place = known.unwrap_or_else(|| {
            tracks.push(Track(Vec::new()));
            tracks.len() - 1
        });
        tracks[place].0.push(sample);
        let tid = u32::try_from(place).unwrap_or(u32::MAX).saturating_add(1);
        if known.is_none() {
            let title = format!("{} on {}", sample.probe, source.record.cpus_of(sample).in_words());
            events.push(name("thread_name", pid, tid, &title));
        }
        events.extend(slices(pid, tid, sample));
    }
    let history = source.record.explained.as_ref().and_then(|explained| explained.history.as_ref());
    let next = u32::try_from(tracks.len()).unwrap_or(u32::MAX - 2).saturating_add(1);
    events.extend(history.into_iter().flat_map(|history| activities(pid, next, history)));
    events
}

/// Returns the activities of a CPU, in the tracks `tid` and the one after it.
fn activities(pid: u32, tid: u32, history: &History) -> Vec<Value> {
    let mut events = Vec::new();
    for (tid, kind, what) in [(tid, Kind::Task, "tasks"), (tid + 1, Kind::Interrupt, "interrupts")]
    {
        events.push(name("thread_name", pid, tid, &format!("CPU {}: {what}", history.cpu)));
        let all = history.activities.iter().filter(|one| one.kind == kind);
        let mut all: Vec<&Activity> = all.collect();
        all.sort_by_key(|one| (one.at, Reverse(one.ns)));
        let mut open: Vec<(Nanos, Value)> = Vec::new();
        for one in all {
            while let Some((_, end)) = open.pop_if(|(end, _)| *end <= one.at) {
                events.push(end);
            }
            let facts = json!({ "ns": one.ns });
            let [begin, end] = slice(pid, tid, &one.name, (one.at, one.ns), &facts);
            events.push(begin);
            open.push((one.at + one.ns, end));
        }
        events.extend(open.into_iter().rev().map(|(_, end)| end));
    }
    events
}

/// Wake-ups of one name on one CPU that do not overlap.
struct Track<'a>(Vec<&'a Sample>);

impl Track<'_> {
    fn has_room_for(&self, sample: &Sample) -> bool {
        self.0.iter().all(|other| {
            let apart = other.at <= due(sample) || sample.at <= due(other);
            (&other.probe, other.cpu) == (&sample.probe, sample.cpu) && apart
        })
    }
}

fn due(sample: &Sample) -> Nanos {
    sample.at - sample.latency
}

/// Returns the slice of a wake-up and, inside of it, the slices of its charges. Gaps are
/// unexplained.
fn slices(pid: u32, tid: u32, sample: &Sample) -> Vec<Value> {
    let title = format!("{} late", micro(sample.latency));
    let unexplained = sample.unexplained.unwrap_or_default();
    let facts = json!({ "latency_ns": sample.latency, "unexplained_ns": unexplained });
    let [begin, end] = slice(pid, tid, &title, (due(sample), sample.latency), &facts);
    let charge = |charge: &Charge| {
        let facts = json!({ "culprit": charge.culprit, "ns": charge.ns, "stack": charge.stack });
        slice(pid, tid, &charge.cause, (due(sample) + charge.from, charge.ns), &facts)
    };
    let charges = sample.causes.iter().flat_map(charge);
    [begin].into_iter().chain(charges).chain([end]).collect()
}

/// Returns the begin and end events of a slice.
fn slice(
    pid: u32,
    tid: u32,
    title: &str,
    (from, length): (Nanos, Nanos),
    facts: &Value,
) -> [Value; 2] {
    let event = |kind: &str, at: Nanos, facts: &Value| {
        json!({
            "ph": kind, "cat": "late", "name": printable(title), "pid": pid, "tid": tid,
            "ts": micros(at), "args": facts,
        })
    };
    [event("B", from, facts), event("E", from + length, &json!({}))]
}

fn name(kind: &str, pid: u32, tid: u32, title: &str) -> Value {
    let args = json!({ "name": printable(title) });
    json!({ "ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args })
}

/// Converts to the unit of the format, with nanoseconds as the fraction.
#[expect(clippy::cast_precision_loss, reason = "a run is shorter than three months")]
fn micros(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_testing::sample_explained;
    use serde::Deserialize;

    /// An event of the format.
    #[derive(Deserialize)]
    struct Event {
        ph: String,
        name: String,
        pid: u32,
        tid: u32,
        #[serde(default)]
        ts: f64,
        args: serde_json::Map<String, Value>,
    }

    /// A slice, from its begin event to its end event.
    struct Slice {
        tid: u32,
        name: String,
        from: i128,
        length: i128,
        args: serde_json::Map<String, Value>,
    }

    /// Pairs events as readers do: an end event belongs to the last begin event of its track.
    fn slices(events: Vec<Event>) -> Vec<Slice> {
        let (mut open, mut all) = (Vec::<Event>::new(), Vec::new());
        for event in events {
            match event.ph.as_str() {
                "B" => open.push(event),
                "E" => {
                    let begin = open.pop().unwrap();
                    assert_eq!((&begin.name, begin.tid), (&event.name, event.tid));
                    let from = nanos(begin.ts);
                    let length = nanos(event.ts) - from;
                    all.push(Slice {
                        tid: begin.tid,
                        name: begin.name,
                        from,
                        length,
                        args: begin.args,
                    });
                }
                _ => {}
            }
        }
        assert!(open.is_empty());
        all
    }

    fn events() -> Vec<Event> {
        let sources = [NamedRecord::from_run("run".to_owned(), sample_explained::record())];
        let mut trace: Value = serde_json::from_str(&trace(&sources)).unwrap();
        serde_json::from_value(trace["traceEvents"].take()).unwrap()
    }

    fn nanos(micros: f64) -> i128 {
        #[expect(clippy::cast_possible_truncation, reason = "it was an integer")]
        let nanos = (micros * 1e3).round() as i128;
        nanos
    }

    #[test]
    fn trace_has_only_events_of_the_format() {
        for event in events() {
            let known = ["process_name", "thread_name"].contains(&event.name.as_str());
            let named = event.ph == "M" && known && event.args["name"].is_string();
            assert!(["B", "E"].contains(&event.ph.as_str()) || named);
            assert!(event.pid > 0 && event.ts >= 0.0);
        }
    }

    #[test]
    fn tasks_waiting_at_the_same_time_have_separate_tracks() {
        let mut record = sample_explained::record();
        let first = record.worst[0].clone();
        let (mut meanwhile, mut after) = (first.clone(), first.clone());
        meanwhile.at = first.at + Nanos(1);
        after.at = first.at + first.latency;
        record.worst = vec![first, meanwhile, after];
        let sources = [NamedRecord::from_run("run".to_owned(), record)];
        let trace: Value = serde_json::from_str(&trace(&sources)).unwrap();
        let wake_ups = trace["traceEvents"].as_array().unwrap().iter();
        let wake_ups = wake_ups.filter(|event| event["args"]["latency_ns"].is_u64());
        let tracks: Vec<u64> = wake_ups.map(|event| event["tid"].as_u64().unwrap()).collect();
        assert_eq!(tracks, [1, 2, 1]);
    }

    #[test]
    fn activities_of_a_cpu_are_nested_in_their_tracks() {
        let activity = |at, ns, kind, name: &str| {
            let name = name.to_owned();
            Activity { at: Nanos(at), ns: Nanos(ns), kind, name }
        };
        let activities = vec![
            activity(10, 20, Kind::Interrupt, "callback"),
            activity(10, 30, Kind::Interrupt, "timer interrupt"),
            activity(5, 50, Kind::Task, "cc1 (pid 7)"),
            activity(40, 5, Kind::Interrupt, "softirq"),
            activity(55, 5, Kind::Task, "idle"),
        ];
        let events = super::activities(1, 4, &History { cpu: 3, activities });
        let events = serde_json::from_value::<Vec<Event>>(events.into()).unwrap();
        let found: Vec<_> = slices(events).into_iter().map(|one| (one.tid, one.name)).collect();
        let expected = [
            (4, "cc1 (pid 7)"),
            (4, "idle"),
            (5, "callback"),
            (5, "timer interrupt"),
            (5, "softirq"),
        ];
        assert_eq!(found, expected.map(|(tid, name)| (tid, name.to_owned())));
    }

    #[test]
    fn charges_are_nested_disjoint_and_complete() {
        let slices = slices(events());
        let wholes: Vec<&Slice> =
            slices.iter().filter(|slice| slice.args.contains_key("latency_ns")).collect();
        assert_eq!(wholes.len(), 2);
        for whole in wholes {
            let (from, to) = (whole.from, whole.from + whole.length);
            let mut reached = from;
            let mut sum = i128::from(whole.args["unexplained_ns"].as_u64().unwrap());
            let inside = slices.iter().filter(|part| {
                part.tid == whole.tid && part.args.contains_key("culprit") && part.from >= from
            });
            for part in inside.filter(|part| part.from < to) {
                assert!(part.from >= reached, "{}", part.name);
                reached = part.from + part.length;
                sum += part.length;
            }
            assert!(reached <= to);
            assert_eq!(sum, whole.length);
        }
    }
}
