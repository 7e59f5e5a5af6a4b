//! Guests of two CPUs, in which the other CPU delays the measured one. QEMU runs the CPUs in turns, so
//! that only who did it on which CPU is asked, not for how long.

use crate::program::{command, run, two_cpus};
use latlab_core::record::Record;

/// Each wake-up on CPU 0, while threads of one process on both CPUs unmap memory and ask for barriers.
/// A lock that one thread takes again and again is hardly ever free in the turn of the other CPU: while
/// the recorder had such a lock, the run took minutes or did not end.
fn explained(profile: &str) -> Record {
    let mut explain = command("explain --traced --json --above 1us cyclic --load ipi --count 2000");
    let output = run(explain.args(["--cpus", "0", "--on"]).arg(format!("lab:{profile}")));
    assert_eq!(output.code(), Some(0), "{output:?}");
    output.record()
}

/// No CPU interrupts itself. In wall-clock time a busy host takes the CPUs for so long that the few
/// wake-ups of a run meet no shootdown.
#[test]
fn tlb_shootdown_is_named_with_the_task_and_the_cpu_that_asked_for_it() {
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    let profile = two_cpus(folder.path());
    let explained = explained(&profile).explained;
    let causes = explained.expect("it is explained").causes;
    let calls =
        causes.iter().filter(|share| share.culprit.starts_with("function call interrupt by"));
    let named: Vec<_> =
        calls.map(|call| (call.culprit.as_str(), call.function.as_deref())).collect();
    assert!(named.iter().all(|(culprit, _)| culprit.ends_with("on CPU 1")), "{named:?}");
    let shootdown = ("function call interrupt by load:ipi on CPU 1", Some("flush_tlb_func"));
    assert!(named.contains(&shootdown), "{causes:?}");
}
