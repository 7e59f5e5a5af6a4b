//! Tests of paths from made-up traces.

use super::*;

const TRACE: &str = "\
sample 7 30 0
block 0xa0 400000 4
block 0xb0 ffffffff80001000 5
block 0xb1 ffffffff80002000 6 6c
block 0xc0 ffffffff80003000 10 1d 3n1 9n-1 10e
block 0xb2 ffffffff80002006 3 3l
run 0xa0 4 3
run 0xb0 5 1
run 0xb1 6 1
idle 5
run 0xc0 10 1
run 0xb2 3 1
run 0xa0 4 1
end
";

fn place(address: u64) -> Option<Location<'static>> {
    let functions = [
        (0xffff_ffff_8000_1000, "asm_sysvec_apic_timer_interrupt"),
        (0xffff_ffff_8000_2000, "hrtimer_interrupt"),
        (0xffff_ffff_8000_3000, "wake_up"),
    ];
    let (begin, function) = functions.into_iter().rfind(|(begin, _)| *begin <= address)?;
    Some(Location { function, offset: address - begin })
}

fn path(latency: u64) -> Path {
    let mut watched = Trace::read(TRACE).unwrap().remove(0);
    watched.latency = Nanos(latency);
    Path::of(&watched, place)
}

#[test]
fn steps_add_up_to_any_latency() {
    for latency in 1..60 {
        let path = path(latency);
        let steps: u64 = path.steps.iter().map(|step| step.instructions).sum();
        assert_eq!(steps + path.unseen.0, latency);
        assert_eq!(path.instructions() + path.idle.0 + path.unseen.0, latency);
    }
    assert_eq!((path(45).unseen, path(46).unseen), (Nanos(0), Nanos(1)));
}

#[test]
fn depth_rises_at_calls_and_falls_at_returns() {
    let path = path(37);
    let steps: Vec<_> =
        path.steps.iter().map(|s| (s.function.as_str(), s.instructions, s.depth)).collect();
    assert_eq!(
        steps,
        [
            (PROGRAM, 4, 0),
            ("asm_sysvec_apic_timer_interrupt", 5, 1),
            ("hrtimer_interrupt", 6, 1),
            (IDLE, 5, 2),
            ("wake_up", 10, 2),
            ("hrtimer_interrupt", 3, 2),
            // The functions that did not return here returned in another task.
            (PROGRAM, 4, 0),
        ]
    );
    assert_eq!(path.functions[0], Spent { function: "wake_up".to_owned(), instructions: 10 });
}

#[test]
fn disabled_sections_name_their_functions() {
    let held = path(37).held;
    let entry = "asm_sysvec_apic_timer_interrupt".to_owned();
    let wake_up = "wake_up".to_owned();
    // From the interrupt to `sti`, and from the counter's first instruction to its last.
    let (from, ns) = (Nanos(4), Nanos(26));
    assert_eq!(held[0], DisabledSection { what: Off::Interrupts, function: entry, from, ns });
    let (from, ns) = (Nanos(23), Nanos(6));
    assert_eq!(held[1], DisabledSection { what: Off::Preemption, function: wake_up, from, ns });
    assert_eq!(held.len(), 2);
}

/// With time before the trace, a section begins as long after the first step as without.
#[test]
fn disabled_sections_count_from_the_first_step() {
    let (whole, cut) = (path(45), path(55));
    assert_eq!((whole.unseen, cut.unseen), (Nanos(0), Nanos(10)));
    assert_eq!(whole.held, cut.held);
    let before: u64 = cut.steps.iter().map(|step| step.instructions).sum::<u64>() - 37 + 4;
    let first = cut.held.iter().find(|held| held.what == Off::Interrupts);
    assert_eq!(first.map(|held| held.from), Some(Nanos(before)));
}

#[test]
fn damaged_trace_is_refused_with_its_line() {
    let refused = |text: &str| Trace::read(text).unwrap_err().to_string();
    assert!(refused("run 0xa0 4 3\n").contains("line 1"), "{}", refused("run 0xa0 4 3\n"));
    assert!(refused("sample 1 2 3\nrun 0xa0 4 3\n").contains("line 2"));
    assert!(refused("sample 1 2\n").contains("'sample 1 2'"));
    assert!(refused("sample 1 2 0\nblock 0xa0 40 4 9q\nend\n").contains("line 2"));
    // Effects in another order than the instructions.
    assert!(refused("sample 1 2 0\nblock 0xa0 40 4 3d 2e\nend\n").contains("line 2"));
    assert!(refused("sample 1 2 0\nblock 0xa0 40 4 3n2147483648\nend\n").contains("line 2"));
}
