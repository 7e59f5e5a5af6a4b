//! The protocol between latlab on this machine and latlab on a target (a guest, a host behind ssh):
//! one JSON object per line.

pub(crate) mod program;

use crate::failure::{Failure, Result, failed};
use crate::rig::Watch;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use latlab_core::atomic_histogram::AtomicHistogram;
use latlab_core::path::Misses;
use latlab_core::plan::Plan;
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;

/// Sent to the target, on a line of its own after the task: end the run now.
pub(crate) const END: &str = "end";
/// Sent to the target: the record has arrived and need not be kept.
pub(crate) const RECEIVED: &str = "received";
/// The file in which the target keeps a record until it has arrived.
pub(crate) const KEPT: &str = "record.json";

/// Maximum length of a line in bytes, far more than any record has.
pub(crate) const LONGEST_LINE: u64 = 256 << 20;

/// What an agent is to do: the first line that it is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Task {
    /// Carry out a plan.
    Plan(Box<Plan>),
    /// Run latlab with these words, and send its output.
    Command(Vec<String>),
}

/// A message from the target.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// A probe starts.
    Begin { probe: String },
    /// The probe has measured for `elapsed` of about `total`.
    Update { elapsed: Nanos, total: Nanos },
    /// The probe has ended.
    End,
    /// The results so far of a plan that is being carried out.
    SoFar(Box<Record>),
    /// The plan was carried out.
    Record { record: Box<Record>, verdict: Option<Failure> },
    /// What the plugin counted; kept with the answer of a guest, which does not know it.
    Misses(Vec<Misses>),
    /// The plan or the program failed.
    Failed(Failure),
    /// The calibration of the guest's kernel.
    Calibration(Calibration),
    /// The user's program wrote this.
    Output { stream: Stream, base64: String },
    /// The user's program has ended, with this exit code.
    Exited(u8),
}

/// The calibration that a kernel reports after its first boot in instruction time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Calibration {
    /// Absent where the kernel hides its symbols or its memory.
    pub(crate) apic_timer: Option<ApicTimer>,
}

/// The kernel's calibration of its local APIC timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApicTimer {
    /// Address where the calibration starts: `setup_boot_APIC_clock`.
    pub(crate) setup: u64,
    /// Address of its result: `lapic_timer_period`.
    pub(crate) variable: u64,
    /// The result: cycles of the timer per tick.
    pub(crate) period: u32,
}

/// Output stream of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Message {
    /// Output of a program, as a message.
    pub(crate) fn output(stream: Stream, bytes: &[u8]) -> Message {
        Message::Output { stream, base64: BASE64.encode(bytes) }
    }

    /// Whether it is the last message, and not a failure.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, Message::Record { .. } | Message::Exited(_) | Message::Calibration(_))
    }

    /// Writes it as one line, and flushes.
    pub(crate) fn send(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut line = serde_json::to_string(self)?;
        line.push('\n');
        to.write_all(line.as_bytes())?;
        to.flush()
    }

    /// Reads one line, and checks a record as one from a file is checked.
    pub(crate) fn read(line: &str) -> Result<Message> {
        let invalid = |why: &dyn Display| failed("the target sent an invalid message", why);
        let message = serde_json::from_str(line).map_err(|e| invalid(&e))?;
        if let Message::Record { record, .. } | Message::SoFar(record) = &message {
            record.check().map_err(|e| invalid(&e))?;
        }
        Ok(message)
    }

    /// Passes progress to `watch`; returns any other message.
    pub(crate) fn relay(self, watch: &mut dyn Watch) -> Option<Message> {
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

/// The bytes of an [`Message::Output`].
pub(crate) fn output_bytes(base64: &str) -> Result<Vec<u8>> {
    BASE64.decode(base64).map_err(|e| failed("output from the target is damaged", e))
}

/// On the target: sends progress as messages.
pub(crate) struct Messenger<W> {
    to: W,
    pace: Nanos,
    keeps: bool,
}

impl<W: Write> Messenger<W> {
    /// Sends progress at this interval while a probe measures.
    pub(crate) fn new(to: W, pace: Nanos) -> Messenger<W> {
        Messenger { to, pace, keeps: false }
    }

    /// Sends records of the results so far, too.
    pub(crate) fn and_records(self) -> Messenger<W> {
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
