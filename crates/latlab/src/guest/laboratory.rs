//! The laboratory: many cells, a few guests at a time, and what is known already.

use super::Time;
use super::cell::{Cell, Program};
use super::driver;
use super::facts::Facts;
use super::known;
use super::orders::Job;
use super::qemu::Guest;
use crate::engine::Outcome;
use crate::errand::{Errand, Put};
use crate::failure::{Failure, Result};
use crate::kernel::{self, Kernel, Progress};
use crate::message::{Message, Stream, output_bytes};
use crate::profile::{self, Profile};
use latlab_core::plan::Plan;
use latlab_core::record::Warning;
use latlab_core::time::Nanos;
use std::path::PathBuf;

/// Carries out each plan in a guest of its own. Their order decides nothing.
pub(crate) fn run(plans: &[Plan], time: Time, errand: &mut Errand<'_>) -> Vec<Result<Outcome>> {
    let cell = |plan: &Plan| cell(&plan.target, time, Job::Run(Box::new(plan.clone())), errand);
    let cells: Vec<Result<Cell>> = plans.iter().map(cell).collect();
    let lacking: Vec<_> = cells.iter().map(|cell| cell.as_ref().ok()?.no_driver.clone()).collect();
    let outcome = |place: usize, answer: Answer| {
        let mut outcome = answer.outcome(&plans[place])?;
        let text = |why| format!("the test driver was left out: {why}");
        let skipped = lacking[place].clone().map(|why| Warning::new("skipped", text(why)));
        outcome.record.warnings.extend(skipped);
        Ok(outcome)
    };
    let mut keep = errand.keep.take();
    let answers = carry_out_and_tell(cells, errand, &mut |_, _| Ok(()), &mut |place, answer| {
        if let (Some(keep), Ok(outcome)) = (&mut keep, outcome(place, answer.clone())) {
            keep(place, &outcome.record);
        }
    });
    let answers = answers.into_iter().enumerate();
    answers.map(|(place, answer)| outcome(place, answer?)).collect()
}

/// The basis that a record of this plan would have now.
pub(crate) fn basis(plan: &Plan, time: Time, errand: &mut Errand<'_>) -> Result<String> {
    let cell = cell(&plan.target, time, Job::Run(Box::new(plan.clone())), errand)?;
    known::basis(&cell, &cell.boot()?)
}

/// Starts a program in a guest. `put` gets what it writes; its exit code comes back.
pub(crate) fn exec(
    target: &str,
    program: &Program,
    time: Time,
    errand: &mut Errand<'_>,
    put: &mut Put<'_>,
) -> Result<u8> {
    let cell = Cell {
        files: program.files()?,
        links: program.links(),
        ..cell(target, time, program.job()?, errand)?
    };
    let answer = carry_out(vec![Ok(cell)], errand, put).pop().expect("one cell, one answer")?;
    for line in &answer.complaints {
        put(Stream::Stderr, format!("latlab: the guest's kernel: {line}\n").as_bytes())?;
    }
    match answer.last {
        Message::Exited(code) => Ok(code),
        _ => Err(answer.unexpected()),
    }
}

/// Carries out one cell whose output is of no interest. Its answer.
pub(super) fn ask(cell: Cell, errand: &mut Errand<'_>) -> Result<Message> {
    let answer = carry_out(vec![Ok(cell)], errand, &mut |_, _| Ok(())).pop();
    let answer = answer.expect("one cell, one answer")?;
    if answer.last.is_answer() { Ok(answer.last) } else { Err(answer.unexpected()) }
}

/// What a guest said last, and what its kernel complained about.
#[derive(Clone)]
pub(super) struct Answer {
    target: String,
    /// On which basis it is given.
    basis: String,
    last: Message,
    complaints: Vec<String>,
    /// What its microscope saw.
    pub(super) trace: String,
}

impl Answer {
    pub(super) fn outcome(self, plan: &Plan) -> Result<Outcome> {
        let Message::Record { mut record, verdict } = self.last else {
            return Err(self.unexpected());
        };
        record.fingerprint = Some(self.basis);
        let profile = plan.target.split_once(':').map(|(_, profile)| profile.to_owned());
        for series in &mut record.series {
            series.profile.clone_from(&profile);
        }
        for scan in &mut record.scans {
            scan.profile.clone_from(&profile);
        }
        for figure in &mut record.figures {
            figure.profile.clone_from(&profile);
        }
        let warning =
            |line| Warning::new("kernel-complained", format!("the guest's kernel: {line}"));
        record.warnings.extend(self.complaints.into_iter().map(warning));
        Ok(Outcome { record: *record, verdict })
    }

