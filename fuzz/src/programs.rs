//! Parsers of what other programs, machines and the kernel write, each with a use of the result, and assertions
//! about it.

use blazesym::symbolize::Symbolizer;
use latlab::study::slurm;
use latlab::target::doctor::diagnosed;
use latlab::target::ssh::connection::next_line;
use latlab::target::ssh::host::Host;
use latlab_adapt::control::http;
use latlab_adapt::log_file;
use latlab_bpf::UserStack;
use latlab_check::{EventKind, Judge, Report};
use latlab_core::doctor::diagnose;
use latlab_core::machine::Machine;
use latlab_core::plan::{Part, Plan};
use latlab_core::record::Record;
use latlab_format::picture::{NamedRecord, charts};
use latlab_format::width::Width;
use latlab_format::{
    adapting, csv, folded, harmless, html, junit, metrics, perfetto, printable, svg, text,
};
use latlab_guest::archive;
use latlab_lab::arch::Arch;
use latlab_lab::cache;
use latlab_lab::guest::debugger::Debugger;
use latlab_lab::guest::library::elf::Elf;
use latlab_lab::guest::module;
use latlab_lab::kernel::{self, apt, image, store};
use latlab_lab::profile;
use latlab_measure::call::CALLS;
use latlab_measure::check::image::{Image, binds_lazily};
use latlab_measure::check::marks::marks_with_offsets;
use latlab_measure::engine::Prepared;
use latlab_measure::load::LOADS;
use latlab_measure::message::{Message, output_bytes};
use latlab_measure::probe::PROBES;
use latlab_mechanism::status::Status;
use latlab_part::part;
use std::ffi::OsStr;
use std::io::Write as _;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Component, Path};

/// A message from a guest or a host.
pub fn message(bytes: &[u8]) {
    let Ok(line) = str::from_utf8(bytes) else { return };
    let Ok(message) = Message::read(line) else { return };
    if let Message::Output { base64, .. } = &message {
        let _ = output_bytes(base64);
    }
    let mut sent = Vec::new();
    message.send(&mut sent).expect("memory takes it");
    let sent = str::from_utf8(&sent).expect("it is text");
    assert_eq!(sent.matches('\n').count(), 1, "a message is one line");
    Message::read(sent).expect("latlab reads what it sends");
}

/// A kept cell: the digest of its messages is right.
pub fn cell(bytes: &[u8]) {
    let Ok(transcript) = str::from_utf8(bytes) else { return };
    assert!(cache::read(transcript).is_none(), "it has no digest");
    let kept = format!("{}\n{transcript}", kernel::digest(transcript.as_bytes()));
    let Some(messages) = cache::read(&kept) else { return };
    assert!(messages.last().is_some_and(Message::is_answer));
}

/// A plan for another machine or a guest: one that can be carried out means the same when it is sent
/// on. In others a number may be rounded.
pub fn plan(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(plan) = serde_json::from_str::<Plan>(text) else { return };
    if Prepared::of(&plan).is_err() {
        return;
    }
    let sent = serde_json::to_string(&plan).expect("it is plain data");
    let received: Plan = serde_json::from_str(&sent).expect("latlab reads what it sends");
    assert_eq!(received, plan);
}

/// An archive of files for a guest: no path leads out of the folder.
pub fn cpio(bytes: &[u8]) {
    let (mut rest, mut length) = (bytes, bytes.len());
    while let Ok(Some(entry)) = archive::Entry::next(&mut rest) {
        let stays = |part| matches!(part, Component::Normal(_));
        assert!(entry.path.components().all(stays), "{}", entry.path.display());
        assert!(rest.len() < length, "it ends");
        length = rest.len();
    }
}

/// What QEMU's debugger port answers.
pub fn debugger(bytes: &[u8]) {
    let connected = |ask: &dyn Fn(&mut Debugger)| {
        let (ours, mut qemus) = UnixStream::pair().expect("a descriptor is free");
        qemus.set_nonblocking(true).expect("it is a socket");
        // What the socket does not take, the debugger does not get.
        let _ = qemus.write(bytes);
        qemus.shutdown(Shutdown::Write).expect("it is open");
        ask(&mut Debugger::new(ours).expect("a descriptor is free"));
    };
    connected(&|debugger| {
        if let Ok(cpu) = debugger.run_to(0xff10) {
            assert!(!cpu.contains(';'), "{cpu}");
        }
    });
    connected(&|debugger| drop(debugger.command("savevm x")));
    connected(&|debugger| drop(debugger.write(1, &[0; 9_000])));
}

