//! The guests that run at the same time, and the answers they have given.

use super::answer::Answer;
use super::guest::{Boot, Cell, Guest, Job, Launched, Start, stops};
use super::{cache, snapshot};
use latlab_core::machine::TimeDomain;
use latlab_core::path::Misses;
use latlab_core::time::Nanos;
use latlab_measure::message::{Message, output_bytes};
use latlab_measure::session::{Limit, Session};
use latlab_part::failure::{Context as _, Result};
use latlab_part::progress::Stream;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The running guests, and the answers of those that have finished, by index of their cell.
pub(super) struct Pool {
    total: usize,
    running: Vec<Running>,
    answers: BTreeMap<usize, Result<Answer>>,
    /// Cells whose answer is complete and was not handed out yet.
    new: Vec<usize>,
    /// Output of programs that was not forwarded yet.
    output: Vec<(Stream, Vec<u8>)>,
    has_written: bool,
}

/// A guest that carries out a cell.
struct Running {
    index: usize,
    target: String,
    time_domain: TimeDomain,
    fingerprint: String,
    guest: Guest,
    /// The cell, to boot it where it can't be restored.
    cell: Option<Cell>,
    /// Its current activity, for the progress line.
    state: String,
    /// The file that will keep its answer.
    kept: Option<PathBuf>,
    /// Reason why it lacks the test driver.
    no_driver: Option<String>,
}

impl Pool {
    /// A pool for this many cells, none of them started.
    pub(super) fn new(total: usize) -> Pool {
        Pool {
            total,
            running: Vec::new(),
            answers: BTreeMap::new(),
            new: Vec::new(),
            output: Vec::new(),
            has_written: false,
        }
    }

    /// Starts a guest for a cell. The answer is complete at once where the cell failed, or where
    /// its answer is kept and the session accepts that.
    pub(super) fn start(&mut self, index: usize, cell: Result<Cell>, session: &mut Session<'_>) {
        let started = cell.and_then(|cell| self.try_start(index, cell, session));
        if let Err(failure) = started {
            self.answer(index, Err(failure));
        }
    }

    fn try_start(&mut self, index: usize, cell: Cell, session: &mut Session<'_>) -> Result<()> {
        let boot = cell.boot()?;
        let fingerprint = cache::fingerprint(&cell, &boot)?;
        let kept = cache::path(&cell, &boot, &fingerprint)?;
        let asked = kept.as_ref().filter(|_| !session.fresh);
        let messages = asked.and_then(|path| cache::load(path));
        if let Some(messages) = messages {
            return self.repeat(index, &cell, &fingerprint, messages);
        }
        let start = starting_point(&cell, &fingerprint, session);
        let running = Running::start(index, cell, boot, start, fingerprint, kept, session)?;
        self.running.push(running);
        Ok(())
    }

    /// Answers a cell with the messages of an earlier guest.
    fn repeat(
        &mut self,
        index: usize,
        cell: &Cell,
        fingerprint: &str,
        messages: Vec<Message>,
    ) -> Result<()> {
        let mut misses = Vec::new();
        for message in messages {
            if let Message::Misses(counted) = message {
                misses = counted;
            } else if let Some(last) = self.receive(message)? {
                let answer = Answer {
                    target: cell.target.clone(),
                    time_domain: cell.time.domain(),
                    fingerprint: fingerprint.to_owned(),
                    last,
                    complaints: Vec::new(),
                    misses: std::mem::take(&mut misses),
                    trace: String::new(),
                    no_driver: cell.no_driver.clone(),
                };
                self.answer(index, Ok(answer));
            }
        }
        Ok(())
    }

    /// Receives the messages of the guests, and drops finished guests. Returns whether one was
    /// finished.
    pub(super) fn poll(&mut self, session: &mut Session<'_>) -> bool {
        let before = self.running.len();
        for mut running in std::mem::take(&mut self.running) {
            match self.poll_one(&mut running, session).transpose() {
                Some(answer) => self.answer(running.index, answer),
                None => self.running.push(running),
            }
        }
        self.running.len() < before
    }

    /// The answer, once it is complete.
    fn poll_one(
        &mut self,
        running: &mut Running,
        session: &mut Session<'_>,
    ) -> Result<Option<Answer>> {
        // In this order: messages sent before the guest ended still count.
        let failure = match running.guest.launched() {
            Launched::Well => running.guest.failure(),
            Launched::NotKept(error) => {
                let target = &running.target;
                session.progress.note(&format!("{target}: its snapshot was not kept ({error})"));
                running.guest.failure()
            }
            Launched::NotRestored(why) => {
                running.boot(&why, session)?;
                None
            }
            Launched::Lost(failure) => Some(failure),
        };
        for message in running.guest.messages()? {
            if let Message::Begin { probe, .. } = &message {
                running.state = format!("measures {probe}");
            }
            if let Some(last) = self.receive(message)? {
                return running.answer(last).map(Some);
            }
        }
        failure.map_or(Ok(None), Err)
    }

    /// Collects output; returns the last message of a guest.
    fn receive(&mut self, message: Message) -> Result<Option<Message>> {
        match message {
            Message::Begin { .. } | Message::Update { .. } | Message::End => Ok(None),
            Message::Output { stream, base64 } => {
                self.output.push((stream, output_bytes(&base64)?));
                Ok(None)
            }
            last => Ok(Some(last)),
        }
    }

