//! `latlab explain` in the laboratory: the paths of the worst samples, at no cost.

use crate::program::{LATLAB, cache_with_kernels, folder, latlab, run};
use latlab_core::path::{IDLE, Off, Path};
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use std::fs;
use std::process::Command;

/// Returns the record without its explanation.
fn bare(record: &Record) -> String {
    let mut record = record.clone();
    record.plan.explain = None;
    record.worst.iter_mut().for_each(|sample| sample.path = None);
    record.to_json()
}

/// Runs a plan without and with the microscope, and returns the explained record. Asserts that both
/// records agree but for the explanation, and that the steps of each path add up to its latency.
fn explained(words: &str) -> Record {
    let without = latlab(&format!("run {words} --json"));
    let with = latlab(&format!("explain {words} --json"));
    assert_eq!((without.code(), with.code()), (Some(0), Some(0)), "{without:?} {with:?}");
    let record = with.record();
    assert_eq!(bare(&record), without.stdout);
    assert_eq!(record.worst.len(), 10);
    for sample in &record.worst {
        let path = sample.path.as_ref().expect("each of the worst is explained");
        let steps: u64 = path.steps.iter().map(|step| step.instructions).sum();
        assert_eq!(Nanos(steps), sample.latency);
        assert_eq!(Nanos(path.instructions()) + path.idle, sample.latency);
        assert_eq!(path.unseen, Nanos(0));
    }
    record
}

fn paths(record: &Record) -> impl Iterator<Item = &Path> {
    record.worst.iter().filter_map(|sample| sample.path.as_ref())
}

fn goes_through(path: &Path, function: &str) -> bool {
    path.functions.iter().any(|one| one.function == function)
}

/// Asserts that the path is that of a wake-up from idle, from the first instruction of the
/// interrupt on.
fn assert_out_of_idle(path: &Path) {
    let first: Vec<&str> = path.steps.iter().map(|step| step.function.as_str()).take(2).collect();
    assert_eq!(first, [IDLE, "asm_sysvec_apic_timer_interrupt"]);
    for function in ["hrtimer_wakeup", "__schedule", "finish_task_switch.isra.0"] {
        assert!(goes_through(path, function), "{function}: {:?}", path.functions);
    }
    let is_irqs_off = |held: &&latlab_core::path::DisabledSection| held.what == Off::Interrupts;
    let longest = path.held.iter().find(is_irqs_off).expect("the handler runs with interrupts off");
    assert_eq!(longest.function, "asm_sysvec_apic_timer_interrupt");
    assert_eq!(longest.from, path.idle);
}

#[test]
fn latency_with_fine_timers_is_nearly_all_instructions() {
    let record = explained("cyclic --count 200 --on lab:rt");
    for path in paths(&record) {
        assert_out_of_idle(path);
        assert!(path.idle < Nanos(200), "{}", path.idle);
    }
}

#[test]
fn latency_with_ticks_is_nearly_all_timer_resolution() {
    let record = explained("cyclic --count 100 --on lab:standard");
    for path in paths(&record) {
        assert_out_of_idle(path);
        assert!(path.idle > Nanos::from_millis(2), "{}", path.idle);
        assert!(path.instructions() < 20_000, "{}", path.instructions());
    }
}

#[test]
fn path_through_load_is_complete_to_the_instruction() {
    let record = explained("cyclic --count 60 --load procfs --on lab:rt");
    for path in paths(&record) {
        assert_eq!(path.idle, Nanos(0));
        assert!(goes_through(path, "asm_sysvec_apic_timer_interrupt"));
    }
}

#[test]
fn longest_section_of_scan_names_function_that_clears_huge_page() {
    let words = "scan populate:2MiB --points 4 --resolution 200us --repeat 3";
    let output = latlab(&format!("explain --on lab:utime --json {words}"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let longest = record.scans[0].longest().expect("a huge page is cleared without preemption");
    assert!(longest.length() > Nanos::from_micros(1_800), "{longest:?}");
    // Debian's kernel clears memory when it is allocated (`init_on_alloc`), without preemption, and
    // once more for the program, page by page, with preemption.
    let known = "clear_page_erms in get_page_from_freelist";
    assert_eq!(longest.function.as_deref(), Some(known));
    latlab(&format!("explain --count 9 --on lab:utime {words}"))
        .assert_refused(2, &["--count", "scan"]);
}

/// The newest kernels clear a huge page with preemption.
#[test]
fn scan_of_call_without_section_is_explained_as_such() {
    let words = "scan populate:2MiB --points 4 --resolution 200us --repeat 3";
    let output = latlab(&format!("explain --on lab:v7.2 {words}"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(output.stdout.contains("no non-preemptible section > "), "{output:?}");
}

/// The non-preemptible section is known: the loop of the test driver.
#[test]
fn section_of_test_driver_names_its_loop() {
    let words = "scan driver:mode=raw-spin,length=100us --points 4 --resolution 10us --repeat 3";
    let output = latlab(&format!("explain --on lab:rt --json {words}"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let longest = record.scans[0].longest().expect("the loop is non-preemptible");
    let function = longest.function.as_deref().expect("the section has a function");
    assert!(function.starts_with("latlab_") && function.ends_with(" [latlab]"), "{function}");
}

#[test]
fn worst_samples_are_shown_with_their_functions() {
    let output = latlab("explain cyclic --count 200 --on lab:rt");
    assert_eq!(output.code(), Some(0), "{output:?}");
    for word in ["late at", "instructions +", "ns idle", "other functions", "interrupts off: "] {
        assert!(output.stdout.contains(word), "no '{word}' in {}", output.stdout);
    }
}

#[test]
fn plan_microscope_cannot_watch_is_refused_before_it_begins() {
    let refused = |words: &str, code, why: &[&str]| {
        latlab(words).assert_refused(code, why);
    };
    refused("explain --on lab:rt --rt --for 1s", 2, &["lab:rt", "--traced"]);
    let folder = folder();
    let profile = folder.path().join("two.toml");
    let text =
        "kernel = { package = \"linux-image-6.12-rt-amd64\" }\ncpus = 2\nsummary = \"two\"\n";
    fs::write(&profile, text).expect("the folder can be written");
    let target = format!("lab:{}", profile.display());
    refused(&format!("explain --count 10 --on {target}"), 3, &["2 CPUs", "cpus = 1"]);
}

#[test]
fn guest_in_wall_clock_time_is_explained_by_tracepoints() {
    let output = latlab("explain --on vm:rt --count 100 --json");
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    assert!(super::explained(&record).wake_ups > 0, "{record:?}");
    assert!(record.worst.iter().all(|sample| sample.path.is_none()), "{:?}", record.worst);
}

#[test]
fn missing_compiler_is_refused_with_its_package() {
    assert_eq!(latlab("kernel fetch linux-image-6.12-rt-amd64").code(), Some(0));
    let cache = cache_with_kernels();
    let mut command = Command::new(LATLAB);
    command.args(["explain", "--on", "lab:rt", "--count", "10"]);
    let output = run(command.env("PATH", "/nowhere").env("XDG_CACHE_HOME", cache.path()));
    output.assert_refused(3, &["QEMU plugin", "apt-get install", "gcc", "make"]);
}
