//! Tests of a knob with a file of each CPU, of which the kernel accepts values for some only.

use super::*;

/// The kernel has files for all CPUs that can exist, and refuses values for those that do not run.
#[test]
fn guard_sets_the_fair_server_of_each_cpu_that_is_online() {
    let runtime = |cpu| format!("sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
    let paths = [0, 1, 2, 3, 10].map(runtime);
    let mut files = vec![("sys/devices/system/cpu/online", "0-1,10\n")];
    files.extend(paths.iter().map(|path| (path.as_str(), "50000000\n")));
    let (_folder, root) = machine(&files);
    let values = || paths.each_ref().map(|path| value(&root, path));
    let on = "50000000";
    let mut guard = Guard::new(root.clone());
    guard.set("fair_server", "0", "for a test").unwrap();
    assert_eq!(values(), ["0", "0", on, on, "0"]);
    assert_eq!(guard.restore(), [change("fair_server", on, "0", true)]);
    assert_eq!(values(), [on; 5]);
    // Each file is restored, after a SIGKILL too.
    guard.set("fair_server", "10000000", "for a test").unwrap();
    killed(&root, guard);
    let said = Guard::recover(&root);
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(
        said.iter().all(|one| one.ends_with("is 50000000 again, no longer 10000000")),
        "{said:?}"
    );
    assert_eq!(values(), [on; 5]);
}

#[test]
fn guard_says_in_a_sentence_that_a_kernel_has_no_fair_server() {
    let (_folder, root) = machine(&[("sys/kernel/debug/sched/features", "PLACE_LAG\n")]);
    let error = Guard::new(root).set("fair_server", "0", "").unwrap_err().to_string();
    assert_eq!(
        error,
        "this machine has no fair_server: /sys/kernel/debug/sched/fair_server/cpu*/runtime is missing"
    );
}
