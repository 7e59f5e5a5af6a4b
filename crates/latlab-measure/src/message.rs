//! The protocol between latlab on this machine and latlab on a target (a guest, a host behind ssh):
//! one JSON object per line.

pub mod complaint;
pub mod program;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use latlab_core::atomic_histogram::AtomicHistogram;
use latlab_core::machine::TimeDomain;
use latlab_core::path::Misses;
use latlab_core::plan::Plan;
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_part::progress::{Stream, Watch};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;

/// Sent to the target, on a line of its own after the task: end the run now.
pub const END: &str = "end";
/// Sent to the target: the record has arrived and need not be kept.
pub const RECEIVED: &str = "received";
/// The file in which the target keeps a record until it has arrived.
pub const KEPT: &str = "record.json";

/// Maximum length of a line in bytes, far more than any record has.
pub const LONGEST_LINE: u64 = 256 << 20;

/// What an agent is to do: the first line that it is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Carry out a plan.
    Plan(Box<Plan>),
    /// Run latlab with these words, and send its output.
    Command(Vec<String>),
}

/// A message from the target.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// A probe starts.
    Begin {
        /// Its name.
        probe: String,
    },
    /// The probe has measured for `elapsed` of about `total`.
    Update {
        /// Time since its begin.
        elapsed: Nanos,
        /// Time that it takes.
        total: Nanos,
    },
    /// The probe has ended.
    End,
    /// The results so far of a plan that is being carried out.
    SoFar(Box<Record>),
    /// The plan was carried out.
    Record {
        /// What was measured.
        record: Box<Record>,
        /// Why the run counts as failed although it was measured.
        verdict: Option<Failure>,
    },
    /// The plugin's counts. They are kept with the answer of a guest, which does not know them.
    Misses(Vec<Misses>),
    /// The plan or the program failed.
    Failed(Failure),
    /// The calibration of the guest's kernel.
    Calibration(Calibration),
    /// The user's program wrote this.
    Output {
        /// Where it was written.
        stream: Stream,
        /// What was written, in base64.
        base64: String,
    },
    /// The user's program has ended, with this exit code.
    Exited(u8),
}

/// The calibration that a kernel reports after its first boot in instruction time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// Absent where the kernel hides its symbols or its memory.
    pub apic_timer: Option<ApicTimer>,
}

/// The kernel's calibration of its local APIC timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApicTimer {
    /// Address where the calibration starts: `setup_boot_APIC_clock`.
    pub setup: u64,
    /// Address of its result: `lapic_timer_period`.
    pub variable: u64,
    /// The result: cycles of the timer per tick.
    pub period: u32,
}

impl Message {
    /// Output of a program, as a message.
    pub fn output(stream: Stream, bytes: &[u8]) -> Message {
        Message::Output { stream, base64: BASE64.encode(bytes) }
    }

    /// Whether it is the last message, and not a failure.
    pub fn is_answer(&self) -> bool {
        matches!(self, Message::Record { .. } | Message::Exited(_) | Message::Calibration(_))
    }

    /// Writes it as one line, and flushes.
    pub fn send(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut line = serde_json::to_string(self)?;
        line.push('\n');
        to.write_all(line.as_bytes())?;
        to.flush()
    }

    /// Reads one line, and checks a record as one from a file is checked.
    pub fn read(line: &str) -> Result<Message> {
        let message: Message = serde_json::from_str(line).map_err(invalid)?;
        message.record().map_or(Ok(()), Record::check).map_err(invalid)?;
        Ok(message)
    }

    /// Refuses a record, also of the results so far, unless it is one of the plan that was `sent`, if
    /// any was, in this time domain: a target answers for itself only.
    pub fn check_origin(&self, sent: Option<&Plan>, time_domain: TimeDomain) -> Result<()> {
        let Some(record) = self.record() else { return Ok(()) };
        match sent {
            None => Err(invalid("a record, for which nobody asked")),
            Some(sent) if !sent.is_recorded_as(&record.plan) => {
                Err(invalid("the record has another plan than the one that was sent"))
            }
            Some(_) if record.machine.time_domain != time_domain => {
                let (other, word) = (record.machine.time_domain.word(), time_domain.word());
                Err(invalid(format!("the record has the time domain {other} instead of {word}")))
            }
            Some(_) => Ok(()),
        }
    }

    /// The record in it, complete or not.
    fn record(&self) -> Option<&Record> {
        match self {
            Message::Record { record, .. } | Message::SoFar(record) => Some(record),
            _ => None,
        }
    }

    /// Passes progress to `watch`; returns any other message.
    pub fn relay(self, watch: &mut dyn Watch) -> Option<Message> {
        match self {
            Message::Begin { probe } => watch.begin(&probe, &[]),
            Message::Update { elapsed, total } => watch.update(elapsed, total),
            Message::End => watch.end(),
            Message::SoFar(record) => watch.keep(&record),
            other => return Some(other),
        }
        None
    }
}

