//! Commands of the documentation: each is run as it is shown, with a shorter measurement.

use crate::period::library::{self, library};
use crate::program::{
    LATLAB, Output, Running, command, folder, latlab, lock_machine_for_a_moment, root, run,
    wait_until,
};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Replacements for placeholders of the reader's own values, and for commands that take hours.
const REPLACEMENTS: &[(&str, &str)] = &[
    ("--pid 1234", "--pid $$"),
    // Any other program with this name could run here.
    ("$(pidof control)", "$(cat control.pid)"),
    ("127.0.0.1:9464", "127.0.0.1:0"),
    ("--out fig9/", "--list-cells"),
    ("--out quick/", "--list-cells"),
    ("--out timers/", "--list-cells"),
    ("--out vm/", "--list-cells"),
    ("--out here/", "--list-cells"),
    ("--engine slurm --out /shared/table2/", "--list-cells"),
    ("$ latlab study rabbits-inversion", "latlab list rabbits-inversion"),
    ("--stop-above 500us", "--stop-above 1h"),
    ("--fail-above 150us", "--fail-above 1h"),
    ("populate:4MiB", "populate:128KiB"),
    ("--seeds 2 ", ""),
    ("hackbench:groups=10,fan=20", "hackbench:groups=1,fan=2,loops=5"),
    ("hackbench:groups=10", "hackbench:groups=1,fan=2,loops=5"),
    ("hackbench:groups=5", "hackbench:groups=1,fan=2,loops=5"),
];

fn tree() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a crate lies in crates/")
}

/// Returns the commands of a page in their order: lines of its code blocks that begin with latlab,
/// each to its closing quotation mark.
fn commands(page: &str) -> Vec<String> {
    let text = fs::read_to_string(tree().join(page)).unwrap_or_else(|e| panic!("{page}: {e}"));
    let mut commands: Vec<String> = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block && ["```sh", "```console"].contains(&line);
            continue;
        }
        let open = |command: &&mut String| command.matches('\'').count() % 2 == 1;
        if let Some(command) = commands.last_mut().filter(open) {
            command.push('\n');
            command.push_str(line);
        } else if in_block && (line.starts_with("latlab ") || line.starts_with("$ latlab ")) {
            commands.push(line.to_owned());
        }
    }
    commands
}

/// Returns the command as the test runs it.
fn shortened(command: &str) -> String {
    let replace = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
    let command = REPLACEMENTS.iter().fold(command.to_owned(), replace);
    let command = command.split("   #").next().unwrap_or_default();
    let command = command.split(" # ").next().unwrap_or_default();
    let command = command.trim().trim_start_matches("$ ");
    let mut words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    for at in 1..words.len() {
        match words[at - 1].as_str() {
            "--for" => "1s".clone_into(&mut words[at]),
            "--count" => "20".clone_into(&mut words[at]),
            _ => {}
        }
    }
    if words[1] == "watch" && !words.iter().any(|word| word == "--once" || word == "--for") {
        // The loop does not end.
        words.push("--for 1s".to_owned());
    }
    if words[1] == "bound" {
        words.push("--seeds 1 --count 20".to_owned());
    }
    let has_length = |word: &String| ["--for", "--count"].contains(&word.as_str());
    let is_measurement = !words.iter().any(|word| word == "trace.txt");
    if is_measurement && !words.iter().any(has_length) {
        make_short(&mut words);
    }
    words.join(" ")
}

fn measures(word: &str) -> bool {
    ["run", "scan", "explain"].contains(&word)
}

/// Whether a command measures, or starts a program that may be real-time.
fn uses_machine(word: &str) -> bool {
    measures(word) || ["ab", "check", "exec", "watch"].contains(&word)
}

fn in_guest(word: &str) -> bool {
    word.starts_with("lab:")
}

/// Adds a short duration to a command that measures for the default time.
fn make_short(words: &mut Vec<String>) {
    let Some(at) = words.iter().rposition(|word| measures(word)) else { return };
    let in_guest = words.iter().any(|word| in_guest(word));
    let options: &[&str] = match (words[at].as_str(), in_guest) {
        ("scan", true) => &["--points 4", "--resolution 100us", "--repeat 3"],
        (_, true) => &["--for 100ms", "--warm-up 0"],
        (_, false) => &["--for 1s"],
    };
    for option in options {
        let name = option.split(' ').next().unwrap_or_default();
        if !words.iter().any(|word| word == name) {
            words.insert(at + 1, (*option).to_owned());
        }
    }
}