/// A kernel's file.
pub fn kernel_image(bytes: &[u8]) {
    if let Ok(kernel) = image::read(bytes) {
        let part_of_name = |c: char| c.is_ascii_alphanumeric() || "+-._~".contains(c);
        assert!(kernel.release.chars().all(part_of_name), "{}", kernel.release);
        assert!(!kernel.release.starts_with('.'));
    }
}

/// The description of a package by apt.
pub fn package(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let _ = apt::parse(text);
}

/// The description of a kernel in the cache, and the order of its version among others.
pub fn kernel_facts(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let _ = serde_json::from_str::<store::Facts>(text);
    let key = store::version_key(text);
    assert!(text.is_empty() == key.is_empty() && key <= store::version_key(&format!("{text}0")));
}

/// A program or library that goes into a guest.
pub fn elf(bytes: &[u8]) {
    let _ = Elf::read(bytes, Arch::usual());
}

/// A kernel module, packed in one of three ways or not; the first byte chooses.
pub fn kernel_module(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let extension = ["ko", "gz", "xz", "zst"][usize::from(first % 4)];
    if let Ok(bytes) = module::unpacked(bytes.to_vec(), Some(OsStr::new(extension))) {
        let _ = module::Info::read(Path::new("module"), &bytes);
    }
}

/// The output of Slurm's commands.
pub fn slurm(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let tasks = slurm::parse_tasks(text);
    assert!(tasks.iter().all(|task| !(task.has_ended() && task.is_pending())));
    assert!(slurm::newest_active(text, "/a").is_none_or(|job| job.parse::<u64>().is_ok()));
    assert!(!slurm::last_line(text).contains('\n'));
}

/// A profile.
pub fn profile(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let _ = profile::read("fuzz", text);
}

/// A part on the command line. What is accepted can be built, and is the same after a plan was sent.
pub fn part(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    is_same_when_sent(part::parse("probe", PROBES, text, &[]), |one| {
        part::build("probe", PROBES, one).is_ok()
    });
    is_same_when_sent(part::parse("load", LOADS, text, &[]), |one| {
        part::build("load", LOADS, one).is_ok()
    });
    is_same_when_sent(part::parse("call", CALLS, text, &[]), |one| {
        part::build("call", CALLS, one).is_ok()
    });
}

fn is_same_when_sent(part: latlab_part::failure::Result<Part>, builds: impl Fn(&Part) -> bool) {
    let Ok(part) = part else { return };
    let sent = serde_json::to_string(&part).expect("it is plain data");
    let received: Part = serde_json::from_str(&sent).expect("latlab reads what it sends");
    assert_eq!((builds(&part), &received), (true, &part));
}

/// What the doctor of an ssh host prints: the machine is judged and explained with.
pub fn diagnosis(json: &[u8]) {
    let Ok(machine) = diagnosed(0, json, b"") else { return };
    let sent = serde_json::to_vec(&machine).expect("it is plain data");
    assert_eq!(serde_json::from_slice::<Machine>(&sent).expect("latlab wrote it"), machine);
    for finding in diagnose(&machine) {
        assert!(!finding.what.is_empty() && !finding.remedy.is_empty(), "{finding:?}");
    }
}

/// The name of a host, no word of which becomes an option of ssh, and what comes from it, read line by line with a
/// budget.
pub fn ssh(bytes: &[u8]) {
    const LONGEST: u64 = 64;
    if let Some(host) = str::from_utf8(bytes).ok().and_then(|text| Host::of(text).ok()) {
        let words = host.words();
        assert!(words.len() == 1 || words[0] == "-p" && words[1].parse::<u16>().is_ok());
        let destination = words.last().expect("there is one");
        assert!(!destination.starts_with('-') && !destination.contains(char::is_whitespace));
    }
    let mut pipe = bytes;
    while let Ok(Some(line)) = next_line(&mut pipe, LONGEST) {
        // A byte that is not UTF-8 becomes three.
        assert!(line.len() as u64 <= 3 * LONGEST, "{line}");
    }
}

/// A request of the daemon's metrics.
pub fn http(bytes: &[u8]) {
    match http::reply(bytes, || "page\n".to_owned()) {
        Some(reply) => assert!(reply.last && reply.text.starts_with("HTTP/1.1 ")),
        None => assert!(bytes.len() <= http::LONGEST),
    }
}

