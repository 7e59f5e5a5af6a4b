//! The far side of a guest: this program as the first process of a kernel.

use super::facts::Facts;
use super::orders::{Job, MODULES, ORDERS, Orders, PROGRAM};
use super::symbols::Symbols;
use crate::engine;
use crate::failure::{Result, failed};
use crate::message::{Message, Messenger, Stream};
use latlab_core::plan::Plan;
use latlab_core::time::Nanos;
use latlab_sys::process::{self, Running};
use latlab_sys::signal::Signals;
use latlab_sys::{clock, init, terminal};
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// Whether this process is the first one of a guest.
pub(crate) fn is_init() -> bool {
    std::process::id() == 1 && Path::new(ORDERS).exists()
}

/// Carries out the guest's orders and switches it off. Where that fails it says why on the
/// console, and the kernel panics with it.
pub(crate) fn serve() -> ! {
    let served = mount_all().and_then(|()| {
        let mut port = port()?;
        let said = orders().and_then(|orders| carry_out(&orders, &mut port));
        let last = said.unwrap_or_else(Message::Failed);
        // Closing the port waits until all has gone out.
        last.send(&mut port).map_err(|e| failed("the port", e))
    });
    if let Err(failure) = served {
        panic!("{failure}");
    }
    panic!("the guest can't be switched off: {}", init::power_off());
}

