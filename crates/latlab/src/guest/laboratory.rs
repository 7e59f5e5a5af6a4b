//! The laboratory: many cells, a few guests at a time, and what is known already.

use super::Time;
use super::cell::{Boot, Cell, Program};
use super::facts::{ApicTimer, Facts};
use super::orders::Job;
use super::qemu::{self, Guest};
use crate::engine::Outcome;
use crate::errand::{Errand, Put};
use crate::failure::{Failure, Result, failed};
use crate::kernel;
use crate::message::{Message, output_bytes};
use crate::profile;
use latlab_core::plan::Plan;
use latlab_core::record::Warning;
use latlab_core::time::Nanos;
use latlab_sys::file;
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};

/// Carries out each plan in a guest of its own. Their order decides nothing.
pub(crate) fn run(plans: &[Plan], time: Time, errand: &mut Errand<'_>) -> Vec<Result<Outcome>> {
    let mut cells = Vec::new();
    for plan in plans {
        let job = Job::Run(Box::new(plan.clone()));
        cells.push(cell(&plan.target, time, job, errand));
    }
    let answers = carry_out(cells, errand, &mut |_, _| Ok(()));
    let outcome = |(answer, plan): (Result<Answer>, &Plan)| answer?.outcome(plan);
    answers.into_iter().zip(plans).map(outcome).collect()
}

/// Starts a program in a guest. `put` gets what it writes; its exit code comes back.
pub(crate) fn exec(
    target: &str,
    program: &Program,
    time: Time,
    errand: &mut Errand<'_>,
    put: &mut Put<'_>,
) -> Result<u8> {
    let folder = std::env::current_dir().map_err(|e| failed("the current folder", e))?;
    let libraries = std::env::var("LD_LIBRARY_PATH").ok();
    let job = Job::Exec { words: program.words.clone(), folder, libraries };
    let bare = cell(target, time, job, errand)?;
    let cell = Cell { files: program.files()?, links: program.links(), ..bare };
    let answer = carry_out(vec![Ok(cell)], errand, put).pop().expect("one cell, one answer")?;
    match answer.last {
        Message::Exited(code) => Ok(code),
        _ => Err(answer.unexpected()),
    }
}

/// What a guest said last, and what its kernel complained about.
struct Answer {
    target: String,
    last: Message,
    complaints: Vec<String>,
}

impl Answer {
    fn outcome(self, plan: &Plan) -> Result<Outcome> {
        let Message::Record { mut record, verdict } = self.last else {
            return Err(self.unexpected());
        };
        let profile = plan.target.split_once(':').map(|(_, profile)| profile.to_owned());
        for series in &mut record.series {
            series.profile.clone_from(&profile);
        }
        for figure in &mut record.figures {
            figure.profile.clone_from(&profile);
        }
        let warning =
            |line| Warning::new("kernel-complained", format!("the guest's kernel: {line}"));
        record.warnings.extend(self.complaints.into_iter().map(warning));
        Ok(Outcome { record: *record, verdict })
    }

    fn unexpected(self) -> Failure {
        match self.last {
            Message::Failed(failure) => failure.about(&self.target),
            other => Failure::Failed(format!("{}: the guest answered {other:?}", self.target)),
        }
    }
}

/// The cell of a job: its profile, and its kernel.
fn cell(target: &str, time: Time, job: Job, errand: &mut Errand<'_>) -> Result<Cell> {
    errand.go_on(target)?;
    let name = target.split_once(':').map(|(_, name)| name).unwrap_or_default();
    if name.is_empty() {
        let why = format!("{target} names no profile: write {target}:NAME (latlab list profiles)");
        return Err(Failure::Failed(why.replace("::", ":")));
    }
    let profile = profile::find(name, &kernel::added()?)?;
    let kernel = kernel::ready(&profile.kernel, &mut |text| errand.watch.note(text))?;
    Ok(Cell {
        target: target.to_owned(),
        profile,
        kernel,
        time,
        job,
        files: Vec::new(),
        links: Vec::new(),
    })
}

/// What comes of each cell, in their order.
fn carry_out(
    cells: Vec<Result<Cell>>,
    errand: &mut Errand<'_>,
    put: &mut Put<'_>,
) -> Vec<Result<Answer>> {
    let mut bench = Bench { answers: Vec::new(), running: Vec::new(), total: cells.len() };
    bench.answers.resize_with(cells.len(), || None);
    let mut waiting = cells.into_iter().enumerate();
    loop {
        while bench.running.len() < errand.jobs.max(1) {
            let Some((place, cell)) = waiting.next() else { break };
            if let Err(failure) = cell.and_then(|cell| bench.start(place, &cell, errand, put)) {
                bench.answers[place] = Some(Err(failure));
            }
        }
        if bench.running.is_empty() && waiting.len() == 0 {
            break;
        }
        bench.look(put);
        errand.watch.note(&bench.state());
        errand.pause(Nanos::from_millis(10));
        if errand.ended {
            break;
        }
    }
    errand.watch.note("");
    let ended = || {
        let why = "ended before the guest had finished: nothing of it is kept";
        Err(Failure::Failed(why.to_owned()))
    };
    bench.answers.into_iter().map(|answer| answer.unwrap_or_else(ended)).collect()
}

/// The guests at work.
struct Bench {
    answers: Vec<Option<Result<Answer>>>,
    running: Vec<Work>,
    total: usize,
}