/// The status of the daemon, as its client shows it.
pub fn status(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(status) = serde_json::from_str::<Status>(text) else { return };
    let width = Width::of_stdout();
    let _ = (adapting::text(&status, width), adapting::screen(&status, width));
    let _ = (metrics::page(&status), status.asked(), status.share());
}

/// The report of a check, in all forms.
pub fn check(bytes: &[u8]) {
    let Ok(report) = serde_json::from_slice::<Report>(bytes) else { return };
    let sent = serde_json::to_string(&report).expect("it is plain data");
    assert_eq!(serde_json::from_str::<Report>(&sent).expect("latlab wrote it"), report);
    let _ = latlab_format::check::text(&report, &[]);
    let _ = junit::xml("check", &latlab_format::check::cases(&report, &[]));
    let _ = html::check::page(&[("report".to_owned(), report)]);
}

/// Events of a check, which are judged, one after another: a byte chooses the length of each.
pub fn events(bytes: &[u8]) {
    let mut rest = bytes;
    let events = std::iter::from_fn(|| {
        let (first, after) = rest.split_first()?;
        let length = if first & 1 == 0 { 120 } else { 192 };
        let event;
        (event, rest) = after.split_at(after.len().min(length));
        Some(event)
    });
    let mut judge = Judge::new(None);
    for (nth, observed) in events.filter_map(latlab_bpf::fuzz::observed).enumerate() {
        let mut event = observed.event;
        if let EventKind::Enter { stack, .. } | EventKind::Fault { stack, .. } = &mut event.kind {
            *stack = observed.stack.and_then(|_| u32::try_from(nth).ok());
        }
        judge.add(&event);
    }
    let report = judge.report(&mut |_, _| Vec::new(), &|_| true);
    check(&serde_json::to_vec(&report).expect("it is plain data"));
}

/// The file of a program that is checked: its marks, and the functions on a stack within it.
pub fn image(bytes: &[u8]) {
    const AT: u64 = 0x10_0000;
    let Ok(mut file) = latlab_sys::file::in_memory() else { return };
    file.write_all(bytes).expect("memory takes it");
    let again = || file.try_clone().expect("a descriptor is free");
    let _ = (binds_lazily(again()), marks_with_offsets(again()));
    let line = format!("{AT:x}-{:x} r-xp 00000000 00:00 0 /program", 2 * AT);
    let Some(mut image) = Image::of_file(&file, &line) else { return };
    let bytes: Vec<u8> = (0..64).flat_map(|nth| (AT + 0x2b0 + nth).to_ne_bytes()).collect();
    let symbolizer = Symbolizer::new();
    for ip in [AT, AT + 0x2b4, AT + 0x2c8] {
        let stack =
            UserStack { ip, sp: AT * 4, bp: AT * 4 + 64, lr: AT + 32, bytes: bytes.clone() };
        for address in image.unwind(&stack) {
            let frames = image.frames(&symbolizer, address);
            let _ = image.lacks(&frames);
            assert!(!frames.is_empty());
        }
    }
}

/// A log of the daemon.
pub fn adapt_log(bytes: &[u8]) {
    let _ = log_file::replay_lines("log", bytes);
}

/// Text from elsewhere, as a terminal gets it.
pub fn terminal(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let is_command = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(!harmless(text).contains(is_command));
    assert!(!printable(text).contains(char::is_control));
    let _ = Width::of_stdout().lay_out(text);
}

/// A valid record in all forms, and compared with itself.
pub(crate) fn report(record: Record) {
    let _ = text::summary(&record, true, Width::of_stdout());
    let _ = csv::series(&record);
    let comparison =
        latlab_core::compare::compare(std::slice::from_ref(&record), std::slice::from_ref(&record));
    if let Ok(comparison) = comparison {
        let _ = latlab_format::comparison::json(&comparison, &[]);
        let _ = latlab_format::comparison::text("a", "b", &comparison, &[], Width::of_stdout());
    }
    let _ = record.clone().merge(&record);
    let sources = [NamedRecord::from_run("record".to_owned(), record)];
    let charts = charts(&sources);
    let _ = charts.iter().map(svg::draw).count();
    let _ = html::page(&sources, &charts);
    let _ = (perfetto::trace(&sources), folded::stacks(&sources));
}

/// A journal of the guard.
pub fn journal(bytes: &[u8]) {
    latlab_sys::fuzz::journal(bytes);
}

/// The text of a knob's file.
pub fn knob(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    latlab_sys::fuzz::knob(text);
}

/// A window of the recorder, or the events of a CPU.
pub fn window(bytes: &[u8]) {
    latlab_bpf::fuzz::window_and_ring(bytes);
}