/// What programs expect to find, and what latlab reads.
fn mount_all() -> Result<()> {
    let needed = [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")];
    let wanted = [
        ("debugfs", "/sys/kernel/debug"),
        ("tracefs", "/sys/kernel/tracing"),
        ("cgroup2", "/sys/fs/cgroup"),
        ("bpf", "/sys/fs/bpf"),
        ("devpts", "/dev/pts"),
        ("mqueue", "/dev/mqueue"),
        ("tmpfs", "/dev/shm"),
    ];
    // The root is in memory itself, and a program that was brought along may lie here.
    for folder in ["/run", "/tmp", "/var/tmp"] {
        std::fs::create_dir_all(folder).map_err(|e| failed(folder, e))?;
    }
    for (kind, place) in needed {
        init::mount(kind, kind, Path::new(place)).map_err(|e| failed(place, e))?;
    }
    for (kind, place) in wanted {
        // Not every kernel has all of them; who needs one says so.
        let _ = init::mount(kind, kind, Path::new(place));
    }
    let _ = init::loopback_up();
    Ok(())
}

/// The second serial line: the first is the console.
fn port() -> Result<File> {
    let port = "/dev/ttyS1";
    let open = || {
        let line = File::options().write(true).open(port)?;
        terminal::set_raw(&line)?;
        Ok(line)
    };
    open().map_err(|e: io::Error| failed(port, e))
}

fn orders() -> Result<Orders> {
    let bytes = std::fs::read(ORDERS).map_err(|e| failed(ORDERS, e))?;
    serde_json::from_slice(&bytes).map_err(|e| failed(ORDERS, e))
}

fn carry_out(orders: &Orders, port: &mut File) -> Result<Message> {
    for module in &orders.modules {
        load(module)?;
    }
    if let Some(folder) = &orders.disk {
        make_disk(folder)?;
    }
    for (path, value) in &orders.files {
        // These files take each write as an order of its own.
        let mut file = File::options().write(true).open(path).map_err(|e| failed(path, e))?;
        file.write_all(value.as_bytes()).map_err(|e| failed(&format!("{value} to {path}"), e))?;
    }
    settle();
    match &orders.job {
        Job::Run(plan) => run(plan, orders, port),
        Job::Exec { words, folder, paths } => {
            let mut command = process::tied(PROGRAM);
            command.arg("exec").args(words).current_dir(folder);
            command.envs(paths);
            std::fs::create_dir_all(folder)
                .map_err(|e| failed(&folder.display().to_string(), e))?;
            exec(&mut command, port)
        }
        Job::Learn => Facts::read().map(Message::Facts),
        Job::Symbols(_) => Symbols::send(port).map(|()| Message::Exited(0)),
    }
}

/// Waits until the kernel has done what it puts off at boot: it chooses its clocksource a second
/// late. In instruction time, waiting costs nothing.
fn settle() {
    const LONGEST: Nanos = Nanos::from_secs(3);
    const STEP: Nanos = Nanos::from_millis(100);
    let chosen = || {
        let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        std::fs::read_to_string(path).is_ok_and(|name| !name.contains("early"))
    };
    let deadline = clock::now() + LONGEST;
    while !chosen() && clock::now() < deadline {
        clock::sleep_for(STEP);
    }
    clock::sleep_for(STEP);
}

/// `name` or `name key=value …`.
fn load(module: &str) -> Result<()> {
    let (name, parameters) = module.split_once(' ').unwrap_or((module, ""));
    let path = format!("{MODULES}/{name}.ko");
    let load = || init::load_module(&File::open(&path)?, parameters);
    load().map_err(|e| failed(&format!("the module {name}"), e))
}

/// A disk in memory, whose completions are timers of the guest, with a file system on it.
fn make_disk(folder: &Path) -> Result<()> {
    const DISK: &str = "/dev/nullb0";
    let mut mke2fs = process::tied("/sbin/mke2fs");
    mke2fs.args(["-q", "-F", "-t", "ext4", DISK]).stdin(Stdio::null());
    let made = mke2fs.output().map_err(|e| failed("mke2fs", e))?;
    if !made.status.success() {
        return Err(failed("mke2fs", String::from_utf8_lossy(&made.stderr).trim()));
    }
    init::mount("ext4", DISK, folder).map_err(|e| failed("the guest's disk", e))
}

fn run(plan: &Plan, orders: &Orders, port: &mut File) -> Result<Message> {
    let signals = Signals::hold().map_err(|e| failed("signals can't be held back", e))?;
    // Whoever looks on would disturb the only processor; nothing happens that had to be seen.
    let mut watch = Messenger::new(&mut *port, Nanos::from_secs(3600));
    let mut outcome = engine::run(plan, orders.time_domain, &signals, &mut watch)?;
    // What is measured here is the machine as its profile wants it.
    outcome.record.warnings.retain(|warning| warning.code != "machine");
    let engine::Outcome { record, verdict } = outcome;
    Ok(Message::Record { record: Box::new(record), verdict })
}

/// Starts the program by way of `latlab exec`, so that its flags mean the same as outside.
fn exec(command: &mut Command, port: &mut File) -> Result<Message> {
    command.env("HOME", "/").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(command).map_err(|e| failed(PROGRAM, e))?;
    let child = running.child();
    let (to, from) = mpsc::channel();
    let outputs = [
        (Stream::Stdout, child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
        (Stream::Stderr, child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
    ];
    for (stream, pipe) in outputs {
        let (pipe, to) = (pipe.expect("it was asked for"), to.clone());
        std::thread::spawn(move || pass_on(stream, pipe, &to));
    }
    drop(to);
    // A process that it left behind may hold the pipes open for ever.
    let status = loop {
        while let Ok(message) = from.recv_timeout(Duration::from_millis(5)) {
            message.send(port).map_err(|e| failed("the port", e))?;
        }
        if let Some(status) = running.child().try_wait().map_err(|e| failed("the program", e))? {
            break status;
        }
    };
    while let Ok(message) = from.recv_timeout(Duration::from_millis(5)) {
        message.send(port).map_err(|e| failed("the port", e))?;
    }
    Ok(Message::Exited(code(status)))
}

/// Until all who could write to the pipe are gone.
fn pass_on(stream: Stream, mut pipe: Box<dyn Read + Send>, to: &Sender<Message>) {
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = pipe.read(&mut bytes) {
        if to.send(Message::output(stream, &bytes[..length])).is_err() {
            return;
        }
    }
}

/// The exit code, as a shell has it: 128 and the signal's number for one that was killed.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255)
}
