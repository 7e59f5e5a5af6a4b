//! The thread that answers programs, at a socket that all may connect to, and readers of metrics.
//! Whatever they send and whatever they leave undone, it goes on and takes no more memory.

mod client;
mod door;
mod http;
mod standing;

use super::board::Board;
use super::voice::Voice;
use crate::failure::{Result, failed};
use client::{Client, Said};
use door::Program;
use latlab_bpf::wakers::Meter;
use latlab_core::mechanism::asking::{self, Answer, Ask};
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::mechanism::status::Status;
use latlab_core::mechanism::watching::Violations;
use latlab_core::time::Nanos;
use latlab_sys::listener::Listener;
use latlab_sys::peer::Peer;
use latlab_sys::poll::{self, Awaited};
use latlab_sys::root::Root;
use latlab_sys::{clock, process};
use standing::Standing;
use std::fs::File;
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// So many programs are listened to at once, and so many readers of metrics.
const PROGRAMS: usize = 64;
const READERS: usize = 16;

/// What the thread needs.
#[derive(Debug)]
pub(super) struct Office {
    pub(super) root: Root,
    pub(super) configuration: Configuration,
    pub(super) board: Arc<Board>,
    /// What is counted of who wakes whom, where that is watched.
    pub(super) meter: Option<Meter>,
    /// By which it is said what is done.
    pub(super) voice: Voice,
    pub(super) listener: Listener,
    /// Why nobody can ask for device groups, if so.
    pub(super) no_groups: Option<String>,
    /// Where metrics are asked for.
    pub(super) metrics: Option<TcpListener>,
    /// How they are written.
    pub(super) written: fn(&Status) -> String,
}

/// The thread at work. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Control {
    thread: Option<JoinHandle<()>>,
    /// Closed, it tells the thread to end.
    open: Option<File>,
}