/// Creates a folder with the programs and files that commands assume, and the kernel where they name it.
fn workspace(commands: &[String]) -> tempfile::TempDir {
    let workspace = folder();
    let is_named = |what: &str| commands.iter().any(|command| command.contains(what));
    let here = |name: &str| workspace.path().join(name);
    for folder in ["bin", "dist", "arch/x86/boot"] {
        fs::create_dir_all(here(folder)).expect("the folder can be written");
    }
    symlink(LATLAB, here("bin/latlab")).expect("the folder can be written");
    fs::copy(LATLAB, here("dist/latlab")).expect("the folder can be written");
    for program in ["bin/player", "my-control-loop"] {
        fs::copy("/bin/true", here(program)).expect("the folder can be written");
    }
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-o"]).arg(here("window")).arg(tree().join("examples/window.c"));
    assert!(run(&mut cc).status.success(), "{cc:?}");
    let mut cc = Command::new("cc");
    cc.args(["-g", "-O2", "-o"]).arg(here("my-loop")).arg(tree().join("examples/loop.c"));
    assert!(run(&mut cc).status.success(), "{cc:?}");
    fs::copy(here("window"), here("my-program")).expect("the folder can be written");
    if is_named("bzImage") {
        symlink(kernel(), here("arch/x86/boot/bzImage")).expect("the folder can be written");
    }
    if is_named("trace.txt") {
        let trace = tree().join("fuzz/corpus/recording/ftrace");
        fs::copy(trace, here("trace.txt")).expect("the folder can be written");
    }
    fs::write(here("adapt.toml"), latlab("generate adapt.toml").stdout)
        .expect("the folder can be written");
    let names = ["idle.json", "before/1.json", "before/2.json", "after/1.json", "after/2.json"];
    for name in names.into_iter().filter(|name| is_named(name.split('/').next().unwrap_or(name))) {
        let path = here(name);
        fs::create_dir_all(path.parent().expect("the path has a folder"))
            .expect("the folder can be written");
        fs::write(path, record()).expect("the folder can be written");
    }
    for name in
        ["cyclictest.hist", "before.hist", "after.hist"].into_iter().filter(|name| is_named(name))
    {
        fs::write(here(name), result_of_cyclictest(&here("cyclictest.json")))
            .expect("the folder can be written");
    }
    workspace
}

/// The histogram of a run of cyclictest, which also writes its JSON.
fn result_of_cyclictest(json: &Path) -> String {
    let mut cyclictest = Command::new("cyclictest");
    cyclictest.args(["-q", "-t1", "-i500", "-l200", "-h400"]);
    cyclictest.arg(format!("--json={}", json.display()));
    let output = run(&mut cyclictest);
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// A record of this machine, with enough samples for a limit on p99.9.
fn record() -> String {
    let _lock = lock_machine_for_a_moment();
    latlab("run cyclic:interval=50us,policy=other --for 1s --json").stdout
}

/// Returns the path of any kernel that the laboratory has unpacked.
fn kernel() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").expect("HOME is set"));
    let kernels = cache.unwrap_or_else(|| home().join(".cache")).join("latlab/kernels");
    assert_eq!(latlab("exec --on lab:utime -- true").code(), Some(0));
    let kernels = fs::read_dir(kernels).expect("the cache has kernels").flatten();
    let mut images = kernels.map(|kernel| kernel.path().join("vmlinux"));
    images.find(|path| path.is_file()).expect("a kernel has just been booted")
}

/// The test of a page.
struct PageTest {
    workspace: tempfile::TempDir,
    /// The daemon that a command of the page has started.
    daemon: Option<Running>,
    /// The loop that the page watches.
    control: Option<Running>,
}

impl PageTest {
    fn run_line(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let adapts = words[1] == "adapt";
        let ends = ["--dry-run", "--for", "--restore", "--replay", "status"];
        if adapts && !words.contains(&"status") {
            self.stop_daemon();
        }
        if line.contains("control.pid") && self.control.is_none() {
            self.start_control();
        }
        let mut shell = self.shell(line);
        if adapts && !words.iter().any(|word| ends.contains(word)) {
            self.daemon = Some(Running::start(&mut shell));
            wait_until("the daemon answers", || latlab("adapt status").code() == Some(0));
            return;
        }
        let watches = line.contains("my-player") || line.contains(" --rt");
        let _player = watches.then(|| self.start_player());
        let output = run(&mut shell);
        let code = output.code().unwrap_or(-1);
        let answered = match words[1] {
            // Findings of the doctor, breaches of rules and exceeded limits are results.
            "doctor" | "compare" | "check" => [0, 1].contains(&code),
            // This machine may lack the knobs.
            "adapt" => [0, 3].contains(&code),
            _ => code == 0,
        };
        assert!(answered, "{line}: {output:?}");
    }

