//! What the far side of a target says to the near side: one JSON object a line.

use crate::failure::{Failure, Result, failed};
use crate::guest::Facts;
use crate::rig::Watch;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use latlab_core::record::Record;
use latlab_core::tally::Tally;
use latlab_core::time::Nanos;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::sync::Arc;

/// The near side's word, on a line of its own after the plan: end the run now.
pub(crate) const END: &str = "end";
/// The near side's word: the record has come, and need not be kept.
pub(crate) const RECEIVED: &str = "received";
/// The name under which the far side keeps a record until it has come.
pub(crate) const KEPT: &str = "record.json";

/// One thing that the far side says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// A probe begins.
    Begin { probe: String },
    /// The probe has measured for so long, out of about `total`.
    Update { elapsed: Nanos, total: Nanos },
    /// The probe has ended.
    End,
    /// The plan was carried out.
    Record { record: Box<Record>, verdict: Option<Failure> },
    /// It could not be done.
    Failed(Failure),
    /// What the kernel of a guest has found out.
    Facts(Facts),
    /// A program that was brought along wrote this.
    Output { stream: Stream, base64: String },
    /// A program that was brought along has ended, with this exit code.
    Exited(u8),
}

/// Where a program wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Message {
    /// What a program wrote, as a message.
    pub(crate) fn output(stream: Stream, bytes: &[u8]) -> Message {
        Message::Output { stream, base64: BASE64.encode(bytes) }
    }

    /// Whether nothing follows it, and it is no failure.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, Message::Record { .. } | Message::Exited(_) | Message::Facts(_))
    }

    /// Says it: one line, at once.
    pub(crate) fn send(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut line = serde_json::to_string(self)?;
        line.push('\n');
        to.write_all(line.as_bytes())?;
        to.flush()
    }

    /// Reads one line.
    pub(crate) fn read(line: &str) -> Result<Message> {
        serde_json::from_str(line).map_err(|e| failed("the far side says what is no message", e))
    }

    /// Shows what is progress to who looks on; gives back what is not.
    pub(crate) fn relay(self, watch: &mut dyn Watch) -> Option<Message> {
        match self {
            Message::Begin { probe } => watch.begin(&probe, &[]),
            Message::Update { elapsed, total } => watch.update(elapsed, total),
            Message::End => watch.end(),
            other => return Some(other),
        }
        None
    }
}

/// The bytes of an [`Message::Output`].
pub(crate) fn output_bytes(base64: &str) -> Result<Vec<u8>> {
    BASE64.decode(base64).map_err(|e| failed("the far side's output is damaged", e))
}

/// Looks on at the far side, and says what it sees to the near side.
pub(crate) struct Messenger<W> {
    to: W,
    pace: Nanos,
}

impl<W: Write> Messenger<W> {
    /// One that speaks at this pace while a probe measures.
    pub(crate) fn new(to: W, pace: Nanos) -> Messenger<W> {
        Messenger { to, pace }
    }

    fn say(&mut self, message: &Message) {
        // Where nobody listens any more, the end of the run will tell.
        let _ = message.send(&mut self.to);
    }
}

impl<W: Write> Watch for Messenger<W> {
    fn begin(&mut self, probe: &str, _: &[(String, Arc<Tally>)]) {
        self.say(&Message::Begin { probe: probe.to_owned() });
    }
    fn update(&mut self, elapsed: Nanos, total: Nanos) {
        self.say(&Message::Update { elapsed, total });
    }
    fn end(&mut self) {
        self.say(&Message::End);
    }
    fn note(&mut self, _: &str) {}
    fn pace(&self) -> Nanos {
        self.pace
    }
}
