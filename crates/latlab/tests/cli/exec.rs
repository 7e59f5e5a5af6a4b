//! `latlab exec`: attributes of the program, its exit code and its signals.

use crate::program::{command, latlab, root, run};
use std::process::Command;

/// Returns policy and priority, from the output of `cat /proc/self/stat` (`proc_pid_stat(5)`).
fn scheduling(words: &str) -> (u32, u32) {
    let output = latlab(&format!("exec {words} -- cat /proc/self/stat"));
    assert_eq!(output.code(), Some(0), "{words}: {output:?}");
    let (_, after_the_name) = output.stdout.rsplit_once(") ").expect("the name is in parentheses");
    let field = |nth: usize| {
        let field = after_the_name.split_whitespace().nth(nth - 3);
        field.and_then(|text| text.parse().ok()).expect("a number")
    };
    (field(41), field(40))
}

#[test]
fn exit_code_is_that_of_the_program() {
    let output = run(command("exec -- sh -c").arg("exit 7"));
    assert_eq!(output.code(), Some(7), "{output:?}");
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""));
}

#[test]
fn signal_that_ends_exec_is_that_of_the_program() {
    for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("PIPE", 13)] {
        let output = run(command("exec -- sh -c").arg(format!("kill -s {name} $$")));
        assert_eq!(output.signal(), Some(number), "{output:?}");
    }
}

#[test]
fn signal_dispositions_are_as_without_exec() {
    let words = ["grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status"];
    let without = run(Command::new(words[0]).args(&words[1..]));
    let with = run(command("exec --").args(words));
    assert!(with.stdout.starts_with("SigBlk:"), "{with:?}");
    assert_eq!(with.stdout, without.stdout);
}

#[test]
fn policy_is_applied_to_the_program() {
    assert_eq!(scheduling("--other"), (0, 0));
    if !root() {
        return;
    }
    assert_eq!(scheduling("--fifo 50"), (1, 50));
    assert_eq!(scheduling("--rr 7"), (2, 7));
    assert_eq!(scheduling("--deadline 2ms/100ms"), (6, 0));
}

#[test]
fn cpus_and_slack_are_applied_to_the_program() {
    let output = latlab("exec --cpus 0 -- grep Cpus_allowed_list /proc/self/status");
    assert_eq!(output.stdout, "Cpus_allowed_list:\t0\n", "{output:?}");
    let output = latlab("exec --slack 123us -- cat /proc/self/timerslack_ns");
    assert_eq!(output.stdout, "123000\n", "{output:?}");
}

#[test]
fn idle_states_are_limited_while_program_runs() {
    if !root() {
        return;
    }
    let output = latlab("exec --cpu-dma-latency 37us -- od -An -td4 /dev/cpu_dma_latency");
    let bound: i32 = output.stdout.trim().parse().expect("the file has one number");
    // Another process may request a lower limit, but none can raise it.
    assert!((0..=37).contains(&bound), "{output:?}");
}

#[test]
fn missing_program_is_refused_in_one_sentence() {
    // An unreadable folder in the search path would be another reason.
    let absent = run(command("exec -- no-such-program --fifo").env("PATH", "/usr/bin:/bin"));
    absent.assert_refused(2, &["no-such-program", "No such file"]);
    latlab("exec -- /etc").assert_refused(2, &["/etc", "Permission denied"]);
}

#[test]
fn long_output_arrives_from_a_guest_with_threaded_interrupts() {
    let output = latlab("exec --on lab:v6.1-rt -- seq 40000");
    assert_eq!(output.code(), Some(0), "{output:?}");
    let lines = (1..=40_000).map(|line| format!("{line}\n")).collect::<String>();
    assert!(output.stdout == lines, "{} of {} bytes", output.stdout.len(), lines.len());
}