    /// Fails unless a program has ended well.
    pub(super) fn exited(self) -> Result<()> {
        if matches!(self.last, Message::Exited(0)) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(self) -> Failure {
        match self.last {
            Message::Failed(failure) => failure.about(&self.target),
            other => Failure::Failed(format!("{}: the guest answered {other:?}", self.target)),
        }
    }
}

/// The profile that `target` names, and its kernel.
pub(super) fn kernel(target: &str, errand: &mut Errand<'_>) -> Result<(Profile, Kernel)> {
    errand.go_on(target)?;
    let (kind, name) = target.split_once(':').unwrap_or((target, ""));
    if name.is_empty() {
        let why = format!("{target} names no profile: write {kind}:NAME (latlab list profiles)");
        return Err(Failure::Failed(why));
    }
    let profile = profile::find(name, &kernel::added()?)?;
    errand.watch.note("");
    let kernel = kernel::ready(&profile.kernel, &mut Fetching::with(errand))?;
    Ok((profile, kernel))
}

/// Who fetches a kernel, and notes that the user wants to end.
struct Fetching<'a> {
    progress: &'a mut dyn Progress,
    ended: &'a mut bool,
}

impl<'a> Fetching<'a> {
    fn with(errand: &'a mut Errand<'_>) -> Fetching<'a> {
        Fetching { progress: &mut *errand.progress, ended: &mut errand.ended }
    }
}

impl Progress for Fetching<'_> {
    fn note(&mut self, text: &str) {
        self.progress.note(text);
    }
    fn at(&mut self, done: u64, total: u64) {
        self.progress.at(done, total);
    }
    fn pause(&mut self) -> bool {
        *self.ended |= self.progress.pause();
        *self.ended
    }
}

/// The cell of a job, with what is known of its kernel.
pub(super) fn cell(target: &str, time: Time, job: Job, errand: &mut Errand<'_>) -> Result<Cell> {
    let (profile, kernel) = kernel(target, errand)?;
    let (driver, no_driver) = driver(&profile, &kernel, &job, errand)?;
    let timer = match time {
        Time::Instructions => facts(target, &kernel, errand)?.apic_timer,
        Time::Wall(_) => None,
    };
    Ok(Cell { timer, driver, no_driver, ..Cell::of(target, profile, kernel, time, job) })
}

/// The test driver, where the job needs it; or why there is none, where parts may be left out.
fn driver(
    profile: &Profile,
    kernel: &Kernel,
    job: &Job,
    errand: &mut Errand<'_>,
) -> Result<(Option<PathBuf>, Option<String>)> {
    if !driver::is_needed(profile, job) {
        return Ok((None, None));
    }
    match kernel::driver(kernel, &mut Fetching::with(errand)) {
        Err(Failure::Unsupported(why)) if job.may_lack() => Ok((None, Some(why))),
        built => built.map(|driver| (Some(driver), None)),
    }
}

/// What is known of a kernel; where nothing is, its first boot finds it out.
fn facts(target: &str, kernel: &Kernel, errand: &mut Errand<'_>) -> Result<Facts> {
    if let Some(facts) = Facts::known(kernel) {
        return Ok(facts);
    }
    errand.watch.note(&format!("{} boots for the first time", kernel.name));
    let learner = Cell::plain(target, kernel.clone(), Time::Instructions, Job::Learn);
    let Message::Facts(facts) = ask(learner, errand)? else { return Ok(Facts::default()) };
    facts.keep(kernel);
    Ok(facts)
}

/// What comes of each cell, in their order.
pub(super) fn carry_out(
    cells: Vec<Result<Cell>>,
    errand: &mut Errand<'_>,
    put: &mut Put<'_>,
) -> Vec<Result<Answer>> {
    carry_out_and_tell(cells, errand, put, &mut |_, _| ())
}

/// The same; `tell` gets each answer as soon as it is there, with the place of its cell.
fn carry_out_and_tell(
    cells: Vec<Result<Cell>>,
    errand: &mut Errand<'_>,
    put: &mut Put<'_>,
    tell: &mut dyn FnMut(usize, &Answer),
) -> Vec<Result<Answer>> {
    let mut bench = Bench { total: cells.len(), ..Bench::default() };
    bench.answers.resize_with(cells.len(), || None);
    let mut waiting = cells.into_iter().enumerate();
    let mut untold: Vec<usize> = (0..bench.total).collect();
    loop {
        while bench.running.len() < errand.jobs.max(1) && !errand.ended {
            let Some((place, cell)) = waiting.next() else { break };
            if let Err(failure) = cell.and_then(|cell| bench.start(place, &cell, errand)) {
                bench.answers[place] = Some(Err(failure));
            }
        }
        if bench.look() {
            errand.watch.done(bench.done(), bench.total);
        }
        untold.retain(|place| match &bench.answers[*place] {
            Some(Ok(answer)) => {
                tell(*place, answer);
                false
            }
            Some(Err(_)) => false,
            None => true,
        });
        let output = std::mem::take(&mut bench.output);
        if !output.is_empty() {
            // What a program writes is not to be mixed with what we say.
            errand.watch.note("");
            bench.silent = true;
        }
        if let Err(failure) = output.iter().try_for_each(|(stream, bytes)| put(*stream, bytes)) {
            return vec![Err(failure)];
        }
        if errand.ended || bench.running.is_empty() && waiting.len() == 0 {
            break;
        }
        if !bench.silent {
            errand.watch.note(&bench.state());
        }
        errand.pause(Nanos::from_millis(10));
    }
    errand.watch.note("");
    let ended = || {
        let why = "ended before the guest had finished: nothing of it is kept";
        Err(Failure::Failed(why.to_owned()))
    };
    bench.answers.into_iter().map(|answer| answer.unwrap_or_else(ended)).collect()
}

