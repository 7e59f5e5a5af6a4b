//! The daemon on real kernels with real knobs.

use super::unit;
use crate::program::{Output, command, folder, run};
use std::fs;
use std::path::Path;

/// Runs a script in a guest with a PREEMPT_RT kernel, in which `/latlab` is this program.
/// `snapshot` prints all knobs that it could set.
fn in_a_guest(script: &str) -> Output {
    on("rt", script)
}

/// The same with other programs. `policies` prints the scheduling of the IRQ threads.
pub(super) fn in_a_guest_with(programs: &str, script: &str) -> Output {
    with(programs, "rt", script)
}

fn on(profile: &str, script: &str) -> Output {
    with("", profile, script)
}

fn with(programs: &str, profile: &str, script: &str) -> Output {
    let tools = "--with /bin/sleep --with /bin/cat --with /bin/sh --with /usr/bin/setpriv";
    let mut command = command(&format!("exec --on lab:{profile} {tools} {programs} -- sh -c"));
    let snapshot = "\
        snapshot() { for knob in preempt base_slice_ns features; do
          cat /sys/kernel/debug/sched/$knob
        done; cat /proc/sys/vm/percpu_pagelist_high_fraction; policies; }
        policies() { for task in /proc/[0-9]*; do
          read -r stat < $task/stat
          case \"$stat\" in *' (irq/'*|*' (ktimers/'*|*' (ksoftirqd/'*)
            set -- $stat; echo $2 ${40} ${41};;
          esac
        done; }\n";
    run(command.arg(format!("{snapshot}{script}")))
}

