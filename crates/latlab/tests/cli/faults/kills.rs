//! Kills at random moments, of each command: knobs as before, nothing left, no partial output.

use super::scene::{Scene, state};
use super::surroundings::Surroundings;
use crate::kernel::kernel;
use crate::program::{Running, folder, lock_machine, pause, root, run};
use latlab_core::record::Record;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Commands, and about how many milliseconds they take. They write to the working directory.
const COMMANDS: &[(&str, u64)] = &[
    ("run --set stat_interval=13 --for 300ms --load hackbench --load disk --out out.json", 1200),
    ("adapt --for 500ms", 900),
    ("explain cyclic --for 300ms --above 1ms --load fork --out out.json", 2500),
    ("scan fork --for 1s --points 10 --out out.json", 1500),
    ("run --on lab:utime --count 20 --fresh --out out.json", 2000),
    ("study two.toml --fresh --out out", 4000),
    ("report record.json -o out.html", 600),
    ("kernel add vmlinux", 300),
    ("kernel fetch linux-image-6.1.9-latlab", 2000),
    ("compare record.json record.json", 200),
    (
        "ab -n 6 --out out -- run --for 200ms --cpus 0 -- run --for 200ms --cpus 0 --set stat_interval=13",
        8000,
    ),
    ("adapt --restore", 100),
    ("check --for 500ms -- chrt --fifo 1 python3 cycle.py", 3000),
    ("bound --on lab:utime --count 20 --seeds 1 --fresh --svg out.svg", 3000),
    ("exec --on lab:utime -- /bin/sleep 1", 2000),
];

/// The same, in `make torture` only: each time it unpacks a package of
/// 150 MB, and then compiles until it is killed.
const BUILD: (&str, u64) = ("kernel build monolithic", 60_000);

/// A study of two cells in the laboratory.
pub(super) const STUDY: &str = "title = 'Two kernels'\npaper = ''\nredoes = ''\nabout = ''\n[plan]\nprobes = ['cyclic']\ncount = 20\n[[axis]]\n\
    name = 'kernel'\neach = [{ label = 'a', on = 'lab:utime' }, { label = 'b', on = 'lab:standard' }]\n\
    [[figure]]\nname = 'worst'\nprobe = 'cyclic'\n";

/// The first of the commands, which change the machine, as a sample.
const FEW: usize = 3;

/// The commands, and the number of kills that come before their end; `make torture` sets it to 500.
fn plan() -> (Vec<(&'static str, u64)>, usize) {
    match std::env::var("LATLAB_KILLS") {
        Ok(number) => {
            let commands = COMMANDS.iter().copied().chain([BUILD]);
            (commands.collect(), number.parse().expect("LATLAB_KILLS is a number"))
        }
        Err(_) => (COMMANDS.to_vec(), COMMANDS.len()),
    }
}

/// An archive that apt reads from the folder: the packages in its `repo`, and one with the smallest
/// kernel. Returns apt's configuration.
pub(super) fn archive(folder: &Path) -> PathBuf {
    let script = "set -e; mkdir -p p/DEBIAN p/boot repo lists/partial cache/archives/partial
        cp vmlinux p/boot/vmlinuz-6.1.9
        printf 'Package: linux-image-6.1.9-latlab\\nVersion: 1\\nArchitecture: amd64\\nMaintainer: n\\nDescription: n\\n' >p/DEBIAN/control
        dpkg-deb --build p repo/linux.deb >/dev/null
        for deb in repo/*.deb; do
            dpkg-deb --field $deb
            echo \"Filename: ./${deb##*/}\"; echo \"Size: $(stat -c %s $deb)\"
            echo \"SHA256: $(sha256sum $deb | cut -d' ' -f1)\"; echo
        done >repo/Packages
        echo \"deb [trusted=yes] file:$PWD/repo ./\" >sources
        printf 'Dir::Etc::sourcelist \"%s/sources\";\\nDir::Etc::sourceparts \"-\";\\nDir::State::lists \"%s/lists\";\\nDir::Cache \"%s/cache\";\\n' \"$PWD\" \"$PWD\" \"$PWD\" >apt.conf
        APT_CONFIG=$PWD/apt.conf apt-get update >/dev/null";
    let made = run(Command::new("sh").args(["-c", script]).current_dir(folder));
    assert_eq!(made.code(), Some(0), "{made:?}");
    folder.join("apt.conf")
}

