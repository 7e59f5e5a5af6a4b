//! Invalid, oversized and idle clients: the daemon keeps working and uses no more memory.

use super::{FAKE_KNOBS, LATLAB, folder, root};
use crate::program::{Running, field, wait_until};
use latlab_testing::Patience;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::iter;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Starts a daemon that the test can connect to, with plain files in place of the knobs.
fn start(folder: &Path, words: &str) -> Running {
    let script = format!("{FAKE_KNOBS}exec \"$program\" adapt --mechanisms suppress {words}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]).arg(script).arg("sh").arg(LATLAB).arg(folder);
    let daemon = Running::start(&mut command);
    wait_until("the daemon listens", || connect(folder).is_ok());
    daemon
}

/// Longest wait for an answer, on an idle machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often a client asks. The daemon closes a connection on which nothing came for a second: one that
/// had to wait for a CPU so long asks anew, as latlab does.
const ATTEMPTS: usize = 3;

fn connect(folder: &Path) -> std::io::Result<UnixStream> {
    UnixStream::connect(folder.join("run/adapt.sock"))
}

/// Sends these bytes and returns the first line of the answer; empty without an answer.
fn answer(folder: &Path, bytes: &[u8]) -> String {
    answer_at(ask(folder, bytes), folder, bytes)
}

/// Sends these bytes on a connection of their own.
fn ask(folder: &Path, bytes: &[u8]) -> UnixStream {
    let mut connection = connect(folder).expect("the daemon listens");
    let _ = connection.write_all(bytes);
    connection
}

/// Returns the answer to these bytes, which were sent on this connection.
fn answer_at(connection: UnixStream, folder: &Path, bytes: &[u8]) -> String {
    let anew = iter::repeat_with(|| ask(folder, bytes));
    let mut answers = iter::once(connection).chain(anew).take(ATTEMPTS).map(first_line);
    answers.find(|line| !line.is_empty()).unwrap_or_default()
}

fn first_line(mut connection: UnixStream) -> String {
    let step = Some(Duration::from_millis(100));
    connection.set_read_timeout(step).expect("a socket has a timeout");
    let (mut line, mut buffer) = (Vec::new(), [0; 512]);
    let mut patience = Patience::new(PATIENCE);
    while !line.contains(&b'\n') {
        match connection.read(&mut buffer) {
            Ok(read) if read > 0 => line.extend_from_slice(&buffer[..read]),
            Err(e) if e.kind() == ErrorKind::WouldBlock && !patience.is_over() => {}
            _ => break,
        }
    }
    String::from_utf8_lossy(&line).into_owned()
}

fn memory(daemon: &Running) -> u64 {
    let text = field(daemon.pid(), "VmRSS").expect("the process exists");
    text.trim_end_matches(" kB").trim().parse().expect("VmRSS is a number")
}

/// Requests that are sent before the answers are read: for each single one, a busy machine would have
/// both sides wait for a CPU.
const AT_ONCE: usize = 48;

#[test]
fn daemon_memory_is_the_same_after_100_000_bad_requests() {
    if !root() {
        return;
    }
    let folder = folder();
    let folder = folder.path();
    let daemon = start(folder, "");
    let long = vec![b'x'; 4096];
    let bad: [&[u8]; 6] =
        [b"nonsense\n", b"groups nothing\n", b"\xff\xfe\x00\n", &long, b"status\nstatus\n", b""];
    let flood = |count: usize| {
        for begin in (0..count).step_by(AT_ONCE) {
            let some = (begin..count.min(begin + AT_ONCE)).map(|number| bad[number % bad.len()]);
            // A client without a request disconnects.
            let some = some.map(|bytes| (bytes, ask(folder, bytes)));
            let asked: Vec<_> = some.filter(|(bytes, _)| !bytes.is_empty()).collect();
            for (bytes, connection) in asked {
                let answer = answer_at(connection, folder, bytes);
                assert!(answer.starts_with("wrong "), "{begin}: {answer}");
            }
        }
    };
    flood(1_000);
    let before = memory(&daemon);
    flood(100_000);
    let after = memory(&daemon);
    assert!(after <= before + 256, "{before} kB before, {after} kB after");
    let status = answer(folder, b"status\n");
    assert!(status.contains("\"refused\":84"), "{status}");
    daemon.signal("TERM");
    assert_eq!(daemon.finish().code(), Some(0));
}

#[test]
fn idle_client_does_not_delay_others() {
    if !root() {
        return;
    }
    let folder = folder();
    let daemon = start(folder.path(), "");
    let mut first = ask(folder.path(), b"sta");
    let idle: Vec<UnixStream> = (1..100).map(|_| connect(folder.path()).unwrap()).collect();
    assert!(answer(folder.path(), b"status\n").starts_with('{'));
    assert_eq!(first.read(&mut [0]).unwrap_or(0), 0, "the client was disconnected");
    drop((idle, daemon));
}

/// Sends an HTTP request and returns the response.
fn page(port: u16, request: &str) -> String {
    let once = || {
        let mut connection = TcpStream::connect(("127.0.0.1", port)).expect("the daemon listens");
        // Where the daemon has closed the connection, there is no page.
        let _ = connection.write_all(request.as_bytes());
        let mut page = String::new();
        let _ = connection.read_to_string(&mut page);
        page
    };
    let mut pages = iter::repeat_with(once).take(ATTEMPTS);
    pages.find(|page| !page.is_empty()).unwrap_or_default()
}

#[test]
fn metrics_are_served_to_localhost() {
    if !root() {
        return;
    }
    let folder = folder();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let daemon = start(folder.path(), &format!("--metrics 127.0.0.1:{port}"));
    assert!(answer(folder.path(), b"nonsense\n").starts_with("wrong "));
    let output = page(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (head, body) = output.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"),
        "{output}"
    );
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{output}");
    for line in [
        "latlab_knobs_turned 2",
        "latlab_decisions_total{mechanism=\"suppress\"} 2",
        "latlab_requests_refused_total 1",
    ] {
        assert!(body.lines().any(|one| one == line), "no {line} in: {body}");
    }
    assert!(page(port, "GET / HTTP/2\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(page(port, &"x".repeat(10_000)).starts_with("HTTP/1.1 431 "));
    drop(daemon);
    let _ = fs::remove_dir_all(folder.path().join("run"));
}
