//! Machines made bad in ways whose remedy is known, which `explain --prove` has to find. It must
//! claim no effect of anything else, and leave all as it was.

use crate::program::{Output, latlab};
use latlab_core::proof::{Effect, Outcome, Proof, Proofs};

/// Runs `explain --prove` with these words in a guest, and returns its output.
fn prove(words: &str) -> Output {
    latlab(&format!("explain --prove --json {words}"))
}

/// The proofs of a scene. Every change that was tried is undone.
fn proofs(output: &Output) -> Proofs {
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let kept: Vec<_> = record.changes.iter().filter(|change| !change.restored).collect();
    assert!(kept.is_empty(), "{kept:?}");
    record.proofs.unwrap_or_else(|| panic!("no proofs: {}", output.stderr))
}

fn helping(proofs: &Proofs) -> Vec<String> {
    proofs.tried.iter().filter(|proof| proof.helped()).map(|proof| proof.turn.words()).collect()
}

/// Asserts that these remedies help, and that the worst sample is at most a `tenth` part of what it
/// was with the first of them.
fn assert_helping(words: &str, expected: &[&str]) {
    let output = prove(words);
    let proofs = proofs(&output);
    assert_eq!(helping(&proofs), expected, "{proofs:?}");
    assert!(worst_ratio(&proofs.tried[0]) < 0.1, "{proofs:?}");
    let kept = format!("{expected:?}");
    assert!(output.stderr.contains(expected[0]), "{kept}: {}", output.stderr);
}

/// The ratio of the worst sample with the remedy to that without it.
fn worst_ratio(proof: &Proof) -> f64 {
    let Outcome::Judged(judged) = &proof.outcome else { panic!("{proof:?}") };
    assert_eq!(judged.effect, Effect::Helped);
    judged.figures.iter().find(|figure| figure.name == "worst").expect("it is judged").ratio
}

/// A real-time load of higher priority that computes 2 ms of every 10 ms.
const RIVAL: &str = "--load cpu:size=16,busy=2ms,every=10ms,policy=fifo,priority";

#[test]
fn low_priority_is_proven_to_be_the_cause() {
    let words = format!("cyclic:priority=10 {RIVAL}=50 --count 100 --on lab:rt");
    assert_helping(&words, &["FIFO priority 98"]);
}

/// There is no higher priority, so that nothing can be tried, and nothing is claimed.
#[test]
fn highest_priority_is_not_raised() {
    let output = prove(&format!("cyclic:priority=99 {RIVAL}=99 --count 100 --on lab:rt"));
    assert_eq!(output.code(), Some(3), "{output:?}");
    let proofs = output.record().proofs.expect("it says what was not tried");
    assert!(proofs.tried.is_empty(), "{proofs:?}");
    assert!(proofs.not_turned[0].contains("highest priority"), "{proofs:?}");
}

#[test]
fn voluntary_preemption_is_mended_by_full_preemption() {
    assert_helping("--load procfs --count 100 --on lab:rapid-reaction", &["preempt=full"]);
}

#[test]
fn missing_preemption_is_mended_by_full_preemption() {
    assert_helping("--load procfs --count 100 --on lab:utime", &["preempt=full"]);
}

/// Before Linux 6.12, the kernel stops all real-time tasks of a CPU for the rest of a period.
#[test]
fn throttling_is_mended_by_lifting_its_limit() {
    let words = "cyclic:priority=90 --set rt_runtime_us=500000 --load \
                 cpu:size=16,busy=800ms,every=1s,policy=fifo,priority=50 --for 3s --on lab:v6.1-rt";
    assert_helping(words, &["rt_runtime_us=-1"]);
}