/// Fetches the source that `kernel build` needs, as the namespaces of the test have no network.
fn fetch_source(folder: &Path) {
    let repo = folder.join("repo");
    fs::create_dir(&repo).expect("the folder is the test's own");
    let mut apt = Command::new("apt-get");
    let fetched = apt.args(["download", "linux-source-6.12"]).current_dir(repo).output();
    let fetched = fetched.expect("this is Debian");
    assert!(fetched.status.success(), "{fetched:?}");
}

/// BPF programs of the kernel that no process holds by a program or a link, by number. Those of
/// control groups are not latlab's.
fn abandoned_programs() -> BTreeSet<String> {
    let listed = run(Command::new("/usr/sbin/bpftool").args(["-j", "prog", "list"]));
    let listed: Vec<Value> = serde_json::from_str(&listed.stdout).expect("bpftool prints JSON");
    let held = held_programs();
    let is_left = |program: &&Value| {
        let kind = program["type"].as_str().unwrap_or_default();
        !held.contains(&program["id"].to_string()) && !kind.starts_with("cgroup")
    };
    let described = |program: &Value| format!("BPF {} {}", program["id"], program["name"]);
    listed.iter().filter(is_left).map(described).collect()
}

/// The numbers of BPF programs that processes hold. bpftool prints them only where it was built to.
fn held_programs() -> BTreeSet<String> {
    let descriptors = glob::glob("/proc/[0-9]*/fdinfo/*").expect("it is a pattern").flatten();
    let texts = descriptors.filter_map(|path| fs::read_to_string(path).ok());
    let number = |text: String| {
        let number = text.lines().find_map(|line| line.strip_prefix("prog_id:"))?;
        Some(number.trim().to_owned())
    };
    texts.filter_map(number).collect()
}

/// Files below the folder that look finished, and are not.
fn partial(folder: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    for path in crate::program::entries(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Names that begin with a point are those of files that are being written.
        if path.is_dir() && !name.starts_with('.') && !path.is_symlink() {
            wrong.extend(partial(&path));
            continue;
        }
        let is_whole = match path.extension().and_then(|end| end.to_str()) {
            _ if name.starts_with('.') || name == "kernel.json" => true,
            Some("json") => {
                fs::read_to_string(&path).is_ok_and(|text| Record::from_json(&text).is_ok())
            }
            Some(end @ ("html" | "svg")) => fs::read_to_string(&path)
                .is_ok_and(|text| text.trim_end().ends_with(&format!("</{end}>"))),
            Some("csv" | "md") => fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n')),
            _ => name != "image" || fs::read(&path).is_ok_and(|image| image == kernel("6.1.9")),
        };
        if !is_whole {
            wrong.push(path.display().to_string());
        }
    }
    wrong
}

/// The next of a row of numbers that look random (xorshift).
fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

/// A folder in which all commands can work, and namespaces of their own.
struct Place {
    surroundings: Surroundings,
    scene: Scene,
    work: tempfile::TempDir,
    apt: PathBuf,
}

impl Place {
    fn new(commands: &[(&str, u64)]) -> Place {
        let (scene, work) = (Scene::new(), folder());
        fs::write(work.path().join("two.toml"), STUDY).expect("the folder is the test's own");
        fs::write(work.path().join("vmlinux"), kernel("6.1.9"))
            .expect("the folder is the test's own");
        fs::write(work.path().join("cycle.py"), "import time\nwhile True: time.sleep(0.01)\n")
            .expect("the folder is the test's own");
        if commands.contains(&BUILD) {
            fetch_source(work.path());
        }
        let apt = archive(work.path());
        let place = Place { surroundings: Surroundings::new(scene.folder()), scene, work, apt };
        let made =
            run(&mut place.command("run --for 20ms --cpus 0 --policy other --out record.json"));
        assert_eq!(made.code(), Some(0), "{made:?}");
        place
    }

