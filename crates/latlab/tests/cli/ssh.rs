//! Runs on another machine over ssh, against an sshd of the test to which the ssh configuration
//! points.

mod client;

use crate::check;
use crate::knob;
use crate::measuring::{measuring_threads, switches, wait_until_sampled};
use crate::program::{
    self, LATLAB, Output, Running, entries, folder, lock_machine, root, run, running, send,
    wait_until,
};
use latlab_check::{Report, Rule};
use latlab_core::machine::TimeDomain;
use latlab_core::record::Record;
use std::ffi::OsStr;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A host with an sshd, and a user with a key for it. Both are removed with the test.
struct Host {
    folder: tempfile::TempDir,
    sshd: Child,
    port: u16,
}

impl Host {
    /// Starts a host with this sshd configuration, in which `FOLDER` is replaced by a folder of the
    /// test. None, with a record that the test is not run, without root.
    fn start(configuration: &str) -> Option<Host> {
        if !root() {
            return None;
        }
        let folder = folder();
        let at = folder.path();
        let port = free_port();
        write_configuration(at, port, configuration);
        // Required by sshd; Debian's service creates it.
        fs::create_dir_all("/run/sshd").expect("root may create it");
        let mut command = Command::new("/usr/sbin/sshd");
        command.arg("-D").arg("-f").arg(at.join("sshd.conf")).arg("-E").arg(at.join("log"));
        let sshd = command.spawn().expect("make test installs openssh-server");
        wait_until("sshd listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(Host { folder, sshd, port })
    }

    /// Starts an ordinary host with a folder for temporary files of its own.
    fn plain() -> Option<Host> {
        Host::start("SetEnv TMPDIR=FOLDER/tmp")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the command `program` as the user of this host starts it.
    fn as_user(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.path("bin").display());
        command.env("PATH", path).current_dir(self.folder.path());
        command
    }

    fn latlab(&self, words: &str) -> Command {
        let mut command = self.as_user(self.path("latlab"));
        command.args(words.split_whitespace());
        command
    }

    /// Returns the files that latlab left on the host.
    fn left(&self) -> Vec<PathBuf> {
        entries(&self.path("tmp"))
    }

    /// Waits until nothing is left on the host.
    fn wait_until_clean(&self) {
        wait_until("nothing is left on the host", || self.left().is_empty());
    }

    /// Waits until the agent on the host has samples.
    fn wait_until_measuring(&self) {
        let mut agent = None;
        wait_until("the agent measures", || {
            let programs = self.left().into_iter().map(|folder| folder.join("latlab"));
            let mut pids = programs.flat_map(|program| running(&program));
            agent = pids.find(|pid| !measuring_threads(*pid).is_empty());
            agent.is_some()
        });
        wait_until_sampled(agent.expect("it measures"));
    }

    /// Kills the sshd processes of all connections.
    fn kill_connections(&self) {
        shell(&format!("pkill -KILL -P {}", self.sshd.id()));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

/// Returns a port that no program has. It is none of those that the kernel gives to programs which ask
/// for any port, so that these do not get it first, and each process begins with another one.
pub(crate) fn free_port() -> u16 {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let next = || {
        let nth = std::process::id().wrapping_mul(16).wrapping_add(ASKED.fetch_add(1, Relaxed));
        u16::try_from(10_000 + nth % 20_000).expect("it is below 30 000")
    };
    let mut ports = std::iter::repeat_with(next);
    let free = ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.expect("there are ports without end")
}

/// Writes the program, keys, and the configurations of both sides to `folder`.
fn write_configuration(folder: &Path, port: u16, configuration: &str) {
    for name in ["tmp", "bin", "there"] {
        fs::create_dir(folder.join(name)).expect("the folder can be written");
    }
    fs::set_permissions(folder.join("tmp"), fs::Permissions::from_mode(0o1777))
        .expect("the folder can be written");
    fs::copy(LATLAB, folder.join("latlab")).expect("the program can be copied");
    for key in ["host-key", "key"] {
        shell(&format!("ssh-keygen -q -t ed25519 -N '' -f {}", folder.join(key).display()));
    }
    let write = |name: &str, text: &str| {
        let text = text.replace("FOLDER", &folder.display().to_string());
        fs::write(folder.join(name), text).expect("the folder can be written");
    };
    let sshd = format!(
        "Port {port}\nListenAddress 127.0.0.1\nPidFile none\nHostKey FOLDER/host-key\n\
         AuthorizedKeysFile FOLDER/key.pub\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\n{configuration}\n"
    );
    write("sshd.conf", &sshd);
    let ssh = format!(
        "IdentityFile FOLDER/key\nIdentitiesOnly yes\nUserKnownHostsFile FOLDER/known\n\
         StrictHostKeyChecking accept-new\nHost board\n  HostName 127.0.0.1\n  Port {port}\n"
    );
    write("ssh.conf", &ssh);
    let ssh = format!("exec /usr/bin/ssh -F {}/ssh.conf \"$@\"", folder.display());
    script(&folder.join("bin/ssh"), &ssh);
}

fn shell(line: &str) {
    let status = Command::new("sh").arg("-c").arg(line).stdin(Stdio::null()).status();
    assert!(status.expect("sh starts").success(), "{line}");
}

fn script(path: &Path, body: &str) {
    fs::write(path, format!("#!/bin/sh\n{body}\n")).expect("the folder can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .expect("the folder can be written");
}

const SHORT: &str = "run --on ssh:board --policy other --cpus 0 --for 200ms --warm-up 0";

#[test]
fn record_comes_back_and_host_is_clean() {
    let Some(host) = Host::plain() else { return };
    let _lock = lock_machine();
    let output = run(&mut host.latlab(&format!("{SHORT} cyclic timer --load cpu --out a.json")));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = fs::read_to_string(host.path("a.json")).unwrap();
    let record = Record::from_json(&record).unwrap();
    assert_eq!(record.plan.target, "ssh:board");
    assert_eq!(record.machine.time_domain, TimeDomain::Silicon);
    assert_eq!(record.work.len(), 1);
    let probes: Vec<&str> = record.series.iter().map(|s| s.probe.as_str()).collect();
    assert_eq!(probes, ["cyclic", "timer", "timer"]);
    assert!(record.series.iter().all(|series| series.counts.recorded > 0), "{record:?}");
    assert!(!record.warnings.iter().any(|w| w.code == "remote-stderr"), "{:?}", record.warnings);
    assert!(host.left().is_empty(), "{:?}", host.left());
    let output = run(&mut host.latlab("compare a.json a.json"));
    assert_eq!(output.code(), Some(0), "{output:?}");
}

#[test]
fn terminal_shows_time_left_of_remote_run() {
    let Some(host) = Host::plain() else { return };
    let _lock = lock_machine();
    let words = SHORT.replace("200ms", "1s");
    let line = format!("stty cols 100 rows 30; {} {words}", host.path("latlab").display());
    let mut command = host.as_user("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "xterm");
    let output = run(&mut command);
    assert_eq!(output.code(), Some(0), "{output:?}");
    for word in ["copying latlab to board", "cyclic", "left", "\u{1b}["] {
        assert!(output.stdout.contains(word), "no '{word}' in: {output:?}");
    }
}

#[test]
fn refusal_of_the_host_is_reported_as_there() {
    let Some(host) = Host::plain() else { return };
    let _lock = lock_machine();
    let over = run(&mut host.latlab(&format!("{SHORT} --stop-above 1ns")));
    assert_eq!(over.code(), Some(1), "{over:?}");
    assert!(over.stderr.lines().last().unwrap().contains("above 1 ns"), "{over:?}");
    let words = "run --on ssh:board --cpus 8000";
    run(&mut host.latlab(words)).assert_refused(2, &["latlab: board: CPU 8000 is not online"]);
    assert!(host.left().is_empty(), "{:?}", host.left());
}

#[test]
fn sigint_ends_remote_run_and_record_comes_back() {
    let Some(host) = Host::plain() else { return };
    let _lock = lock_machine();
    let before = knob::read();
    let words =
        "run --on ssh:board --for 10min --warm-up 0 --set stat_interval=7 --load cpu --json";
    let run = Running::start(host.latlab(words).process_group(0));
    host.wait_until_measuring();
    assert_eq!(knob::read(), "7");
    // As a terminal does: to the whole foreground process group.
    shell(&format!("kill -s INT -- -{}", run.pid()));
    let output = run.finish();
    assert_eq!(output.code(), Some(4), "{output:?}");
    let record = output.record();
    assert!(record.series.iter().all(|series| series.counts.recorded > 0), "{record:?}");
    assert!(record.warnings.iter().any(|warning| warning.code == "interrupted"));
    assert_eq!(knob::read(), before);
    assert!(host.left().is_empty(), "{:?}", host.left());
}

/// Starts a measurement of ten minutes that writes to `out`.
fn start_long(host: &Host, words: &str, out: &str) -> (Running, PathBuf) {
    let words = format!("{words} --policy other --cpus 0 --for 10min --out {out}");
    (Running::start(&mut host.latlab(&words)), host.path(out))
}

#[test]
fn killed_measurement_leaves_a_record_of_the_last_minute() {
    let Some(host) = Host::plain() else { return };
    let long = [
        start_long(&host, "run cyclic timer", "here.json"),
        start_long(&host, "run --on ssh:board", "there.json"),
        start_long(&host, "explain", "why.json"),
    ];
    wait_until("each has a record", || long.iter().all(|(_, out)| out.is_file()));
    for (run, _) in &long {
        run.signal("KILL");
    }
    for (run, out) in long {
        assert_eq!(run.finish().signal(), Some(9));
        let record = Record::from_json(&fs::read_to_string(&out).unwrap()).unwrap();
        assert_eq!(record.cut_short().map(|one| one.code.as_str()), Some("unfinished"));
        let series = &record.series[0];
        let worst = record.worst.iter().map(|sample| sample.latency).max();
        let seen = series.timeline.points().map(|(_, latency)| latency).max();
        // Most of a minute: a busy machine has few samples, and misses the others.
        let periods = series.counts.recorded + series.counts.missed;
        assert!(periods > 30_000, "{series:?}");
        let there = (worst.is_some(), seen.is_some(), !series.schedule.policy.is_empty());
        assert_eq!(there, (true, true, true), "{}: {:?}", out.display(), record.explained);
        assert_eq!(record.explained.is_some(), record.plan.explain.is_some());
    }
    wait_until("the host keeps the record that nobody received, and no program", || {
        host.left().iter().all(|folder| entries(folder) == [folder.join("record.json")])
    });
    let compared = run(&mut host.latlab("compare here.json here.json"));
    assert!(compared.stdout.contains("1 run; 1 ended before the plan did"), "{compared:?}");
}

/// Starts a long run and calls `break_connection` while it measures. Asserts that the host restores
/// its knobs, and that the command in the message fetches the record and leaves nothing on the
/// host.
fn run_with_broken_connection(host: &Host, break_connection: impl FnOnce(&Running)) -> Output {
    let _lock = lock_machine();
    let before = knob::read();
    let words = "run --on ssh:board --for 10min --warm-up 0 --set stat_interval=7 --load cpu";
    let run = Running::start(&mut host.latlab(words));
    host.wait_until_measuring();
    assert_eq!(knob::read(), "7");
    break_connection(&run);
    let output = run.finish();
    let sentence = output.assert_refused(2, &["board", "keeps what was measured"]).to_owned();
    let [left]: [PathBuf; 1] = host.left().try_into().expect("there is one folder");
    wait_until("the record is stored and the program removed", || {
        entries(&left) == [left.join("record.json")]
    });
    assert_eq!(knob::read(), before);
    let (_, fetch) = sentence.split_once("with: ").expect("the sentence has a command");
    let fetched = program::run(host.as_user("sh").arg("-c").arg(fetch));
    assert_eq!(fetched.code(), Some(0), "{fetched:?}");
    let record = fs::read_to_string(host.path("record.json")).expect("the record was fetched");
    let record = Record::from_json(&record).expect("the record is valid");
    assert!(record.series.iter().all(|series| series.counts.recorded > 0), "{record:?}");
    assert!(record.changes.iter().all(|change| change.restored), "{record:?}");
    host.wait_until_clean();
    output
}

#[test]
fn connection_lost_keeps_the_record_on_the_host() {
    let Some(host) = Host::plain() else { return };
    let output = run_with_broken_connection(&host, |_| host.kill_connections());
    assert!(output.stderr.contains("closed by remote host"), "{output:?}");
    let kill = |run: &Running| shell(&format!("pkill -KILL -x ssh -P {}", run.pid()));
    run_with_broken_connection(&host, kill);
    // If latlab itself is killed, the ssh client ends with it, without a message.
    let _lock = lock_machine();
    let words = "run --on ssh:board --for 10min --warm-up 0";
    let run = Running::start(&mut host.latlab(words));
    host.wait_until_measuring();
    run.signal("KILL");
    assert_eq!(run.finish().signal(), Some(9));
    let record = host.left()[0].join("record.json");
    wait_until("the agent ends", || record.exists());
}

#[test]
fn agent_that_is_killed_is_reported() {
    let Some(host) = Host::plain() else { return };
    let _lock = lock_machine();
    let run = Running::start(&mut host.latlab("run --on ssh:board --policy other --for 10min"));
    host.wait_until_measuring();
    let program = host.left()[0].join("latlab");
    for pid in running(&program) {
        send("KILL", pid);
    }
    run.finish().assert_refused(2, &["without an answer on board", "Killed"]);
    assert!(host.left().is_empty(), "{:?}", host.left());
}

#[test]
fn remote_run_over_its_limit_ends_on_both_sides() {
    let Some(host) = Host::plain() else { return };
    let _lock = lock_machine();
    // On a busy machine, logging in, copying latlab and starting it may take longer than a short limit: then
    // the agent leaves no record, and a longer limit follows.
    let is_kept = || host.left().iter().any(|folder| folder.join("record.json").exists());
    let measures_within = |limit: &&str| {
        let words = format!("run --on ssh:board --policy other --for 1h --limit {limit}");
        let output = run(&mut host.latlab(&words));
        wait_until("the agent ends", || host.left().is_empty() || is_kept());
        let fetch = if is_kept() { "ssh board 'cat " } else { "" };
        output.assert_refused(2, &["--limit", fetch]);
        is_kept()
    };
    assert!(["5s", "50s", "500s"].iter().any(measures_within), "the agent measures");
}

#[test]
fn host_that_refuses_login_is_named_with_the_reason() {
    let only = "SetEnv TMPDIR=FOLDER/tmp\nAllowUsers root nobody";
    let Some(host) = Host::start(only) else { return };
    let refused = |words: &str, expected: &[&str]| {
        run(&mut host.latlab(words)).assert_refused(2, expected);
    };
    let user = |name: &str| format!("run --on ssh:{name}@127.0.0.1:{}", host.port);
    refused(&user("daemon"), &["daemon@127.0.0.1", "Permission denied (publickey)", "ssh -p"]);
    refused(&user("nobody"), &["nobody@127.0.0.1", "not available"]);
    shell(&format!("ssh-keygen -q -t ed25519 -N '' -f {}", host.path("other").display()));
    let other = fs::read_to_string(host.path("other.pub")).unwrap();
    fs::write(host.path("known"), format!("[127.0.0.1]:{} {other}", host.port)).unwrap();
    refused("run --on ssh:board", &["board", "Host key verification failed", "try it by hand"]);
    let free = free_port();
    refused(&format!("run --on ssh:127.0.0.1:{free}"), &["127.0.0.1", "Connection refused"]);
    let mut without = host.latlab("run --on ssh:board");
    run(without.env("PATH", host.path("there")))
        .assert_refused(3, &["ssh is not installed", "openssh-client"]);
    host.wait_until_clean();
}

#[test]
fn host_of_another_architecture_is_refused() {
    let there = "SetEnv TMPDIR=FOLDER/tmp PATH=FOLDER/there:/usr/bin:/bin";
    let Some(host) = Host::start(there) else { return };
    let uname = |system: &str, machine: &str| {
        let body = format!("case $1 in -s) echo {system};; *) echo {machine};; esac");
        script(&host.path("there/uname"), &body);
        run(&mut host.latlab("run --on ssh:board"))
    };
    uname("Linux", "sparc64")
        .assert_refused(3, &["board", "sparc64", std::env::consts::ARCH, "built for"]);
    uname("Plan9", std::env::consts::ARCH).assert_refused(3, &["board", "Plan9"]);
    assert!(host.left().is_empty(), "{:?}", host.left());
}

#[test]
fn ordinary_user_on_host_is_told_what_is_lacking_and_can_measure() {
    let user = "SetEnv TMPDIR=FOLDER/tmp\nForceCommand setpriv --reuid=65534 --regid=65534 \
        --clear-groups --inh-caps=-all --bounding-set=-all prlimit --rtprio=0 \
        sh -c \"$SSH_ORIGINAL_COMMAND\"";
    let Some(host) = Host::start(user) else { return };
    let _lock = lock_machine();
    let remedies: &[&str] = &["CAP_SYS_NICE", "RLIMIT_RTPRIO", "--policy other"];
    run(&mut host.latlab("run --on ssh:board")).assert_refused(3, remedies);
    let output = run(&mut host.latlab(&format!("{SHORT} --json")));
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert_eq!(output.record().series[0].schedule.policy, "other");
    assert!(host.left().is_empty(), "{:?}", host.left());
}

/// As a prompt does, or a banner without an end of line.
#[test]
fn login_shell_that_leaves_its_line_open_hides_nothing() {
    let banner = "SetEnv TMPDIR=FOLDER/tmp\nForceCommand printf 'Welcome> '; \
                  exec sh -c \"$SSH_ORIGINAL_COMMAND\"";
    let Some(host) = Host::start(banner) else { return };
    let _lock = lock_machine();
    // Otherwise it would wait for ever.
    let output = run(&mut host.latlab(&format!("{SHORT} --json --limit 10min")));
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(output.record().series[0].counts.recorded > 0);
    assert!(host.left().is_empty(), "{:?}", host.left());
}

/// Starts a host whose folders for temporary files are mount points, and whose login shell prints a
/// greeting.
fn with_mounts(options: &str, folders: &str) -> Option<Host> {
    Host::start(&format!(
        "SetEnv TMPDIR=FOLDER/tmp\nForceCommand echo welcome; exec unshare --mount sh -c \
         'for place in {folders}; do mount -t tmpfs -o {options} none $place; done; \
         exec sh -c \"$SSH_ORIGINAL_COMMAND\"'"
    ))
}

#[test]
fn folder_mounted_noexec_is_passed_over() {
    let Some(host) = with_mounts("noexec", "$TMPDIR") else { return };
    let _lock = lock_machine();
    let output = run(&mut host.latlab(&format!("{SHORT} --json")));
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(output.record().series[0].counts.recorded > 0);
}

#[test]
fn host_without_usable_folder_is_refused_with_the_reasons() {
    let everywhere = "$TMPDIR /var/tmp $HOME";
    for (options, why) in [("noexec", "lets no program run"), ("size=1m", "has no room")] {
        let Some(host) = with_mounts(options, everywhere) else { return };
        let output = run(&mut host.latlab("run --on ssh:board"));
        assert!(!output.stderr.contains(";;"), "{output:?}");
        output
            .assert_refused(2, &["board has no folder", "/tmp ", "/var/tmp ", why, "; set TMPDIR"]);
    }
}

#[test]
fn program_of_the_host_is_checked_there() {
    let Some(host) = Host::plain() else { return };
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let program = check::compiled(&host.path("there"), &["-g"]);
    let words = |rest: &str| format!("check --on ssh:board --json {rest}");
    let started = format!("-- {} fault", program.display());
    let output = run(&mut host.latlab(&words(&started)));
    assert_eq!(output.code(), Some(1), "{output:?}");
    assert!(places(&output, Rule::Fault).iter().any(|place| place.starts_with("touch_page ")));
    assert!(host.left().is_empty(), "{:?}", host.left());
    let checked = Running::start(Command::new(&program).arg("endless"));
    // On a busy machine a short check may end before it has seen a cycle: then a longer one follows.
    let is_found = |time: &str| {
        let attached = format!("--pid {} --for {time}", checked.pid());
        let output = run(&mut host.latlab(&words(&attached)));
        let place = |place: &String| place.starts_with("log_state ");
        output.code() == Some(1) && places(&output, Rule::FileIo).iter().any(place)
    };
    assert!(["500ms", "5s", "1min"].into_iter().any(is_found), "the fault is found");
    assert_eq!(running(&program), [checked.pid()], "the check has ended the process");
}

/// Where the breaches of a rule are in the report.
fn places(output: &Output, rule: Rule) -> Vec<String> {
    let report: Report = serde_json::from_str(&output.stdout).expect("it is a report");
    let breaches = report.threads.into_iter().flat_map(|thread| thread.breaches);
    breaches.filter(|one| one.rule == rule).filter_map(|breach| breach.place).collect()
}

#[test]
fn check_that_the_host_refuses_is_one_sentence() {
    let Some(host) = Host::plain() else { return };
    let refused = |words: &str, code, said: &[&str]| {
        let output = run(&mut host.latlab(&format!("check --on ssh:{words}")));
        output.assert_refused(code, said);
    };
    refused("board -- /nonexistent/loop", 2, &["/nonexistent/loop: program not found"]);
    refused("board --pid 4194304", 2, &["--pid 4194304", "no such task"]);
    refused("board --with /etc -- true", 2, &["--with, --chdir and --env", "ssh:board"]);
    refused("-oX=y -- true", 2, &["begins with '-'"]);
    refused("nowhere.invalid -- true", 2, &["no connection to nowhere.invalid"]);
    assert!(host.left().is_empty(), "{:?}", host.left());
}

#[test]
fn checked_program_ends_with_the_connection() {
    let Some(host) = Host::plain() else { return };
    if !latlab_testing::bpf() {
        return;
    }
    let _lock = lock_machine();
    let program = check::compiled(&host.path("there"), &["-g"]);
    let words = format!("check --on ssh:board -- {} endless", program.display());
    let checking = Running::start(&mut host.latlab(&words));
    wait_until("the program runs", || !running(&program).is_empty());
    host.kill_connections();
    checking.finish().assert_refused(2, &["the connection to board was lost", "start it again"]);
    wait_until("the program has ended", || running(&program).is_empty());
    host.wait_until_clean();
    // A user who interrupts a check gets its report.
    let checking = Running::start(host.latlab(&words).process_group(0));
    // Its cycles have a sleep each; before them it has a few.
    let has_cycles = |pid| switches(pid) >= 200;
    wait_until("the program has cycles", || running(&program).into_iter().any(has_cycles));
    shell(&format!("kill -s INT -- -{}", checking.pid()));
    let output = checking.finish();
    assert_eq!(output.code(), Some(1), "{output:?}");
    assert!(output.stdout.contains("log_state (faults.c:"), "{output:?}");
    assert!(running(&program).is_empty());
}