fn invalid(why: impl Display) -> Failure {
    failed("the target sent an invalid message", why)
}

/// The bytes of an [`Message::Output`].
pub fn output_bytes(base64: &str) -> Result<Vec<u8>> {
    BASE64.decode(base64).context("output from the target is damaged")
}

/// On the target: sends progress as messages.
pub struct Messenger<W> {
    to: W,
    pace: Nanos,
    keeps: bool,
}

impl<W: Write> Messenger<W> {
    /// Sends progress at this interval while a probe measures.
    pub fn new(to: W, pace: Nanos) -> Messenger<W> {
        Messenger { to, pace, keeps: false }
    }

    /// Sends records of the results so far, too.
    #[must_use]
    pub fn and_records(self) -> Messenger<W> {
        Messenger { keeps: true, ..self }
    }

    fn say(&mut self, message: &Message) {
        // If nobody reads any more, sending the record will fail too.
        let _ = message.send(&mut self.to);
    }
}

impl<W: Write> Watch for Messenger<W> {
    fn begin(&mut self, probe: &str, _: &[(String, Arc<AtomicHistogram>)]) {
        self.say(&Message::Begin { probe: probe.to_owned() });
    }
    fn update(&mut self, elapsed: Nanos, total: Nanos) {
        self.say(&Message::Update { elapsed, total });
    }
    fn end(&mut self) {
        self.say(&Message::End);
    }
    fn note(&mut self, _: &str) {}
    fn keeps(&self) -> bool {
        self.keeps
    }
    fn keep(&mut self, record: &Record) {
        self.say(&Message::SoFar(Box::new(record.clone())));
    }
    fn pace(&self) -> Nanos {
        self.pace
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::cpulist::CpuList;
    use latlab_core::histogram::Histogram;
    use latlab_core::machine::Machine;
    use latlab_core::plan::Length;
    use latlab_core::record::{Counts, Series};

    fn plan(target: &str) -> Plan {
        Plan::bare(target, CpuList::default(), Length::Count(1))
    }

    /// Both messages that have a record.
    fn messages(record: &Record) -> [Message; 2] {
        let record = || Box::new(record.clone());
        [Message::SoFar(record()), Message::Record { record: record(), verdict: None }]
    }

    #[test]
    fn inconsistent_record_is_refused() {
        let mut histogram = Histogram::new();
        histogram.record(Nanos(5));
        let mut series =
            Series { counts: Counts { recorded: 1, ..Counts::default() }, ..Series::default() };
        series.set_histogram(&histogram);
        let read = |series: &Series| {
            let record = Record::new("latlab", Nanos(0), plan("ssh:a"), Machine::default());
            messages(&Record { series: vec![series.clone()], ..record }).map(|message| {
                let line = serde_json::to_string(&message).unwrap();
                Message::read(&line).map(drop).map_err(|failure| failure.to_string())
            })
        };
        assert_eq!(read(&series), [Ok(()), Ok(())]);
        let above = Series { min: Nanos(6), ..series.clone() };
        let more = Series { counts: Counts { recorded: 2, ..series.counts }, ..series };
        for read in [read(&above), read(&more)].into_iter().flatten() {
            let sentence = read.unwrap_err();
            assert!(
                sentence.starts_with(
                    "the target sent an invalid message: the record is damaged: series 0"
                ),
                "{sentence}"
            );
        }
    }

    #[test]
    fn record_of_another_plan_or_time_domain_is_refused() {
        let (sent, own) = (plan("ssh:a"), TimeDomain::Silicon);
        let refused = |record: &Record, sent: Option<&Plan>| {
            messages(record).map(|message| message.check_origin(sent, own).err())
        };
        let said = |why: &str| {
            let failure = failed("the target sent an invalid message", why);
            [Some(failure.clone()), Some(failure)]
        };
        let record = Record::new("latlab", Nanos(0), sent.clone(), Machine::default());
        assert_eq!(refused(&record, Some(&sent)), [None, None]);
        assert_eq!(refused(&record, None), said("a record, for which nobody asked"));
        let other = Record { plan: plan("ssh:b"), ..record.clone() };
        let why = "the record has another plan than the one that was sent";
        assert_eq!(refused(&other, Some(&sent)), said(why));
        let machine = Machine { time_domain: TimeDomain::Instructions, ..Machine::default() };
        let other = Record { machine, ..record };
        let why = "the record has the time domain instructions instead of silicon";
        assert_eq!(refused(&other, Some(&sent)), said(why));
        assert_eq!(Message::Exited(0).check_origin(None, own), Ok(()));
    }
}
