//! Invalid, oversized and idle clients: the daemon keeps working and uses no more memory.

use super::{FAKE_KNOBS, LATLAB, folder, root};
use crate::program::{Running, field, wait_until};
use std::fs;
use std::io::{Read as _, Write as _};
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

const PATIENCE: Duration = Duration::from_mins(1);

fn connect(folder: &Path) -> std::io::Result<UnixStream> {
    UnixStream::connect(folder.join("run/adapt.sock"))
}

/// Sends these bytes and returns the first line of the answer; empty without an answer.
fn answer(folder: &Path, bytes: &[u8]) -> String {
    let mut connection = connect(folder).expect("the daemon listens");
    connection.set_read_timeout(Some(PATIENCE)).expect("a socket has a timeout");
    let _ = connection.write_all(bytes);
    let mut answer = Vec::new();
    let mut buffer = [0; 512];
    while !answer.contains(&b'\n') {
        match connection.read(&mut buffer) {
            Ok(read) if read > 0 => answer.extend_from_slice(&buffer[..read]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

fn memory(daemon: &Running) -> u64 {
    let text = field(daemon.pid(), "VmRSS").expect("the process exists");
    text.trim_end_matches(" kB").trim().parse().expect("VmRSS is a number")
}

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
        for number in 0..count {
            let bytes = bad[number % bad.len()];
            if bytes.is_empty() {
                // A client that disconnects without a request.
                drop(connect(folder));
            } else {
                assert!(answer(folder, bytes).starts_with("wrong "), "{number}");
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
    let mut idle: Vec<UnixStream> = (0..100).map(|_| connect(folder.path()).unwrap()).collect();
    idle[0].write_all(b"sta").unwrap();
    assert!(answer(folder.path(), b"status\n").starts_with('{'));
    assert_eq!(idle[0].read(&mut [0]).unwrap_or(0), 0, "the client was disconnected");
    drop(daemon);
}

/// Sends an HTTP request and returns the response.
fn page(port: u16, request: &str) -> String {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).expect("the daemon listens");
    connection.write_all(request.as_bytes()).expect("the request is accepted");
    let mut page = String::new();
    let _ = connection.read_to_string(&mut page);
    page
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
