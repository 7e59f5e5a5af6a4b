//! Tests of the control thread over its socket, as programs use it.

use super::access::Access;
use super::connection::Connection;
use super::server::{Connections, PROGRAMS, Ready};
use super::*;
use latlab_core::time::Nanos;
use latlab_mechanism::Request;
use latlab_sys::peer::Peer;
use latlab_sys::{clock, listener};
use latlab_testing::wait_at_most;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The time after which the server closes a connection on which nothing came. On a busy machine the
/// test may not run for as long.
const CLOSED_AFTER: Nanos = Nanos::from_secs(1);

/// A control thread with its socket in a folder of its own.
struct Fixture {
    root: Root,
    mailbox: Arc<Mailbox>,
    _control: Control,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn start(groups_refused: Option<&str>) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let (root, mailbox) = (Root::new(folder.path()), Arc::new(Mailbox::default()));
        let context = context(&root, &mailbox, groups_refused);
        Fixture { root, mailbox, _control: Control::start(context).unwrap(), folder }
    }

    /// Its reads wait until the server answers, however busy the machine is.
    fn connect(&self) -> UnixStream {
        listener::connect(&self.root, "adapt", Duration::from_mins(10)).unwrap()
    }

    fn program(&self) -> Program<'_> {
        let active = clock::now();
        Program { fixture: self, stream: self.connect(), active }
    }

    /// The answer to these bytes on a new connection.
    fn answer(&self, bytes: &[u8]) -> String {
        self.program().answer(bytes)
    }
}

/// A program that is connected.
struct Program<'a> {
    fixture: &'a Fixture,
    stream: UnixStream,
    /// When it connected, or sent its last request.
    active: Nanos,
}

impl Program<'_> {
    /// The answer to these bytes; on a new connection where the server has closed this one, which
    /// it must not do too early.
    fn answer(&mut self, bytes: &[u8]) -> String {
        loop {
            let sent = clock::now();
            let answer = answer(&mut self.stream, bytes);
            if !answer.is_empty() {
                self.active = sent;
                return answer;
            }
            assert!(clock::now() - self.active >= CLOSED_AFTER, "no answer");
            *self = self.fixture.program();
        }
    }
}

fn context(root: &Root, mailbox: &Arc<Mailbox>, groups_refused: Option<&str>) -> Context {
    Context {
        root: root.clone(),
        configuration: Configuration::default(),
        mailbox: Arc::clone(mailbox),
        meter: None,
        logger: Logger::disabled(),
        listener: Listener::bind(root, "adapt").unwrap(),
        groups_refused: groups_refused.map(str::to_owned),
        metrics: None,
        format_metrics: |_| String::new(),
    }
}

fn answer(connection: &mut UnixStream, bytes: &[u8]) -> String {
    // The server may answer and hang up before all is sent.
    let _ = connection.write_all(bytes);
    let mut answer = Vec::new();
    let mut byte = [0];
    // A signal of another test ends a single read.
    while !answer.ends_with(b"\n") && connection.read_exact(&mut byte).is_ok() {
        answer.push(byte[0]);
    }
    String::from_utf8(answer).unwrap()
}

fn root() -> bool {
    latlab_testing::root()
}

#[test]
fn request_stands_until_released_on_another_connection() {
    if !root() {
        return;
    }
    let fixture = Fixture::start(None);
    let mut program = fixture.program();
    assert_eq!(program.answer(b"groups audio,network\n"), "ok AUDIO,NETWORK\n");
    let asked = fixture.mailbox.try_requests().unwrap();
    assert_eq!(u32::try_from(asked[0].process).unwrap(), std::process::id());
    assert_eq!(asked[0].groups, ["AUDIO", "NETWORK"]);
    let status: Status = serde_json::from_str(&program.answer(b"status\n")).unwrap();
    assert_eq!(status.requests, asked);
    drop(program);
    assert_eq!(fixture.answer(b"release\n"), "ok\n");
    assert!(fixture.mailbox.try_requests().unwrap().is_empty());
}

#[test]
fn request_of_a_thread_is_for_a_thread_of_the_process() {
    if !root() {
        return;
    }
    let fixture = Fixture::start(None);
    let process = std::process::id();
    let task = fixture.folder.path().join(format!("proc/{process}/task"));
    std::fs::create_dir_all(task.join("7")).unwrap();
    let threads =
        || fixture.mailbox.try_requests().unwrap().iter().map(|one| one.thread).collect::<Vec<_>>();
    assert_eq!(fixture.answer(b"groups audio thread 7\n"), "ok AUDIO\n");
    assert_eq!(threads(), [Some(7)]);
    let other = fixture.answer(b"groups audio thread 8\n");
    assert_eq!(other, format!("wrong process {process} has no thread 8\n"));
    assert_eq!(fixture.answer(b"groups video\n"), "ok VIDEO\n");
    assert_eq!(threads(), [Some(7), None], "beside that of the process");
    std::fs::rename(task.join("7"), task.join("8")).unwrap();
    assert_eq!(fixture.answer(b"groups hid thread 8\n"), "ok HID\n");
    assert_eq!(threads(), [None, Some(8)], "thread 7 has ended");
    assert_eq!(fixture.answer(b"release\n"), "ok\n");
    assert!(threads().is_empty());
}

