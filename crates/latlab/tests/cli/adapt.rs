//! Adapting: in guests, whose kernels have the knobs, and on this machine without changing
//! anything.

use crate::program::{Output, command, figure, latlab, run};
use latlab_core::record::Record;

/// Runs a script in a guest with a PREEMPT_RT kernel, in which `/latlab` is this program.
fn in_a_guest(script: &str) -> Output {
    let tools = "--with /bin/sleep --with /bin/cat --with /bin/grep --with /bin/ls --with /bin/sh";
    let mut command = command(&format!("exec --on lab:rt {tools} -- sh -c"));
    let knobs = "knobs() { cd /sys/kernel/debug/sched; grep -o '([a-z]*)' preempt; \
                 cat base_slice_ns; grep -o '[NO_]*WAKEUP_PREEMPTION' features; cd /; }\n";
    run(command.arg(format!("{knobs}{script}")))
}

const BEFORE: &str = "(full)\n700000\nWAKEUP_PREEMPTION\n";
const ADAPTED: &str = "(lazy)\n3000000\nNO_WAKEUP_PREEMPTION\n";

#[test]
fn mechanism_name_unknown_is_refused_with_nearest() {
    let output = latlab("adapt --dry-run --mechanisms supress");
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("there is no mechanism 'supress': did you mean suppress?"));
    let output = latlab("run --adapt=nonsense --for 10ms");
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("there is no mechanism 'nonsense'"), "{output:?}");
    let refused = latlab("run --adapt=transparent,selective --for 10ms");
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    assert!(refused.stderr.contains("only latlab adapt receives requests"), "{refused:?}");
    let output = latlab("run --adapt=suppress --set preempt=full --for 10ms");
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(
        output.stderr.contains("--set preempt and --adapt would both set preempt"),
        "{output:?}"
    );
}

/// The output depends on the kernel of this machine, but it is always one of two forms.
#[test]
fn dry_run_lists_changes_or_says_why_not() {
    let output = latlab("adapt --dry-run --mechanisms suppress");
    match output.code() {
        Some(0) => assert!(output.stdout.starts_with("suppress: preempt (/sys/"), "{output:?}"),
        Some(3) => {
            assert!(output.stdout.is_empty() && output.stderr.contains("debug"), "{output:?}");
        }
        _ => panic!("{output:?}"),
    }
}

#[test]
fn knobs_are_set_while_daemon_runs_and_restored_at_its_end() {
    let output = in_a_guest(
        "/latlab adapt --dry-run --mechanisms suppress; knobs\n\
         /latlab adapt --mechanisms suppress & daemon=$!; sleep 0.5; knobs\n\
         /latlab adapt; echo $?\n\
         kill -TERM $daemon; wait $daemon; echo $?; knobs; ls /run/latlab",
    );
    let (dry, rest) = output.stdout.split_once(BEFORE).expect("the knobs are printed");
    assert_eq!(dry.lines().count(), 3, "{output:?}");
    for change in ["full to lazy", "700000 to 3000000", "1 to 0"] {
        assert!(dry.contains(&format!("would go from {change}")), "{output:?}");
    }
    assert_eq!(rest, format!("{ADAPTED}2\n0\n{BEFORE}"), "{output:?}");
    assert!(output.stderr.contains("adapts this machine: end that one first"), "{output:?}");
    assert!(output.stderr.contains("suppress: preempt goes from full to lazy: "), "{output:?}");
    assert!(output.stderr.contains("preempt restored to full"), "{output:?}");
}

#[test]
fn daemon_ends_after_its_time() {
    let output = in_a_guest("/latlab adapt --mechanisms suppress --for 300ms; echo $?; knobs");
    assert_eq!(output.stdout, format!("0\n{BEFORE}"), "{output:?}");
}

#[test]
fn knobs_of_killed_daemon_are_restored_by_next_command() {
    let output = in_a_guest(
        "/latlab adapt --mechanisms suppress & daemon=$!; sleep 1\n\
         kill -KILL $daemon; wait $daemon; knobs\n\
         /latlab doctor > /dev/null; knobs; ls /run/latlab\n\
         /latlab adapt --mechanisms suppress --for 300ms; echo $?; knobs",
    );
    assert_eq!(output.stdout, format!("{ADAPTED}{BEFORE}0\n{BEFORE}"), "{output:?}");
    let message = output.stderr.lines().filter(|line| line.contains(" did not restore "));
    assert_eq!(message.count(), 3, "{output:?}");
}