    /// Starts a real-time task with the name that the pages use as an example.
    fn start_player(&self) -> Running {
        let path = self.workspace.path().join("bin/my-player");
        fs::copy("/bin/sleep", &path).expect("the folder is the test's own");
        Running::start(command("exec --fifo 1 --").arg(path).arg("60"))
    }

    /// Starts the loop of an example, and writes its number to a file.
    fn start_control(&mut self) {
        let folder = self.workspace.path();
        let control = library::start(&library().compile("control", folder));
        fs::write(folder.join("control.pid"), control.pid().to_string())
            .expect("the folder is the test's own");
        self.control = Some(control);
    }

    fn shell(&self, line: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec {line}")]).current_dir(self.workspace.path());
        shell.env("PATH", format!("{}:{path}", self.workspace.path().join("bin").display()));
        shell
    }

    fn stop_daemon(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            daemon.signal("INT");
            let output: Output = daemon.finish();
            assert_eq!(output.code(), Some(0), "{output:?}");
        }
    }
}

/// Returns the commands of a page that leave nothing for its later ones and are on an earlier page, too.
fn repeated(page: &str) -> BTreeSet<String> {
    let writes = |command: &String| {
        [" -o ", "--out", ">", " adapt"].map(|word| command.contains(word)).contains(&true)
    };
    let earlier = PAGES.iter().take_while(|earlier| **earlier != page);
    earlier.flat_map(|earlier| commands(earlier)).filter(|command| !writes(command)).collect()
}

/// Runs all commands of a page that no earlier page has.
fn test_page(page: &str) {
    if !root() {
        return;
    }
    let mut commands = commands(page);
    assert!(!commands.is_empty(), "{page} has no command");
    let repeated = repeated(page);
    commands.retain(|command| !repeated.contains(command));
    let mut test = PageTest { workspace: workspace(&commands), daemon: None, control: None };
    // A daemon changes this machine until another command ends it.
    let whole = commands.iter().any(|line| line.contains(" adapt")).then(lock_machine_for_a_moment);
    for command in commands {
        let line = shortened(&command);
        let is_here =
            uses_machine(line.split(' ').nth(1).unwrap_or_default()) && !line.contains("lab:");
        let _lock = (whole.is_none() && is_here).then(lock_machine_for_a_moment);
        test.run_line(&line);
    }
    test.stop_daemon();
}

macro_rules! pages {
    ($($name:ident: $page:literal,)*) => {
        $(#[test] fn $name() { test_page($page); })*
        const PAGES: &[&str] = &[$($page),*];
    };
}

pages! {
    readme_commands_work: "README.md",
    first_steps_commands_work: "docs/index.md",
    scan_commands_work: "docs/scan.md",
    explain_commands_work: "docs/explain.md",
    bound_commands_work: "docs/bound.md",
    check_commands_work: "docs/check.md",
    marks_commands_work: "docs/marks.md",
    period_commands_work: "docs/period.md",
    laboratory_commands_work: "docs/laboratory.md",
    adapt_commands_work: "docs/adapt.md",
    daemon_commands_work: "docs/daemon.md",
    compare_commands_work: "docs/compare.md",
    studies_commands_work: "docs/studies.md",
    papers_commands_work: "docs/papers.md",
    coming_from_commands_work: "docs/coming-from.md",
    files_commands_work: "docs/files.md",
}

#[test]
fn pages_with_commands_are_all_tested() {
    let pages = fs::read_dir(tree().join("docs")).expect("docs/ exists").flatten();
    let pages = pages.filter_map(|page| page.file_name().into_string().ok());
    for page in
        pages.filter(|page| Path::new(page).extension().is_some_and(|extension| extension == "md"))
    {
        let page = format!("docs/{page}");
        assert!(PAGES.contains(&page.as_str()) || commands(&page).is_empty(), "{page}");
    }
}

#[test]
fn reference_describes_every_part_that_is_listed() {
    let page = run(&mut command("generate reference.md")).stdout;
    for kind in ["probes", "loads", "calls", "causes", "mechanisms", "profiles"] {
        let list = run(&mut command(&format!("list {kind}"))).stdout;
        let names: Vec<&str> =
            list.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert!(!names.is_empty(), "{kind}");
        let described = |name: &&&str| page.contains(&format!("\n### {name}\n"));
        assert_eq!(names.iter().find(|name| !described(name)), None, "{kind}");
    }
}
