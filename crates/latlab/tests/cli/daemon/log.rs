//! The log of observations and decisions, and its replay.

use super::{command, folder, in_namespaces, root, run};
use std::fs;

#[test]
fn log_of_running_daemon_is_untouched_by_a_refused_one() {
    if !root() {
        return;
    }
    let folder = folder();
    let script = "\
        \"$program\" adapt --mechanisms suppress --log \"$folder/log\" 2> /dev/null & daemon=$!; begun
        latlab adapt --mechanisms suppress --log \"$folder/log\"; echo $?
        kill $daemon; wait $daemon; echo $?";
    let output = in_namespaces(folder.path(), script);
    assert_eq!(output.stdout, "2\n0\n", "{output:?}");
    assert!(output.stderr.contains("adapts this machine: end that one first"), "{output:?}");
    let text = fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(text.matches("{\"began\":{").count(), 1, "{text}");
}

#[test]
fn replay_of_log_repeats_its_decisions() {
    if !root() {
        return;
    }
    let folder = folder();
    let script = "\
        latlab adapt --mechanisms suppress,mode --log \"$folder/log\" --for 1s 2> /dev/null
        \"$program\" adapt --mechanisms suppress --log \"$folder/log\" 2> /dev/null & daemon=$!; begun
        echo WAKEUP_PREEMPTION > /sys/kernel/debug/sched/features
        until grep -q 'something else changed' \"$folder/log\"; do sleep 0.02; done
        kill $daemon; wait $daemon; echo $?";
    let output = in_namespaces(folder.path(), script);
    assert_eq!(output.stdout, "0\n", "{output:?}");
    let path = folder.path().join("log");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("{\"began\":{").count(), 2, "the log is appended to: {text}");
    let replayed = run(command("adapt --replay").arg(&path));
    assert_eq!(replayed.code(), Some(0), "{replayed:?}");
    assert!(replayed.stdout.ends_with(" decisions: all decisions identical\n"), "{replayed:?}");
    assert!(text.contains("something else changed it from 0 to 1"), "{text}");

    fs::write(&path, text.replacen("\"to\":\"lazy\"", "\"to\":\"none\"", 1)).unwrap();
    let place = format!("{}, line 2: logged: suppress: preempt goes ", path.display());
    let replayed = run(command("adapt --replay").arg(&path));
    replayed.assert_refused(
        1,
        &[&place, "to none", "replayed: suppress: preempt goes from full to lazy"],
    );

    fs::write(&path, format!("{text}{{\"decided")).unwrap();
    run(command("adapt --replay").arg(&path))
        .assert_refused(2, &["not a line of a latlab adapt log"]);
    fs::write(&path, "{\"again\":5}\n").unwrap();
    let why = "the log does not begin with the mechanisms at work";
    run(command("adapt --replay").arg(&path)).assert_refused(1, &[why]);
}