#[test]
fn knob_changed_by_somebody_else_is_left_alone() {
    let output = in_a_guest(
        "/latlab adapt --mechanisms suppress & daemon=$!; sleep 0.5\n\
         echo full > /sys/kernel/debug/sched/preempt; sleep 0.5; knobs\n\
         echo lazy > /sys/kernel/debug/sched/preempt\n\
         echo 5000000 > /sys/kernel/debug/sched/base_slice_ns; sleep 0.5\n\
         kill -INT $daemon; kill -TERM $daemon; wait $daemon; knobs",
    );
    let meanwhile = "(full)\n3000000\nNO_WAKEUP_PREEMPTION\n";
    let after = "(lazy)\n5000000\nWAKEUP_PREEMPTION\n";
    assert_eq!(output.stdout, format!("{meanwhile}{after}"), "{output:?}");
    let message =
        "suppress: preempt is left alone from now on: something else changed it from lazy to full";
    assert!(output.stderr.contains(message), "{output:?}");
    let message =
        "base_slice is left alone from now on: something else changed it from 3000000 to 5000000";
    assert!(output.stderr.contains(message), "{output:?}");
}

/// The knobs 5 ms after a task became `SCHED_FIFO`, and after its end. Setting `preempt` alone
/// takes 9 ms in the guest, so that it is set last.
#[test]
fn knobs_serve_real_time_task_within_5_ms_and_for_a_second_after() {
    let output = in_a_guest(
        "/latlab adapt --mechanisms suppress,mode --dry-run | grep 'mode: there'\n\
         /latlab adapt --mechanisms suppress,mode & daemon=$!; sleep 0.5; knobs\n\
         /latlab exec --fifo 5 -- /bin/sh -c \
           '/bin/sleep 0.005; grep -o \"[NO_]*WAKEUP_PREEMPTION\" /sys/kernel/debug/sched/features; sleep 0.3'\n\
         sleep 0.5; knobs; sleep 1; knobs\n\
         /latlab adapt --dry-run --mechanisms mode; echo $?\n\
         kill -TERM $daemon; wait $daemon; knobs",
    );
    let dry = "mode: there is no real-time task now: knobs for throughput would be set at once\n";
    let expected = format!("{dry}{ADAPTED}WAKEUP_PREEMPTION\n{BEFORE}{ADAPTED}2\n{BEFORE}");
    assert_eq!(output.stdout, expected, "{output:?}");
    let restored = "suppress: preempt restored: there ";
    assert!(output.stderr.contains(restored), "{output:?}");
    let again = "as there was no real-time task for 1 s";
    assert!(output.stderr.contains(again), "{output:?}");
    assert!(output.stderr.contains("adapting took "), "{output:?}");
}

/// The number of pages freed at once is limited while there is a real-time task, whatever happens
/// to the knobs that serve ordinary tasks. After a SIGKILL it is restored.
#[test]
fn page_batches_stay_small_while_there_is_a_real_time_task() {
    for mechanisms in ["suppress,mode", "transparent,inherit,suppress,mode"] {
        let output = in_a_guest(&format!(
            "pages() {{ cat /proc/sys/vm/percpu_pagelist_high_fraction; }}
            /latlab adapt --mechanisms {mechanisms} --dry-run | grep pagelist
            /latlab adapt --mechanisms {mechanisms} & daemon=$!; sleep 0.7; pages
            /latlab exec --fifo 5 -- /bin/sh -c \
              '/bin/sleep 0.1; cat /proc/sys/vm/percpu_pagelist_high_fraction'
            sleep 0.5; pages; sleep 1; pages
            /latlab exec --fifo 5 -- /bin/sleep 0.2
            kill -KILL $daemon; wait $daemon; pages; /latlab adapt --restore > /dev/null; pages"
        ));
        let (dry, rest) = output.stdout.split_once('\n').expect("the dry run prints a line");
        let expected = "mode: pagelist_high_fraction (/proc/sys/vm/percpu_pagelist_high_fraction) \
                        would go from 0 to 1000000 while there are real-time tasks: the kernel ";
        assert!(dry.starts_with(expected), "{output:?}");
        assert_eq!(rest, "0\n1000000\n1000000\n0\n1000000\n0\n", "{output:?}");
        let restored = "mode: pagelist_high_fraction restored: there was no real-time task for";
        assert!(output.stderr.contains(restored), "{output:?}");
    }
}