/// One of three processes ends while another one changes its request.
#[test]
fn end_of_process_leaves_requests_of_others() {
    if !root() {
        return;
    }
    for (sent, left) in [(&b"release\n"[..], &[3][..]), (b"groups VIDEO\n", &[3, 1])] {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let mut server = Server::new(context(&root, &Arc::default(), None));
        let (mut near, far) = UnixStream::pair().unwrap();
        let peers = [1, 2, 3].map(|process| {
            let mut peer = Peer::of(&near).unwrap();
            peer.process = process;
            Arc::new(peer)
        });
        for peer in &peers {
            let groups = vec!["AUDIO".to_owned()];
            let request = Request { process: peer.process, thread: None, groups };
            server.requests.add(peer, request).unwrap();
        }
        let mut connections = Connections::default();
        let access = Access::Granted(Arc::clone(&peers[0]));
        connections.programs.push(Connection::new(access, far));
        near.write_all(sent).unwrap();
        let (stop, _open) = process::pipe().unwrap();
        let mut ready = server.wait(&stop, &connections).unwrap();
        let expected = Ready {
            stop: false,
            listener: false,
            metrics: false,
            ended: vec![false; 3],
            programs: vec![true],
            readers: Vec::new(),
        };
        assert_eq!(ready, expected);
        ready.ended[1] = true;
        server.serve_ready(&ready, &mut connections);
        let requests = server.requests.list();
        let processes: Vec<i32> = requests.iter().map(|request| request.process).collect();
        assert_eq!(processes, left);
    }
}

#[test]
fn invalid_request_is_answered_and_ends_connection() {
    if !root() {
        return;
    }
    let fixture = Fixture::start(None);
    let why = "wrong there is no device group 'audoi': did you mean AUDIO?\n";
    let mut program = fixture.program();
    assert_eq!(program.answer(b"groups audoi\n"), why);
    assert_eq!(program.stream.read(&mut [0]).unwrap(), 0, "the connection is closed");
    assert!(fixture.answer(b"xyzzy\n").starts_with("wrong unknown request 'xyzzy': "));
    assert!(fixture.answer(&[b'x'; 1000]).starts_with("wrong the request is longer than"));
    assert!(fixture.answer(b"\xff\xfe\n").starts_with("wrong the request is not a line of text"));
    assert!(
        fixture.answer(b"status\nstatus\n").starts_with("wrong more than one request at a time")
    );
    let without = Fixture::start(Some("selective is not at work"));
    assert_eq!(without.answer(b"groups AUDIO\n"), "denied selective is not at work\n");
}

#[test]
fn idle_connection_is_dropped_after_a_second() {
    if !root() {
        return;
    }
    let fixture = Fixture::start(None);
    let began = clock::now();
    let mut hanging = fixture.connect();
    // It may be closed already.
    let _ = hanging.write_all(b"stat");
    let _others: Vec<UnixStream> = (1..PROGRAMS).map(|_| fixture.connect()).collect();
    assert!(fixture.answer(b"status\n").starts_with('{'), "there is room for a connection");
    assert!(clock::now() - began >= CLOSED_AFTER, "all connections were in use");
    let end = hanging.read(&mut [0]).map_err(|error| error.kind());
    assert!(matches!(end, Ok(0) | Err(io::ErrorKind::ConnectionReset)), "it was closed: {end:?}");
}

#[test]
fn metrics_are_served_beside_many_idle_connections() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = TcpListener::bind("127.0.0.1:0").unwrap();
    metrics.set_nonblocking(true).unwrap();
    let address = metrics.local_addr().unwrap();
    let context = context(&Root::new(folder.path()), &Arc::new(Mailbox::default()), None);
    let context =
        Context { metrics: Some(metrics), format_metrics: |_| "latlab 1\n".into(), ..context };
    let _control = Control::start(context).unwrap();
    let _idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(address).unwrap()).collect();
    let reading = Builder::new().spawn(move || metrics_at(address)).unwrap();
    // One after another, 16 at once, they would take 12 s.
    wait_at_most(Duration::from_secs(6), "the metrics are served", || reading.is_finished());
    let reply = reading.join().unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 OK"), "{reply}");
}

/// The metrics; on a new connection where the server has closed the first one, which it must not do
/// too early.
fn metrics_at(address: SocketAddr) -> String {
    loop {
        let begun = clock::now();
        let mut reader = TcpStream::connect(address).unwrap();
        let mut reply = String::new();
        let sent = reader.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
        let read = sent.and_then(|()| reader.read_to_string(&mut reply));
        if !reply.is_empty() {
            return reply;
        }
        assert!(clock::now() - begun >= CLOSED_AFTER, "no reply: {read:?}");
    }
}

#[test]
fn user_without_access_is_told_who_has_it() {
    let fixture = Fixture::start(None);
    std::fs::create_dir(fixture.folder.path().join("etc")).unwrap();
    let (near, _far) = UnixStream::pair().unwrap();
    let peer = Peer::of(&near).unwrap();
    assert_eq!(peer.is_root_or_in(&fixture.root, Some("nobody-has-this")), root());
    if !root() {
        assert!(fixture.answer(b"status\n").starts_with("denied only root may ask"));
    }
}