    fn command(&self, words: &str) -> Command {
        let mut command = self.surroundings.command(self.work.path());
        command.arg(super::program()).args(words.split_whitespace());
        // Kernels that the command fetches and adds are not the user's.
        if words.starts_with("kernel") {
            command.env("XDG_CACHE_HOME", self.work.path().join("cache-home"));
        }
        command.env("APT_CONFIG", &self.apt);
        command
    }

    /// What is there now.
    fn before(&self) -> Before {
        Before { remains: self.surroundings.remains(), programs: abandoned_programs() }
    }

    /// Kills the command after `delay`. Returns whether it still ran.
    fn kill(&self, words: &str, delay: Duration, before: &Before) -> Result<bool, String> {
        let _ = fs::remove_dir_all(self.work.path().join("cache-home"));
        fs::create_dir(self.work.path().join("cache-home")).expect("the folder is the test's own");
        let command = Running::start(&mut self.command(words));
        pause(delay);
        command.signal("KILL");
        let output = command.finish();
        let was_killed = output.signal() == Some(9);
        // A check of a program with breaches ends with 1.
        if !was_killed && !matches!(output.code(), Some(0 | 1)) {
            return Err(format!("it failed before it was killed: {output:?}"));
        }
        let mut left = self.surroundings.processes_left();
        let restored = run(&mut self.command("adapt --restore"));
        if !self.is_as_before() || restored.code() != Some(0) {
            let (before, now) = (&self.scene.before, state());
            return Err(format!("{now:?} is not {before:?}: {restored:?}"));
        }
        left.extend(self.surroundings.remains().difference(&before.remains).cloned());
        left.extend(Place::programs_left(before));
        left.extend(partial(self.work.path()).into_iter().map(|path| format!("partial: {path}")));
        for out in ["out.json", "out.html", "out.svg"] {
            let _ = fs::remove_file(self.work.path().join(out));
        }
        let _ = fs::remove_dir_all(self.work.path().join("out"));
        if left.is_empty() { Ok(was_killed) } else { Err(format!("{left:?}")) }
    }

    /// BPF programs that are left after ten seconds: the kernel frees them later.
    fn programs_left(before: &Before) -> Vec<String> {
        const STEPS: u32 = 500;
        let left =
            || abandoned_programs().difference(&before.programs).cloned().collect::<Vec<_>>();
        for _ in 0..STEPS {
            if left().is_empty() {
                break;
            }
            pause(Duration::from_millis(20));
        }
        left()
    }

    /// Whether the machine is as before, at the latest in a minute: programs outside the namespaces
    /// may change it, too, but restore it.
    fn is_as_before(&self) -> bool {
        const STEPS: u32 = 600;
        for _ in 0..STEPS {
            if state() == self.scene.before {
                return true;
            }
            pause(Duration::from_millis(100));
        }
        false
    }
}

/// What was there before.
struct Before {
    remains: BTreeSet<String>,
    programs: BTreeSet<String>,
}

#[test]
fn command_that_changes_the_machine_killed_at_a_random_moment_leaves_nothing() {
    if root() {
        kill_each(&COMMANDS[..FEW], FEW);
    }
}

#[test]
fn command_killed_at_a_random_moment_leaves_nothing() {
    if root() {
        let (commands, kills) = plan();
        kill_each(&commands, kills);
    }
}

/// Kills the commands in turns, until this many kills came before their end.
fn kill_each(commands: &[(&str, u64)], kills: usize) {
    let _lock = lock_machine();
    let place = Place::new(commands);
    let mut before = place.before();
    let mut random = crate::program::new_seed();
    let (mut starts, mut killed, mut wrong) = (0, 0, Vec::new());
    while killed < kills {
        let (words, time) = commands[starts % commands.len()];
        starts += 1;
        let delay = Duration::from_micros(next(&mut random) % (1000 * time));
        match place.kill(words, delay, &before) {
            Ok(was_killed) => killed += usize::from(was_killed),
            Err(why) => {
                killed += 1;
                wrong.push(format!("{words} after {delay:?}: {why}"));
                // Later kills are not to blame for what this one left.
                before = place.before();
            }
        }
    }
    let told = writeln!(
        std::io::stderr(),
        "{killed} kills in {starts} starts of {} commands, {} wrong",
        commands.len(),
        wrong.len()
    );
    told.expect("standard error is open");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