/// A guest at work on a cell.
struct Work {
    place: usize,
    target: String,
    guest: Guest,
    /// What it measures now.
    doing: String,
    /// Where its answer is to be kept.
    known: Option<PathBuf>,
}

impl Bench {
    /// Starts a guest for the cell, or answers at once what is known.
    fn start(
        &mut self,
        place: usize,
        cell: &Cell,
        errand: &mut Errand<'_>,
        put: &mut Put<'_>,
    ) -> Result<()> {
        let boot = cell.boot()?;
        let timer = match (cell.time, &cell.job) {
            (Time::Instructions, Job::Run(_) | Job::Exec { .. }) => facts(cell, errand)?.apic_timer,
            _ => None,
        };
        let known = known(cell, &boot, timer)?;
        if let Some(text) = known.as_ref().filter(|_| !errand.fresh).and_then(|path| read(path)) {
            let mut last = None;
            for line in text.lines() {
                last = heard(Message::read(line)?, put)?.or(last);
            }
            if let Some(last) = last {
                let target = cell.target.clone();
                self.answers[place] = Some(Ok(Answer { target, last, complaints: Vec::new() }));
                return Ok(());
            }
        }
        let patience = errand.limit.unwrap_or_else(|| cell.patience());
        let guest = Guest::start(cell, &boot, timer, patience)?;
        let target = cell.target.clone();
        self.running.push(Work { place, target, guest, doing: "boots".to_owned(), known });
        Ok(())
    }

    /// Takes what the guests say, and lets go of those that are done.
    fn look(&mut self, put: &mut Put<'_>) {
        let answers = &mut self.answers;
        self.running.retain_mut(|work| {
            let answer = work.look(put).transpose();
            let going = answer.is_none();
            if let Some(answer) = answer {
                answers[work.place] = Some(answer);
            }
            going
        });
    }

    /// In a few words, what goes on.
    fn state(&self) -> String {
        let done = self.answers.iter().flatten().count();
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
    /// The answer, when it is there.
    fn look(&mut self, put: &mut Put<'_>) -> Result<Option<Answer>> {
        // In this order: what it said before it ended is heard.
        let failure = self.guest.failure();
        for message in self.guest.hear()? {
            if let Message::Begin { probe, .. } = &message {
                self.doing = format!("measures {probe}");
            }
            if let Some(last) = heard(message, put)? {
                return self.answer(last).map(Some);
            }
        }
        failure.map_or(Ok(None), Err)
    }

    /// Keeps what was said, where that can be known again.
    fn answer(&mut self, last: Message) -> Result<Answer> {
        let complaints = self.guest.kernel_complaints();
        let good = matches!(last, Message::Record { .. } | Message::Exited(_) | Message::Facts(_));
        if let Some(path) = self.known.as_ref().filter(|_| good && complaints.is_empty()) {
            // A cache that can't be written costs time, not results.
            let _ = file::write_atomically(path, self.guest.transcript()?.as_bytes());
        }
        Ok(Answer { target: self.target.clone(), last, complaints })
    }
}

/// Passes on what is progress or output; the last message of a guest comes back.
fn heard(message: Message, put: &mut Put<'_>) -> Result<Option<Message>> {
    match message {
        Message::Begin { .. } | Message::Update { .. } | Message::End => Ok(None),
        Message::Output { stream, base64 } => {
            put(stream, &output_bytes(&base64)?)?;
            Ok(None)
        }
        last => Ok(Some(last)),
    }
}

/// What is known of the cell's kernel; where nothing is, a guest of its own finds it out.
fn facts(cell: &Cell, errand: &mut Errand<'_>) -> Result<Facts> {
    let path = cell.kernel.folder.join("facts.json");
    if let Some(facts) = read(&path).and_then(|text| serde_json::from_str(&text).ok()) {
        return Ok(facts);
    }
    errand.watch.note(&format!("{} boots for the first time", cell.kernel.name));
    let learner = Cell {
        target: cell.target.clone(),
        profile: profile::Profile { cmdline: String::new(), ..cell.profile.clone() },
        kernel: cell.kernel.clone(),
        time: Time::Instructions,
        job: Job::Learn,
        files: Vec::new(),
        links: Vec::new(),
    };
    let answer = carry_out(vec![Ok(learner)], errand, &mut |_, _| Ok(())).pop();
    let answer = answer.expect("one cell, one answer")?;
    let Message::Facts(facts) = answer.last else { return Err(answer.unexpected()) };
    let text = serde_json::to_string_pretty(&facts).expect("facts are plain data");
    // A cache that can't be written costs time, not results.
    let _ = file::write_atomically(&path, text.as_bytes());
    Ok(facts)
}

/// Where the answer of a cell is kept that gives the same one each time: under the digest of all
/// that it depends on.
fn known(cell: &Cell, boot: &Boot, timer: Option<ApicTimer>) -> Result<Option<PathBuf>> {
    if cell.time != Time::Instructions || matches!(cell.job, Job::Learn) {
        return Ok(None);
    }
    let version = qemu::version(&cell.target)?;
    let machine = qemu::arguments(cell);
    let text =
        format!("{version}\n{machine:?}\n{}\n{timer:?}\n{}", cell.kernel.digest, boot.cmdline);
    let digest = Sha256::new().chain_update(text).chain_update(&boot.initramfs).finalize();
    let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = kernel::cache()?.join("cells");
    // As above: without a folder there is no memory.
    Ok(std::fs::create_dir_all(&folder).is_ok().then(|| folder.join(name)))
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}
