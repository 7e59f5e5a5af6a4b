//! Asking over the socket, as programs do: whoever misbehaves, the others are answered.

use super::*;
use latlab_sys::listener;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A daemon's socket in a folder of its own.
struct Desk {
    root: Root,
    board: Arc<Board>,
    _control: Control,
    folder: tempfile::TempDir,
}

impl Desk {
    fn open(no_groups: Option<&str>) -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let (root, board) = (Root::new(folder.path()), Arc::new(Board::default()));
        let office = office(&root, &board, no_groups);
        Desk { root, board, _control: Control::start(office).unwrap(), folder }
    }

    fn connect(&self) -> UnixStream {
        listener::connect(&self.root, "adapt", Duration::from_secs(10)).unwrap()
    }

    /// What is answered to these bytes.
    fn answer(&self, bytes: &[u8]) -> String {
        answer(&mut self.connect(), bytes)
    }
}

fn office(root: &Root, board: &Arc<Board>, no_groups: Option<&str>) -> Office {
    Office {
        root: root.clone(),
        configuration: Configuration::default(),
        board: Arc::clone(board),
        meter: None,
        voice: Voice::mute(),
        listener: Listener::bind(root, "adapt").unwrap(),
        no_groups: no_groups.map(str::to_owned),
        metrics: None,
        written: |_| String::new(),
    }
}

fn answer(connection: &mut UnixStream, bytes: &[u8]) -> String {
    // Who is not listened to any more may be told so before all is sent.
    let _ = connection.write_all(bytes);
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\n") && connection.read(&mut byte).is_ok_and(|read| read == 1) {
        answer.push(byte[0]);
    }
    String::from_utf8(answer).unwrap()
}

fn root() -> bool {
    process::is_root()
}

#[test]
fn a_program_asks_and_takes_it_back_over_one_connection() {
    if !root() {
        return;
    }
    let desk = Desk::open(None);
    let mut connection = desk.connect();
    assert_eq!(answer(&mut connection, b"groups audio,network\n"), "ok AUDIO,NETWORK\n");
    let asked = desk.board.requests().unwrap();
    assert_eq!(u32::try_from(asked[0].process).unwrap(), std::process::id());
    assert_eq!(asked[0].groups, ["AUDIO", "NETWORK"]);
    let status = answer(&mut connection, b"status\n");
    let status: Status = serde_json::from_str(&status).unwrap();
    assert_eq!(status.requests, asked);
    drop(connection);
    assert_eq!(desk.answer(b"release\n"), "ok\n");
    assert!(desk.board.requests().unwrap().is_empty());
}

/// One of three processes ends at the very moment at which another one asks for other groups.
#[test]
fn the_end_of_a_process_takes_nothing_from_those_that_live() {
    if !root() {
        return;
    }
    for (said, left) in [(&b"release\n"[..], &[3][..]), (b"groups VIDEO\n", &[3, 1])] {
        let folder = tempfile::tempdir().unwrap();
        let mut answering = Answering {
            office: office(&Root::new(folder.path()), &Arc::default(), None),
            standing: Standing::default(),
            refused: 0,
        };
        let (mut near, far) = UnixStream::pair().unwrap();
        let peers = [1, 2, 3].map(|process| {
            let mut peer = Peer::of(&near).unwrap();
            peer.process = process;
            Arc::new(peer)
        });
        for peer in &peers {
            assert!(answering.standing.ask(peer, vec!["AUDIO".to_owned()]));
        }
        let mut connected = Connected::default();
        let who = Program::Known(Arc::clone(&peers[0]));
        connected.programs.push(Client::new(who, far));
        near.write_all(said).unwrap();
        let (told, _open) = process::pipe().unwrap();
        let mut ready = answering.wait(&told, &connected).unwrap();
        assert_eq!(ready, [false, false, false, false, false, false, true]);
        ready[4] = true;
        assert!(answering.go_on(ready, &mut connected));
        let standing: Vec<i32> =
            answering.standing.list().iter().map(|request| request.process).collect();
        assert_eq!(standing, left);
    }
}

#[test]
fn who_asks_for_what_can_t_be_hears_why_and_is_not_listened_to_any_more() {
    if !root() {
        return;
    }
    let desk = Desk::open(None);
    let why = "wrong there is no device group 'audoi': did you mean AUDIO?\n";
    let mut connection = desk.connect();
    assert_eq!(answer(&mut connection, b"groups audoi\n"), why);
    assert_eq!(connection.read(&mut [0]).unwrap(), 0, "that was all");
    assert!(desk.answer(b"xyzzy\n").starts_with("wrong 'xyzzy' is none of: "));
    assert!(desk.answer(&[b'x'; 1000]).starts_with("wrong a request is one line of at most"));
    assert!(desk.answer(b"\xff\xfe\n").starts_with("wrong a request is a line of text"));
    assert!(desk.answer(b"status\nstatus\n").starts_with("wrong one request at a time"));
    let without = Desk::open(Some("selective is not at work"));
    assert_eq!(without.answer(b"groups AUDIO\n"), "denied selective is not at work\n");
}

#[test]
fn who_hangs_keeps_nobody_waiting_and_is_dropped_after_a_second() {
    if !root() {
        return;
    }
    let desk = Desk::open(None);
    let began = clock::now();
    let mut hanging: Vec<UnixStream> = (0..PROGRAMS).map(|_| desk.connect()).collect();
    hanging[0].write_all(b"stat").unwrap();
    assert!(desk.answer(b"status\n").starts_with('{'), "there is room again");
    assert!(clock::now() - began >= Nanos::from_millis(900), "all places were taken");
    assert_eq!(hanging[0].read(&mut [0]).unwrap_or(0), 0, "nobody listens any more");
}

#[test]
fn a_stranger_is_told_who_may_ask() {
    let desk = Desk::open(None);
    std::fs::create_dir(desk.folder.path().join("etc")).unwrap();
    let (near, _far) = UnixStream::pair().unwrap();
    let peer = Peer::of(&near).unwrap();
    assert_eq!(peer.is_root_or_in(&desk.root, Some("nobody-has-this")), root());
    if !root() {
        assert!(desk.answer(b"status\n").starts_with("denied only root may ask"));
    }
}
