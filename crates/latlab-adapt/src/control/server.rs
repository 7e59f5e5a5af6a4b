//! The loop of the control thread: waits for descriptors, and serves those that are ready.

use super::access::Access;
use super::connection::{Connection, Reply};
use super::requests::GroupRequests;
use super::{Context, http};
use latlab_bpf::wakers::WakerCounters;
use latlab_core::time::Nanos;
use latlab_mechanism::Request;
use latlab_mechanism::protocol::{self, Answer, Command};
use latlab_mechanism::status::Status;
use latlab_mechanism::violations::Violations;
use latlab_sys::clock;
use latlab_sys::peer::Peer;
use latlab_sys::poll::{self, Interest};
use latlab_sys::root::Root;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;

/// Most programs, and most readers of metrics, that are connected at once.
pub(super) const PROGRAMS: usize = 96;
const READERS: usize = 16;

/// The state of the control thread.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) context: Context,
    pub(super) requests: GroupRequests,
    /// Number of requests that were refused.
    pub(super) refused: u64,
}

/// The open connections.
#[derive(Debug, Default)]
pub(super) struct Connections {
    pub(super) programs: Vec<Connection<Access>>,
    pub(super) readers: Vec<Connection<()>>,
    /// Until this time no connection is accepted.
    pub(super) pause: Nanos,
}

/// The descriptors that are ready. Each list has the order of the processes or connections.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) stop: bool,
    pub(super) listener: bool,
    pub(super) metrics: bool,
    /// Processes with a request that have ended.
    pub(super) ended: Vec<bool>,
    pub(super) programs: Vec<bool>,
    pub(super) readers: Vec<bool>,
}

impl Server {
    pub(super) fn new(context: Context) -> Server {
        Server { context, requests: GroupRequests::default(), refused: 0 }
    }

    /// Serves until `stop` is closed, or descriptors can't be waited for, which it logs.
    pub(super) fn serve(&mut self, stop: &File) {
        if let Err(error) = self.serve_until(stop) {
            let what = "requests and metrics are not served any more, but adapting goes on";
            self.context.logger.log(&format!("{what}: {error}"));
        }
    }

    fn serve_until(&mut self, stop: &File) -> io::Result<()> {
        let mut connections = Connections::default();
        loop {
            let ready = self.wait(stop, &connections)?;
            if ready.stop {
                return Ok(());
            }
            self.serve_ready(&ready, &mut connections);
        }
    }

    /// Waits until something is ready.
    pub(super) fn wait(&self, stop: &File, connections: &Connections) -> io::Result<Ready> {
        let now = clock::now();
        let Connections { programs, readers, pause } = connections;
        let accepts = now >= *pause;
        let listener = (accepts && programs.len() < PROGRAMS).then_some(&self.context.listener);
        let metrics = self.context.metrics.as_ref();
        let metrics = metrics.filter(|_| accepts);

        let mut all = vec![(stop.as_fd(), Interest::Reading)];
        all.extend(listener.map(|listener| (listener.as_fd(), Interest::Reading)));
        all.extend(metrics.map(|metrics| (metrics.as_fd(), Interest::Reading)));
        all.extend(self.requests.awaited());
        all.extend(programs.iter().map(Connection::awaited));
        all.extend(readers.iter().map(Connection::awaited));

        let at_most = connections.next_deadline(now).map(|deadline| deadline - now);
        let mut flags = poll::wait(&all, at_most)?.into_iter();
        let mut take = |count: usize| flags.by_ref().take(count).collect::<Vec<bool>>();
        Ok(Ready {
            stop: take(1).contains(&true),
            listener: take(usize::from(listener.is_some())).contains(&true),
            metrics: take(usize::from(metrics.is_some())).contains(&true),
            ended: take(self.requests.awaited().count()),
            programs: take(programs.len()),
            readers: take(readers.len()),
        })
    }

    /// Serves everything that is ready.
    pub(super) fn serve_ready(&mut self, ready: &Ready, connections: &mut Connections) {
        // First, as `ready.ended` belongs to the requests before any new one.
        if self.requests.remove_ended(&ready.ended) {
            self.context.mailbox.put_requests(self.requests.list());
        }
        retain_ready(&mut connections.programs, &ready.programs, |one| self.serve_program(one));
        retain_ready(&mut connections.readers, &ready.readers, |one| self.serve_reader(one));
        connections.drop_expired();
        if ready.listener {
            self.accept_program(connections);
        }
        if ready.metrics {
            self.accept_reader(connections);
        }
    }

