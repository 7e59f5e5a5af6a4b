//! Guests for arm64. They run latlab built for arm64, which takes minutes: `make boards` builds it and
//! sets `LATLAB_ARM64` to its path.

use super::laboratory::Busy;
use super::program::{LATLAB, Missing, Output, command, folder, latlab, not_run, run};
use latlab_check::{Level, Report, Rule};
use latlab_core::record::explained::Share;
use latlab_core::time::Nanos;
use std::fs;
use std::path::Path;
use std::process::Command;

/// latlab with the program for arm64 beside it.
struct Both(tempfile::TempDir);

impl Both {
    /// None, with a note, where the program for arm64 was not built.
    fn new() -> Option<Both> {
        let Some(arm64) = std::env::var_os("LATLAB_ARM64") else {
            let why = "latlab for arm64 takes minutes to build: make boards";
            not_run(Missing::Optional, why);
            return None;
        };
        let both = folder();
        let place = |program: &Path, name: &str| {
            fs::copy(program, both.path().join(name)).expect("the program can be copied");
        };
        place(Path::new(LATLAB), "latlab");
        let arm64 = Path::new(&arm64);
        place(arm64, "latlab-arm64");
        place(&arm64.with_file_name("latlab-guest-arm64"), "latlab-guest-arm64");
        Some(Both(both))
    }

    fn command(&self, words: &str) -> Command {
        let mut with_both = Command::new(self.0.path().join("latlab"));
        with_both.args(command(words).get_args());
        with_both
    }

    fn run(&self, words: &str) -> Output {
        run(&mut self.command(words))
    }
}

#[test]
fn missing_program_for_arm64_is_named_with_its_command() {
    let alone = latlab("run cyclic --count 10 --on lab:rt@arm64");
    let words = ["latlab-guest-arm64 is missing", "make build ARCH=arm64"];
    alone.assert_refused(3, &words);
}

#[test]
fn architecture_unknown_or_without_such_a_profile_is_refused() {
    latlab("run --on lab:rt@arm46").assert_refused(2, &["'arm46'", "did you mean arm64"]);
    latlab("run --on lab:monolithic@arm64").assert_refused(3, &["rt@arm64, standard@arm64"]);
}

#[test]
fn record_of_arm64_is_the_same_cold_restored_and_on_a_busy_host() {
    let Some(both) = Both::new() else { return };
    let words = |load: &str| {
        let targets = "--on lab:rt@arm64 --on lab:standard@arm64";
        format!("run cyclic --load {load} --count 100 --warm-up 20ms --json --fresh {targets}")
    };
    for load in ["fork", "disk:size=1MiB"] {
        let cold = both.run(&format!("{} --cold", words(load)));
        assert_eq!(cold.code(), Some(0), "{cold:?}");
        assert_eq!(cold.stdout.matches("\"schema\"").count(), 2, "{cold:?}");
        let kept = both.run(&words(load));
        let restored = {
            let _both = [Busy::start(), Busy::start()];
            both.run(&words(load))
        };
        assert_eq!(cold.stdout, kept.stdout);
        assert_eq!(cold.stdout, restored.stdout);
    }
}

#[test]
fn driver_on_arm64_is_found_by_scans_and_interrupts_at_a_known_time() {
    let Some(both) = Both::new() else { return };
    for points in [0, 3] {
        let scan =
            format!("scan driver:length=200us,points={points} --on lab:standard@arm64 --json");
        let record = both.run(&scan).record();
        assert_eq!(record.scans[0].sections.len(), points + 1, "{:?}", record.scans[0].sections);
    }
}

#[test]
fn program_for_another_architecture_is_refused_and_the_right_one_runs() {
    let Some(both) = Both::new() else { return };
    let refused = both.run("exec --on lab:rt@arm64 -- /bin/true");
    refused.assert_refused(2, &["/bin/true: this is a program for x86-64", "guest is for arm64"]);
    let folder = folder();
    let text = "#include <stdio.h>\n#include <sys/utsname.h>\n\
        int main(void) { struct utsname u; uname(&u); puts(u.machine); return 7; }";
    let (source, program) = (folder.path().join("machine.c"), folder.path().join("machine"));
    fs::write(&source, text).expect("the folder can be written");
    let mut compiler = Command::new("aarch64-linux-gnu-gcc");
    let built = compiler.args(["-static", "-o"]).args([&program, &source]).status();
    assert!(built.expect("the compiler starts").success());
    let words = format!("exec --on lab:rt@arm64 -- {}", program.display());
    let started = both.run(&words);
    assert_eq!((started.code(), started.stdout.as_str()), (Some(7), "aarch64\n"), "{started:?}");
    let refused = latlab(&format!("exec --on lab:rt -- {}", program.display()));
    refused.assert_refused(2, &["this is a program for arm64", "lab:rt@arm64"]);
}

#[test]
fn late_wakeups_on_arm64_are_explained() {
    let Some(both) = Both::new() else { return };
    let explained = both
        .run("explain cyclic --load fork --count 300 --traced --above 0 --on lab:rt@arm64 --json");
    let explained = explained.record().explained.expect("the run is explained");
    assert!(explained.missing.is_empty(), "{:?}", explained.missing);
    assert!(explained.unexplained.0 * 20 <= explained.total.0, "{explained:?}");
    let is_timer = |share: &Share| share.cause == "interrupt" && share.culprit.contains("timer");
    assert!(explained.causes.iter().any(is_timer), "{:?}", explained.causes);
}

#[test]
fn checks_on_arm64_find_page_faults_and_wakers() {
    let Some(both) = Both::new() else { return };
    let folder = folder();
    let program = folder.path().join("faults");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/check/faults.c");
    let mut compiler = Command::new("aarch64-linux-gnu-gcc");
    compiler.args(["-static", "-O1", "-g", "-pthread", "-o"]).arg(&program).arg(source);
    assert!(compiler.status().expect("the compiler starts").success());
    let check = |fault: &str| {
        let words = format!("check --json --on lab:rt@arm64 -- {} {fault}", program.display());
        let output = both.run(&words);
        serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
    };
    let breaches = |report: &Report| {
        let all = report.threads.iter().flat_map(|thread| &thread.breaches);
        let errors = all.filter(|breach| breach.level == Level::Error);
        let place = |place: &Option<String>| place.clone().unwrap_or_default();
        errors.map(|one| (one.rule, one.count, place(&one.place))).collect::<Vec<_>>()
    };
    let report = check("fault");
    let found = breaches(&report);
    assert!(matches!(&found[..], [(Rule::Fault, 199, place)] if place.starts_with("touch_page ")));
    assert!(!report.notes.iter().any(|note| note.starts_with("not checked")), "{report:?}");
    let found = breaches(&check("waker"));
    assert!(matches!(&found[..], [(Rule::Waker, _, at)] if at.starts_with("wait_for_time ")));
    assert_eq!(breaches(&check("busy")), []);
}

#[test]
fn softirq_thread_that_wakes_a_task_is_raised_on_arm64() {
    let Some(both) = Both::new() else { return };
    let worst = |adapt: &str| {
        let words = "run timer:source=itimer,interval=8ms,priority=80 --load \
                     cpu:busy=400ms,every=1s,policy=fifo,priority=70 --for 3s --warm-up 1s \
                     --json --on lab:v6.12-rt@arm64";
        let record = both.run(&format!("{words} {adapt}")).record();
        record.worst[0].latency
    };
    assert!(worst("") > Nanos::from_millis(300));
    assert!(worst("--adapt=transparent,inherit") < Nanos::from_micros(100));
}
