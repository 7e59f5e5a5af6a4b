//! The test driver: its build, its refusal of invalid requests, and its delays.

use super::kernel::kernel;
use super::program::{Output, command, folder, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modes of `kmod/latlab.h`.
const PLAIN: u32 = 0;
const SPIN: u32 = 1;
const RAW_SPIN: u32 = 2;
const PREEMPT_OFF: u32 = 3;
const IRQ_OFF: u32 = 4;
const LOCK_BREAK: u32 = 5;
/// Its interrupt sources.
const TIMER: u32 = 0;
const DEVICE: u32 = 1;

/// Latency in nanoseconds that only a delay explains, and the longest one without a delay.
const LATE: i64 = 300_000;
const PROMPT: i64 = 6_000;

/// A kernel without preemption, a preemptible one, and PREEMPT_RT.
const NONE: (&str, &str) = ("linux-image-6.12-amd64", "preempt=none");
const FULL: (&str, &str) = ("linux-image-6.12-amd64", "preempt=full");
const RT: (&str, &str) = ("linux-image-6.12-rt-amd64", "");

/// Runs a program of `tests/driver/` in a guest with the driver.
fn with_driver(kernel: (&str, &str), name: &str, words: &str) -> Output {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = folder();
    let (program, profile) = (folder.path().join(name), folder.path().join("driver.toml"));
    let compiled = Command::new("cc")
        .args(["-static", "-O1", "-Wall", "-Werror", "-I"])
        .arg(here.join("../../kmod"))
        .arg("-o")
        .args([&program, &source(here, name)])
        .status();
    assert!(compiled.expect("cc starts").success());
    let (package, cmdline) = kernel;
    let text = format!(
        "summary = 'with the test driver'\nkernel = {{ package = '{package}' }}\n\
         cmdline = '{cmdline}'\nmodules = ['latlab']\n"
    );
    fs::write(&profile, text).expect("the folder can be written");
    let mut exec = command("exec");
    exec.arg("--on").arg(format!("lab:{}", profile.display())).arg("--").arg(program);
    run(exec.args(words.split_whitespace()))
}

fn source(here: &Path, name: &str) -> PathBuf {
    here.join(format!("tests/driver/{name}.c"))
}

/// Measures PDLT and IRT in nanoseconds for each loop, given as mode, number of points, and offset.
fn pdlt(kernel: (&str, &str), source: u32, loops: &[(u32, u32, i64)]) -> Vec<(i64, i64)> {
    let words: Vec<String> =
        loops.iter().map(|(mode, points, at)| format!("{mode},{points},{at}")).collect();
    let output = with_driver(kernel, "pdlt", &format!("{source} {}", words.join(" ")));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let measured = output.stdout.lines().skip(1).map(|line| {
        let (pdlt, irt) = line.split_once(' ').expect("two numbers");
        (pdlt.parse().expect("a number"), irt.parse().expect("a number"))
    });
    let measured: Vec<(i64, i64)> = measured.collect();
    assert_eq!(measured.len(), loops.len());
    measured
}

#[test]
fn driver_refuses_misuse_and_can_always_be_unloaded() {
    for kernel in [NONE, RT] {
        let output = with_driver(kernel, "abuse", "");
        assert_eq!((output.code(), output.stdout.as_str()), (Some(0), "done\n"), "{output:?}");
        assert!(!output.stderr.contains("the guest's kernel"), "{output:?}");
    }
}

/// The latency is the rest of the loop, plus 3 µs for the wake-up itself and 2 µs for each
/// scheduler tick in between.
#[test]
fn latency_without_preemption_is_the_rest_of_the_section() {
    let at = [100_000, 200_000, 300_000, 400_000];
    for source in [TIMER, DEVICE] {
        let measured = pdlt(NONE, source, &at.map(|at| (PLAIN, 0, at)));
        for ((pdlt, irt), at) in measured.iter().zip(at) {
            assert!((483_000..492_000).contains(&(pdlt + at)) && *irt < 1_000, "{measured:?}");
        }
    }
    // One preemption point makes two sections: well before, just before and just after the end of
    // the first.
    let at = [100_000, 230_000, 260_000, 490_000];
    let measured = pdlt(NONE, TIMER, &at.map(|at| (PLAIN, 1, at)));
    let [first, before, after, behind] = [0, 1, 2, 3].map(|n: usize| measured[n].0);
    assert!((first - before - 130_000).abs() < 5_000, "{measured:?}");
    assert!(before < 20_000 && after > 215_000 && behind < PROMPT, "{measured:?}");
}

#[test]
fn latency_with_tick_timers_is_measured_by_device() {
    let ticks = (NONE.0, "preempt=none highres=off nohz=off");
    let measured = pdlt(ticks, DEVICE, &[(PLAIN, 0, 100_000), (PLAIN, 0, 200_000)]);
    assert!((measured[0].0 - measured[1].0 - 100_000).abs() < 5_000, "{measured:?}");
}

/// Latency in each mode on each kernel, 100 µs into the loop.
#[test]
fn driver_modes_delay_where_the_kernel_is_non_preemptible() {
    // Plain, spinlock, raw spinlock, preemption off, one lock.
    let modes = [PLAIN, SPIN, RAW_SPIN, PREEMPT_OFF, LOCK_BREAK, IRQ_OFF];
    for (kernel, late) in [
        (NONE, [true, true, true, true, true]),
        (FULL, [false, true, true, true, true]),
        (RT, [false, false, true, true, false]),
    ] {
        let measured = pdlt(kernel, TIMER, &modes.map(|mode| (mode, 0, 100_000)));
        for ((pdlt, irt), late) in measured.iter().zip(late) {
            let is_expected = if late { *pdlt > LATE } else { *pdlt < PROMPT };
            assert!(is_expected && *irt < PROMPT, "{kernel:?}: {measured:?}");
        }
        let (pdlt, irt) = measured[5];
        assert!(pdlt > LATE && irt > LATE, "interrupts are disabled: {kernel:?}: {measured:?}");
    }
    let broken = pdlt(FULL, TIMER, &[(LOCK_BREAK, 255, 100_000)]);
    assert!(broken[0].0 < PROMPT, "the lock is released at each point: {broken:?}");
}

#[test]
fn missing_headers_or_compiler_is_refused_in_one_sentence() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("vmlinux"), kernel("6.1.9-mine")).unwrap();
    let text = "summary = 'mine'\nkernel = { added = 'mine' }\nmodules = ['latlab']\n";
    fs::write(folder.join("mine.toml"), text).unwrap();
    let in_folder = |words: &str| {
        let mut command = command(words);
        command.current_dir(folder).env("XDG_CACHE_HOME", folder);
        command
    };
    assert_eq!(run(&mut in_folder("kernel add vmlinux --name mine")).code(), Some(0));
    let words = "exec --on lab:./mine.toml -- /bin/true";
    let place = "/lib/modules/6.1.9-mine/build";
    run(&mut in_folder(words)).assert_refused(3, &["6.1.9-mine", "headers", place]);
    run(in_folder(words).env("PATH", "/nowhere")).assert_refused(3, &["apt-get install gcc make"]);
}