impl Control {
    pub(super) fn start(office: Office) -> Result<Control> {
        let unable = |e| failed("the thread that answers programs", e);
        let (told, open) = process::pipe().map_err(unable)?;
        let mut answering = Answering { office, standing: Standing::default(), refused: 0 };
        let thread = Builder::new().name("control".to_owned());
        let thread = thread.spawn(move || answering.serve(&told)).map_err(unable)?;
        Ok(Control { thread: Some(thread), open: Some(open) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.open = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Answering {
    office: Office,
    standing: Standing,
    refused: u64,
}

/// Who is connected now.
#[derive(Debug, Default)]
struct Connected {
    programs: Vec<Client<Program>>,
    readers: Vec<Client<()>>,
    /// Until then nobody is let in.
    pause: Nanos,
}

impl Answering {
    /// Until `told` says that it is over.
    fn serve(&mut self, told: &File) {
        let mut connected = Connected::default();
        while let Some(ready) = self.wait(told, &connected) {
            if !self.go_on(ready, &mut connected) {
                return;
            }
        }
    }

    /// Deals with what is ready, of everything in the order of [`Answering::wait`]. Whether it is
    /// not over.
    fn go_on(&mut self, ready: Vec<bool>, connected: &mut Connected) -> bool {
        let mut ready = ready.into_iter();
        let mut next = || ready.next().unwrap_or_default();
        if next() {
            return false;
        }
        let (knocking, asking) = (next(), next());
        // Before anybody is listened to: who asks changes the list of those that may have ended.
        if self.standing.end(&mut next) {
            self.office.board.ask(self.standing.list());
        }
        connected.programs.retain_mut(|one| !next() || self.listen(one));
        connected.readers.retain_mut(|one| {
            !next() || one.go_on(http::LONGEST, |(), heard| http::answer(heard, || self.page()))
        });
        connected.forget_the_slow();
        if knocking {
            self.let_in(connected);
        }
        if asking {
            self.let_in_reader(connected);
        }
        true
    }

    /// Waits until there is something to do. Of everything, in the order in which it is dealt with,
    /// whether there is; none where nothing can be waited for.
    fn wait(&self, told: &File, connected: &Connected) -> Option<Vec<bool>> {
        let now = clock::now();
        let open = now >= connected.pause;
        let mut all = vec![(told.as_fd(), Awaited::Reading)];
        // Whoever is not let in is waited for in vain, and the order stays.
        let or_nobody = |fd: Option<_>| (fd.unwrap_or(told.as_fd()), Awaited::Reading);
        let listener = open && connected.programs.len() < PROGRAMS;
        all.push(or_nobody(listener.then(|| self.office.listener.as_fd())));
        let metrics = self.office.metrics.as_ref().filter(|_| open);
        let metrics = metrics.filter(|_| connected.readers.len() < READERS);
        all.push(or_nobody(metrics.map(|listener| listener.as_fd())));
        all.extend(self.standing.awaited());
        all.extend(connected.programs.iter().map(Client::awaited));
        all.extend(connected.readers.iter().map(Client::awaited));
        let until = connected.next_deadline(now);
        poll::wait(&all, until.map(|until| until - now)).ok()
    }

    fn listen(&mut self, client: &mut Client<Program>) -> bool {
        client.go_on(asking::LONGEST, |program, heard| {
            let answer = match (asking::line(heard), program) {
                (Ok(None), _) => return None,
                (Err(why), _) => Err(Answer::Wrong(why)),
                (Ok(Some(_)), Program::Stranger(why)) => Err(Answer::Denied(why.clone())),
                (Ok(Some(line)), Program::Known(peer)) => self.answer(line, peer),
            };
            // Who asks for what can't be is not listened to any more.
            let last = answer.is_err();
            let answer = answer.unwrap_or_else(|refusal| {
                self.refused += 1;
                refusal.to_string()
            });
            Some(Said { answer: answer + "\n", last })
        })
    }

    fn answer(&mut self, line: &str, peer: &Arc<Peer>) -> std::result::Result<String, Answer> {
        let done = match Ask::read(line, &self.office.configuration).map_err(Answer::Wrong)? {
            Ask::Status => {
                let status = serde_json::to_string(&self.status());
                return Ok(status.expect("a status is plain data"));
            }
            Ask::Groups(groups) => {
                if let Some(why) = &self.office.no_groups {
                    return Err(Answer::Denied(why.clone()));
                }
                let done = groups.join(",");
                if !self.standing.ask(peer, groups) {
                    let many = format!("{} processes have asked already", standing::MOST);
                    return Err(Answer::Denied(many));
                }
                done
            }
            Ask::Release => {
                self.standing.release(peer);
                String::new()
            }
        };
        self.office.board.ask(self.standing.list());
        Ok(Answer::Ok(done).to_string())
    }

    fn status(&self) -> Status {
        let meter = self.office.meter.as_ref();
        Status {
            at: clock::now(),
            requests: self.standing.list(),
            refused: self.refused,
            unsaid: self.office.voice.unsaid(),
            violations: meter.map(|meter| named(meter.violations(), &self.office.root)),
            cpu: clock::of_process(),
            programs: meter.and_then(Meter::programs),
            ..self.office.board.status()
        }
    }

    fn page(&self) -> String {
        (self.office.written)(&self.status())
    }
}

/// With the names of those tasks that are there.
fn named(mut violations: Violations, root: &Root) -> Violations {
    for task in violations.tasks() {
        let name = root.text(format!("proc/{}/comm", task.id));
        task.name = name.map(|name| name.trim_end().to_owned());
    }
    violations
}

impl Connected {
    fn next_deadline(&self, now: Nanos) -> Option<Nanos> {
        let programs = self.programs.iter().map(Client::deadline);
        let readers = self.readers.iter().map(Client::deadline);
        programs.chain(readers).chain((self.pause > now).then_some(self.pause)).min()
    }

    fn forget_the_slow(&mut self) {
        let now = clock::now();
        self.programs.retain(|client| client.deadline() > now);
        self.readers.retain(|client| client.deadline() > now);
    }
}

#[cfg(test)]
mod tests;