/// Kills the daemon 25 times, after 0 to 480 ms. Every fifth time it runs with all mechanisms,
/// which take longer to start, and is killed after 580 to 980 ms. Returns how often a knob was set
/// by then.
fn kills_with_knobs_set(before: &str) -> u32 {
    let output = in_a_guest(&format!(
        "{before}before=$(snapshot); kills=0; turned=0
        while [ $kills -lt 25 ]; do
          few='--mechanisms selective,suppress,mode'; time=$((2 * kills + 100))
          [ $((kills % 5)) = 4 ] && {{ few=; time=$((2 * kills + 150)); }}
          /latlab adapt $few 2> /dev/null & daemon=$!
          sleep 0.${{time#1}}; kill -KILL $daemon; wait $daemon
          [ \"$(snapshot)\" = \"$before\" ] || turned=$((turned + 1))
          /latlab adapt --restore > /dev/null || echo not restored
          [ \"$(snapshot)\" = \"$before\" ] || {{ echo differs after $kills; snapshot; }}
          kills=$((kills + 1))
        done; echo $turned; /latlab adapt --restore",
    ));
    let (turned, rest) = output.stdout.split_once('\n').expect("the script prints the count");
    assert_eq!(rest, "no knob needs to be restored\n", "{output:?}");
    turned.parse().unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

#[test]
fn restore_after_sigkill_at_any_moment_restores_all_knobs() {
    let set = kills_with_knobs_set("");
    assert!((5..25).contains(&set), "killed both before and after knobs are set: {set}");
}

#[test]
fn restore_after_sigkill_beside_real_time_task_restores_all_knobs() {
    let set = kills_with_knobs_set("/latlab exec --fifo 60 -- /bin/sleep 1000 &\nsleep 0.1; ");
    assert!((5..25).contains(&set), "killed both before and after knobs are set: {set}");
}

/// In another PID namespace, a thread can't be told from one that has ended.
#[test]
fn restore_in_another_pid_namespace_leaves_threads_to_the_next() {
    let output = in_a_guest_with(
        "--with /usr/bin/unshare",
        "before=$(policies); /latlab adapt --mechanisms selective,suppress,mode 2> /dev/null & daemon=$!
        until /latlab adapt status > /dev/null 2>&1; do sleep 0.02; done
        sleep 0.2; kill -KILL $daemon; wait $daemon
        [ \"$(policies)\" != \"$before\" ] && echo lowered
        unshare --pid --fork --mount-proc sh -c '/latlab adapt --restore; echo $?'
        [ \"$(policies)\" != \"$before\" ] && echo lowered
        /latlab adapt --restore > /dev/null; echo $?
        [ \"$(policies)\" = \"$before\" ] && echo restored",
    );
    assert!(output.stdout.starts_with("lowered\n"), "{output:?}");
    assert!(output.stdout.contains("its thread is in another PID namespace"), "{output:?}");
    assert!(output.stdout.ends_with("\n2\nlowered\n0\nrestored\n"), "{output:?}");
}

/// The daemon runs with the bounding set of the systemd unit. RTC and HPET are in the group TIMER.
#[test]
fn devices_requested_by_program_go_first_while_it_runs() {
    let bounding_set = format!("-all,+{}", unit::capabilities().join(",+").replace("cap_", ""));
    let output = in_a_guest(&format!(
        "before=$(snapshot)
        setpriv --bounding-set={bounding_set} /latlab adapt --mechanisms selective,suppress,mode &
        daemon=$!; until /latlab adapt status > /dev/null 2>&1; do sleep 0.02; done
        snapshot; echo; sleep 1
        /latlab exec --fifo 70 --irq-group timer -- sh -c 'sleep 0.3; /latlab adapt status'
        kill -TERM $daemon; wait $daemon; echo $?; [ \"$(snapshot)\" = \"$before\" ] && echo restored"
    ));
    let (alone, served) =
        output.stdout.split_once("\n\n").expect("there is an empty line in between");
    assert!(alone.contains("(irq/8-rtc0) 0 0"), "all device threads are lowered: {output:?}");
    assert!(alone.contains("NO_WAKEUP_PREEMPTION"), "{output:?}");
    assert!(alone.contains("(ktimers/0) 1 1"), "but timer threads are not: {output:?}");
    let line = |knob: &str| {
        let line = served.lines().find(|line| line.starts_with(knob)).unwrap_or_default();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(line("irq/8-rtc0 ").starts_with("irq/8-rtc0 fifo 50 fifo 70 "), "{output:?}");
    assert!(line("irq/8-rtc0 ").contains("has asked for TIMER at priority 70"), "{output:?}");
    assert!(line("irq/9-acpi ").starts_with("irq/9-acpi fifo 50 other "), "{output:?}");
    assert!(line("mode: ").starts_with("mode: latency (there "), "{output:?}");
    assert_eq!(line("TIMER "), "TIMER is requested by 1 process", "{output:?}");
    assert!(served.ends_with("\n0\nrestored\n"), "{output:?}");
}

/// Writes a profile with PREEMPT_RT and two CPUs to the folder.
fn two_cpus(folder: &Path) -> String {
    let profile = folder.join("two.toml");
    let text = "summary = 'PREEMPT_RT with two processors'\npaper = ''\ncpus = 2\n\
                kernel = { package = 'linux-image-6.12-rt-amd64' }\n\
                files = { '/sys/kernel/debug/sched/preempt' = 'full' }\n";
    fs::write(&profile, text).expect("the folder can be written");
    profile.display().to_string()
}

/// A program takes a whole CPU, on a kernel without throttling of real-time tasks, until two changes
/// are restored. How long that takes depends on the host a little, because the guest has two CPUs
/// (the program was killed after 2.5 s before; the test then failed once on a busy host).
#[test]
fn starvation_restores_newest_changes_for_good() {
    let folder = folder();
    // The shell must not starve itself.
    let output = with(
        "--with /usr/bin/taskset --with /bin/grep",
        &two_cpus(folder.path()),
        "before=$(snapshot); echo -1 > /proc/sys/kernel/sched_rt_runtime_us
        for server in /sys/kernel/debug/sched/fair_server/cpu*; do echo 0 > $server/runtime; done
        /latlab adapt --mechanisms selective,suppress & daemon=$!
        until /latlab adapt status > /dev/null 2>&1; do sleep 0.02; done
        taskset -pc 0 $$ > /dev/null
        /latlab exec --cpus 1 --fifo 60 --irq-group timer -- sh -c 'while :; do :; done' & hog=$!
        n=0; until [ $(/latlab adapt status | grep -c '^left alone') = 2 ] || [ $n = 80 ]; do
          sleep 0.1; n=$((n + 1))
        done
        kill -KILL $hog; sleep 2; /latlab adapt status; echo .
        kill -TERM $daemon; wait $daemon; echo $?
        [ \"$(snapshot)\" = \"$before\" ] && echo restored",
    );
    let (status, rest) = output.stdout.split_once("\n.\n").expect("the status is printed");
    assert_eq!(rest, "0\nrestored\n", "{output:?}");
    let left = status.lines().filter_map(|line| line.strip_prefix("left alone: "));
    let left: Vec<&str> = left.filter_map(|line| line.split(':').next()).collect();
    assert_eq!(left, ["irq/8-rtc0", "wakeup_preemption"], "{output:?}");
    let starved = "no SCHED_OTHER task ran for 1 s on CPU 1, and this was the last change";
    let back: Vec<&str> = output.stderr.lines().filter(|line| line.contains(starved)).collect();
    let knobs: Vec<&str> = back.iter().filter_map(|line| line.split(' ').nth(2)).collect();
    assert_eq!(knobs, ["irq/8-rtc0", "wakeup_preemption"], "a second apart: {output:?}");
}

/// On a CPU that is brought online later, policy changes are detected at once, not at the next
/// count.
#[test]
fn real_time_tasks_are_detected_on_cpus_onlined_later() {
    let folder = folder();
    let profile = two_cpus(folder.path());
    let output = on(
        &profile,
        "cpu=/sys/devices/system/cpu/cpu1/online; echo 0 > $cpu
        /latlab adapt --mechanisms suppress,mode & daemon=$!; sleep 0.5
        echo 1 > $cpu; sleep 1.5; n=0
        while [ $n -lt 5 ]; do
          /latlab exec --cpus 1 --fifo 5 -- sh -c '/bin/sleep 0.02; case \"$(cat /sys/kernel/debug/sched/features)\" in
            *NO_WAKEUP_PREEMPTION*) echo late;; *) echo heard;; esac'
          sleep 1.3; n=$((n + 1))
        done; kill -TERM $daemon; wait $daemon; echo $?",
    );
    assert_eq!(output.stdout, "heard\nheard\nheard\nheard\nheard\n0\n", "{output:?}");
}

/// The message appears once, not each second.
#[test]
fn missing_tracepoints_on_new_cpu_are_reported_once() {
    let folder = folder();
    let output = with(
        "--with /bin/mount",
        &two_cpus(folder.path()),
        "cpu=/sys/devices/system/cpu/cpu1/online; echo 0 > $cpu
        /latlab adapt --mechanisms suppress,mode & daemon=$!; sleep 0.5
        for place in /sys/kernel/tracing /sys/kernel/debug/tracing; do
          mount -t tmpfs none $place
        done
        echo 1 > $cpu; sleep 3.5; kill -TERM $daemon; wait $daemon; echo $?",
    );
    assert_eq!(output.stdout, "0\n", "{output:?}");
    let why = "late (online CPUs: 0-1): tracefs is not mounted";
    assert_eq!(output.stderr.matches(why).count(), 1, "{output:?}");
}