    fn answer(&mut self, index: usize, answer: Result<Answer>) {
        self.answers.insert(index, answer);
        self.new.push(index);
    }

    /// Answers without a failure since the last call, with the index of their cell.
    pub(super) fn newly_answered(&mut self) -> impl Iterator<Item = (usize, &Answer)> {
        let new = std::mem::take(&mut self.new);
        new.into_iter().filter_map(|index| Some((index, self.answers[&index].as_ref().ok()?)))
    }

    /// Takes the output of programs since the last call.
    pub(super) fn take_output(&mut self) -> Vec<(Stream, Vec<u8>)> {
        self.has_written |= !self.output.is_empty();
        std::mem::take(&mut self.output)
    }

    /// Whether a program has written anything: a progress line would be mixed with it.
    pub(super) fn has_written(&self) -> bool {
        self.has_written
    }

    /// Number of running guests.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// Number of cells that have their answer.
    pub(super) fn answered(&self) -> usize {
        self.answers.len()
    }

    /// Number of all cells.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// The answers in the order of the cells; none for those that were not started or not finished.
    pub(super) fn into_answers(mut self) -> impl Iterator<Item = Option<Result<Answer>>> {
        (0..self.total).map(move |index| self.answers.remove(&index))
    }

    /// The progress line.
    pub(super) fn state(&self) -> String {
        let guest = |running: &Running| {
            let seconds = running.guest.age().0 / Nanos::from_secs(1).0;
            format!("{} {} ({seconds} s)", running.target, running.state)
        };
        let guests: Vec<String> = self.running.iter().map(guest).collect();
        match self.total {
            1 => guests.join(", "),
            total => format!("{} of {total} done; {}", self.answered(), guests.join(", ")),
        }
    }
}

/// The starting point of a cell's guest: its snapshot, or a boot that makes one.
fn starting_point(cell: &Cell, key: &str, session: &mut Session<'_>) -> Start {
    // A kernel calibrates once.
    if session.cold || !stops(cell) || matches!(cell.job, Job::Calibrate) {
        return Start::Boot;
    }
    match snapshot::open(key) {
        Ok(Some(snapshot)) => Start::Restore(snapshot),
        Ok(None) => new_snapshot(cell, key, session),
        Err(error) => {
            session.progress.note(&unusable(&cell.target, &error.to_string()));
            new_snapshot(cell, key, session)
        }
    }
}

/// A boot that makes a snapshot, unless another process makes it.
fn new_snapshot(cell: &Cell, key: &str, session: &mut Session<'_>) -> Start {
    match snapshot::begin(key, &cell.kernel.name) {
        Ok(draft) => draft.map_or(Start::Boot, Start::BootAndKeep),
        Err(error) => {
            let target = &cell.target;
            session.progress.note(&format!("{target}: its snapshot can't be kept ({error})"));
            Start::Boot
        }
    }
}

fn unusable(target: &str, why: &str) -> String {
    format!("{target}: its snapshot can't be used ({why}): the guest boots, and makes a new one")
}

impl Running {
    fn start(
        index: usize,
        cell: Cell,
        boot: Boot,
        start: Start,
        fingerprint: String,
        kept: Option<PathBuf>,
        session: &Session<'_>,
    ) -> Result<Running> {
        let restored = matches!(start, Start::Restore(_));
        let limit = session.limit.unwrap_or_else(|| Limit::Usual(cell.patience()));
        let guest = Guest::start(&cell, boot, start, limit)?;
        let state = (if restored { "starts" } else { "boots" }).to_owned();
        let (target, time_domain) = (cell.target.clone(), cell.time.domain());
        let no_driver = cell.no_driver.clone();
        let cell = restored.then_some(cell);
        Ok(Running { index, target, time_domain, fingerprint, guest, cell, state, kept, no_driver })
    }

    /// Boots the guest, because it can't be restored.
    fn boot(&mut self, why: &str, session: &mut Session<'_>) -> Result<()> {
        let cell = self.cell.take().expect("only a restored guest fails to be restored");
        session.progress.note(&unusable(&self.target, why));
        // The files are read once more, and may be others by now.
        let boot = cell.boot()?;
        let fingerprint = cache::fingerprint(&cell, &boot)?;
        let kept = cache::path(&cell, &boot, &fingerprint)?;
        let start = new_snapshot(&cell, &fingerprint, session);
        *self = Running::start(self.index, cell, boot, start, fingerprint, kept, session)?;
        Ok(())
    }

    /// The answer; it is kept where the same cell would answer the same again.
    fn answer(&mut self, last: Message) -> Result<Answer> {
        let complaints = self.guest.kernel_complaints();
        let good = last.is_answer() && complaints.is_empty();
        let trace = self.guest.trace()?;
        let misses = Misses::read(&trace).context(&self.target)?;
        if let Some(path) = self.kept.as_ref().filter(|_| good) {
            cache::keep(path, &misses, &self.guest.transcript()?);
        }
        let (target, fingerprint) = (self.target.clone(), self.fingerprint.clone());
        let (time_domain, no_driver) = (self.time_domain, self.no_driver.clone());
        Ok(Answer { target, time_domain, fingerprint, last, complaints, misses, trace, no_driver })
    }
}