    /// Reads from, or writes to, a program. Whether the connection stays open.
    fn serve_program(&mut self, connection: &mut Connection<Access>) -> bool {
        connection.proceed(protocol::LONGEST, |access, received| {
            let answer = match (protocol::line(received), access) {
                (Ok(None), _) => return None,
                (Err(why), _) => Err(Answer::Wrong(why)),
                (Ok(Some(_)), Access::Denied(why)) => Err(Answer::Denied(why.clone())),
                (Ok(Some(line)), Access::Granted(peer)) => self.answer(line, peer),
            };
            // An invalid request ends the connection.
            let last = answer.is_err();
            let text = answer.unwrap_or_else(|refusal| {
                self.refused += 1;
                refusal.to_string()
            });
            Some(Reply { text: text + "\n", last })
        })
    }

    /// Reads from, or writes to, a reader of metrics. Whether the connection stays open.
    fn serve_reader(&self, connection: &mut Connection<()>) -> bool {
        let page = || (self.context.format_metrics)(&self.status());
        connection.proceed(http::LONGEST, |(), received| http::reply(received, page))
    }

    fn answer(&mut self, line: &str, peer: &Arc<Peer>) -> Result<String, Answer> {
        match Command::read(line, &self.context.configuration).map_err(Answer::Wrong)? {
            Command::Status => {
                let status = serde_json::to_string(&self.status());
                Ok(status.expect("a status is plain data"))
            }
            Command::Groups { groups, thread } => self.add_request(peer, groups, thread),
            Command::Release { thread } => {
                check_alive(peer)?;
                self.requests.release(peer.process, thread);
                self.context.mailbox.put_requests(self.requests.list());
                Ok(Answer::Ok(String::new()).to_string())
            }
        }
    }

    fn add_request(
        &mut self,
        peer: &Arc<Peer>,
        groups: Vec<String>,
        thread: Option<i32>,
    ) -> Result<String, Answer> {
        if let Some(why) = &self.context.groups_refused {
            return Err(Answer::Denied(why.clone()));
        }
        check_alive(peer)?;
        let root = &self.context.root;
        let has_thread = |process, id| root.has(format!("proc/{process}/task/{id}"));
        if let Some(id) = thread.filter(|id| !has_thread(peer.process, *id)) {
            return Err(Answer::Wrong(format!("process {} has no thread {id}", peer.process)));
        }
        self.requests.remove_ended_threads(has_thread);
        let names = groups.join(",");
        let request = Request { process: peer.process, thread, groups };
        self.requests.add(peer, request).map_err(Answer::Denied)?;
        self.context.mailbox.put_requests(self.requests.list());
        Ok(Answer::Ok(names).to_string())
    }

    fn status(&self) -> Status {
        let meter = self.context.meter.as_ref();
        Status {
            at: clock::now(),
            requests: self.requests.list(),
            refused: self.refused,
            unsaid: self.context.logger.dropped(),
            violations: meter.map(|meter| with_names(meter.violations(), &self.context.root)),
            cpu: clock::process_cpu_time(),
            programs: meter.and_then(WakerCounters::programs),
            ..self.context.mailbox.status()
        }
    }
}

impl Connections {
    fn next_deadline(&self, now: Nanos) -> Option<Nanos> {
        let programs = self.programs.iter().map(Connection::deadline);
        let readers = self.readers.iter().map(Connection::deadline);
        programs.chain(readers).chain((self.pause > now).then_some(self.pause)).min()
    }

    /// Adds a reader of metrics. If there are too many, it replaces the first reader that still
    /// waits: readers that send nothing must not keep others out.
    pub(super) fn add_reader(&mut self, reader: Connection<()>) {
        if self.readers.len() >= READERS {
            self.readers.remove(0);
        }
        self.readers.push(reader);
    }

    fn drop_expired(&mut self) {
        let now = clock::now();
        self.programs.retain(|connection| connection.deadline() > now);
        self.readers.retain(|connection| connection.deadline() > now);
    }
}

/// Refuses a request of a process that has ended, while another has its connection: its id may
/// belong to a third one.
fn check_alive(peer: &Peer) -> Result<(), Answer> {
    match peer.has_ended() {
        Ok(false) => Ok(()),
        Ok(true) => Err(Answer::Denied("the process that has connected has ended".to_owned())),
        Err(error) => Err(Answer::Denied(format!(
            "whether the process that has connected has ended can't be known: {error}"
        ))),
    }
}

/// Calls `serve` for each connection that is ready, and drops those for which it returns false.
fn retain_ready<T>(
    connections: &mut Vec<Connection<T>>,
    ready: &[bool],
    mut serve: impl FnMut(&mut Connection<T>) -> bool,
) {
    let mut ready = ready.iter();
    connections.retain_mut(|one| !ready.next().is_some_and(|ready| *ready) || serve(one));
}

/// Adds the names of the tasks that still run.
fn with_names(mut violations: Violations, root: &Root) -> Violations {
    for task in violations.tasks() {
        let name = root.text(format!("proc/{}/comm", task.id));
        task.name = name.map(|name| name.trim_end().to_owned());
    }
    violations
}