/// Each task starts as soon as the one before has ended.
#[test]
fn knobs_are_right_after_many_short_real_time_tasks() {
    let output = in_a_guest(
        "/latlab adapt --mechanisms suppress,mode & daemon=$!; sleep 0.5\n\
         n=0; while [ $n -lt 30 ]; do /latlab exec --rr 3 -- /bin/sleep 0.05; n=$((n+1)); done\n\
         knobs; sleep 1.5; knobs; kill -TERM $daemon; wait $daemon; knobs",
    );
    assert_eq!(output.stdout, format!("{BEFORE}{ADAPTED}{BEFORE}"), "{output:?}");
    let turned = output.stderr.matches("preempt goes from full to lazy").count();
    assert_eq!(turned, 2, "knobs must not flap: {output:?}");
}

/// Returns the time of the repetitions in seconds and the number of context switches.
fn cost(records: &[Record]) -> (f64, f64) {
    let figure = |record, name| figure(record, name).expect("context switches are counted");
    let switches = ["voluntary context switches", "involuntary context switches"];
    let switches = |record| switches.map(|name| figure(record, name)).iter().sum::<f64>();
    let time = |record: &Record| record.series[0].max.as_secs_f64();
    (records.iter().map(time).sum(), records.iter().map(switches).sum())
}

/// Tasks that sleep often keep their share beside tasks that compute and send without a pause: at
/// least four fifths of the requests (section 4.2 of Seo et al. 2009, heavy load with tbench).
#[test]
fn netbench_keeps_its_requests_beside_computing_loads_when_adapted() {
    let words =
        "run realfeel --load netbench --load cpu --load download --on lab:rt --for 500ms --json";
    let answered = |adapt| latlab(&format!("{words}{adapt}")).record().work[0].done;
    let (without, adapted) = (answered(""), answered(" --adapt"));
    assert!(5 * adapted >= 4 * without, "{adapted} of {without}");
}

/// Figures 2 and 7 of Seo et al. 2009: the cost of full preemption, and how much adapting recovers.
#[test]
fn hackbench_adapted_takes_less_time_and_fewer_switches() {
    // With fewer loops, start and exit of the tasks are more of the time: adapted it takes 0.64 of it with 50
    // loops and 0.88 with 20. The order in which the tasks run differs with each build of latlab, and with it
    // the time without adapting, so that one seed gave 0.64, 0.69 and 0.86 with three builds: there are two
    // seeds, and the time need only be less (a limit of 0.85 failed). The switches show that adapting works.
    let words = "run hackbench:groups=5,loops=50 --on lab:rt --warm-up 0 --count 1 --json";
    let run = |seed, adapt| latlab(&format!("{words} --seed {seed}{adapt}")).record();
    let (without, adapted) =
        ([1, 2].map(|seed| run(seed, "")), [1, 2].map(|seed| run(seed, " --adapt")));
    let ((time, switches), (less, fewer)) = (cost(&without), cost(&adapted));
    let [adapted, _] = adapted;
    assert!(less < time, "{less} s of {time} s");
    assert!(fewer <= 0.2 * switches, "{fewer} of {switches}");
    assert!(adapted.plan.adapt.contains(&"suppress".to_owned()));
    assert!(adapted.changes.iter().all(|change| change.restored), "{:?}", adapted.changes);
    let is_changed = |name: &str| adapted.changes.iter().any(|change| change.knob == name);
    let all = ["preempt", "base_slice", "wakeup_preemption", "irq/9-acpi"];
    assert!(all.into_iter().all(is_changed), "{:?}", adapted.changes);
    let cyclic = latlab("run cyclic --on lab:rt --count 100 --json --adapt=mode,suppress").record();
    assert_eq!(cyclic.plan.adapt, ["mode", "suppress"]);
    let values: Vec<&str> = cyclic.changes.iter().map(|change| change.new.as_str()).collect();
    assert!(cyclic.changes.iter().all(|change| change.restored), "{values:?}");
}