/// The guests at work.
#[derive(Default)]
struct Bench {
    answers: Vec<Option<Result<Answer>>>,
    running: Vec<Work>,
    /// What programs wrote and was not passed on yet.
    output: Vec<(Stream, Vec<u8>)>,
    silent: bool,
    total: usize,
}

/// A guest at work on a cell.
struct Work {
    place: usize,
    target: String,
    basis: String,
    guest: Guest,
    /// What it does now.
    doing: String,
    /// Where its answer is to be kept.
    known: Option<PathBuf>,
}

impl Bench {
    /// Starts a guest for the cell, or answers at once what is known.
    fn start(&mut self, place: usize, cell: &Cell, errand: &Errand<'_>) -> Result<()> {
        let boot = cell.boot()?;
        let basis = known::basis(cell, &boot)?;
        let known = known::place(cell, &boot, &basis)?;
        let target = cell.target.clone();
        // Who looks through a microscope has to look now.
        let ask = errand.fresh || cell.microscope.is_some();
        let recalled = known.as_ref().filter(|_| !ask).and_then(|path| known::recall(path));
        if let Some(messages) = recalled {
            for message in messages {
                if let Some(last) = self.hear(message)? {
                    let (target, basis) = (target.clone(), basis.clone());
                    let (complaints, trace) = (Vec::new(), String::new());
                    let answer = Answer { target, basis, last, complaints, trace };
                    self.answers[place] = Some(Ok(answer));
                }
            }
            return Ok(());
        }
        let patience = match cell.job {
            Job::Learn => cell.patience(),
            _ => errand.limit.unwrap_or_else(|| cell.patience()),
        };
        let guest = Guest::start(cell, &boot, patience)?;
        let doing = "boots".to_owned();
        self.running.push(Work { place, target, basis, guest, doing, known });
        Ok(())
    }

    /// Takes what the guests say, and lets go of those that are done. Whether there was one.
    fn look(&mut self) -> bool {
        let at_work = self.running.len();
        for mut work in std::mem::take(&mut self.running) {
            match self.look_at(&mut work).transpose() {
                Some(answer) => self.answers[work.place] = Some(answer),
                None => self.running.push(work),
            }
        }
        self.running.len() < at_work
    }

    /// How many cells have their answer.
    fn done(&self) -> usize {
        self.answers.iter().flatten().count()
    }

    /// The answer, when it is there.
    fn look_at(&mut self, work: &mut Work) -> Result<Option<Answer>> {
        // In this order: what it said before it ended is heard.
        let failure = work.guest.failure();
        for message in work.guest.hear()? {
            if let Message::Begin { probe, .. } = &message {
                work.doing = format!("measures {probe}");
            }
            if let Some(last) = self.hear(message)? {
                return work.answer(last).map(Some);
            }
        }
        failure.map_or(Ok(None), Err)
    }

    /// Collects output; the last message of a guest comes back.
    fn hear(&mut self, message: Message) -> Result<Option<Message>> {
        match message {
            Message::Begin { .. } | Message::Update { .. } | Message::End => Ok(None),
            Message::Output { stream, base64 } => {
                self.output.push((stream, output_bytes(&base64)?));
                Ok(None)
            }
            last => Ok(Some(last)),
        }
    }

    /// In a few words, what goes on.
    fn state(&self) -> String {
        let done = self.done();
        let guest = |work: &Work| {
            let seconds = work.guest.age().0 / 1_000_000_000;
            format!("{} {} ({seconds} s)", work.target, work.doing)
        };
        let guests: Vec<String> = self.running.iter().map(guest).collect();
        match self.total {
            1 => guests.join(", "),
            total => format!("{done} of {total} done; {}", guests.join(", ")),
        }
    }
}

impl Work {
    /// Keeps what was said, where that can be known again.
    fn answer(&mut self, last: Message) -> Result<Answer> {
        let complaints = self.guest.kernel_complaints();
        let good = last.is_answer() && complaints.is_empty();
        if let Some(path) = self.known.as_ref().filter(|_| good) {
            known::keep(path, &self.guest.transcript()?);
        }
        let trace = self.guest.trace()?;
        let (target, basis) = (self.target.clone(), self.basis.clone());
        Ok(Answer { target, basis, last, complaints, trace })
    }
}
