//! Tests of faults that the protection of memory causes, and of memory that is not locked.

use super::*;

/// An access of the byte at this address, and whether its page is there, but may not be written.
fn access(script: &mut Script, address: u64, protection: bool) {
    let (stack_pointer, in_kernel, stack) = (0x7fff_0000_0000, false, Some(2));
    script.add(1, EventKind::Fault { address, stack_pointer, protection, in_kernel, stack });
}

/// A call that returns at once.
fn make(script: &mut Script, call: &'static str, first: u64) {
    script.call(call, [first, 0, 0, 0, 0, 0], Nanos(0));
    script.add(1, LEAVE);
}

/// Subject, number, and time of the longest of each breach of a rule.
fn found(thread: &ThreadReport, rule: Rule) -> Vec<(&str, u64, Nanos)> {
    let breaches = thread.breaches.iter().filter(|breach| breach.rule == rule);
    breaches.map(|breach| (breach.subject.as_str(), breach.count, breach.longest)).collect()
}

#[test]
fn fault_that_a_signal_handler_answers_is_no_missing_page() {
    // With and without the right to read.
    for protection in [false, true] {
        let thread = Script::new(None).cycles(|script, _| {
            access(script, 0x5000, protection);
            make(script, "mprotect", 0x5000);
            make(script, "rt_sigreturn", 0x5000);
        });
        let expected =
            [("protection fault", 100, Nanos(3 * US)), ("call of mprotect", 100, Nanos(US))];
        let mut breaches = found(&thread, Rule::Protection);
        breaches.sort_by_key(|(subject, ..)| std::cmp::Reverse(*subject));
        assert_eq!(breaches, expected);
        assert_eq!(thread.breaches.len(), 2, "{:?}", thread.breaches);
    }
}

#[test]
fn fault_without_an_end_is_a_missing_page_unless_its_signal_is_handled() {
    // Another signal is handled, and one of an access of another address.
    for address in [0, 0x9000] {
        let thread = Script::new(None).cycles(|script, _| {
            access(script, 0x5000, false);
            make(script, "rt_sigreturn", address);
        });
        assert_eq!(found(&thread, Rule::Fault), [("page fault", 100, Nanos(0))]);
        assert_eq!(found(&thread, Rule::Protection), []);
    }
    let many = Script::new(None).cycles(|script, _| {
        (0..40).for_each(|page| access(script, page << 12, false));
        make(script, "rt_sigreturn", 39 << 12);
    });
    assert_eq!(found(&many, Rule::Fault), [("page fault", 3900, Nanos(0))]);
    assert_eq!(found(&many, Rule::Protection).len(), 1);
}

#[test]
fn kinds_of_faults_have_their_own_remedies() {
    let thread = Script::new(None).cycles(|script, _| {
        access(script, 0x5000, false);
        script.add(2, EventKind::Faulted { major: false });
        access(script, 0x5000, true);
        script.add(2, EventKind::Faulted { major: false });
        access(script, 0x5000, false);
        make(script, "mprotect", 0x5000);
        make(script, "rt_sigreturn", 0x5000);
    });
    let text = |subject: &str| {
        let breach = thread.breaches.iter().find(|breach| breach.subject == subject);
        let breach = breach.unwrap_or_else(|| panic!("{subject}: {:?}", thread.breaches));
        format!("{} {}", breach.meaning(), breach.remedy())
    };
    assert!(text("page fault").contains("had to provide a page"));
    assert!(text("page fault (copy on write)").contains("had to copy it"));
    assert!(text("protection fault").contains("no page was missing"));
    let changed = text("call of mprotect");
    assert!(changed.contains("changed the protection") && !changed.contains("malloc"));
}

#[test]
fn memory_that_was_mapped_before_the_lock_has_to_be_locked() {
    let memory =
        |locked, has_locked_program| Memory { locked, unlocked: 1 << 20, has_locked_program };
    let page = "only 4 KiB of 1028 KiB of memory are locked";
    for (locks, memory, expected) in [
        ((false, false), None, Some((Rule::NotLocked, "no memory is locked"))),
        ((false, true), Some(memory(4096, false)), Some((Rule::NotLocked, page))),
        ((true, true), Some(memory(4096, false)), Some((Rule::NotLocked, page))),
        (
            (false, true),
            Some(memory(4096, true)),
            Some((Rule::LockFuture, "later mappings are not locked")),
        ),
        ((true, true), Some(memory(4096, true)), None),
        ((true, true), None, None),
    ] {
        let mut script = Script::new(None);
        for cycle in 1..=10 {
            let (future, any) = locks;
            let (call, arguments) = ("clock_nanosleep", [1, 1, 0, 0, 0, 0]);
            let (time, file, stack) = (Nanos(cycle * PERIOD * US), None, None);
            let locks = Locks { future, any };
            script.add(
                1,
                EventKind::Enter {
                    call,
                    arguments,
                    time,
                    file,
                    lock: Lock::default(),
                    locks,
                    stack,
                },
            );
            script.sleep(cycle * PERIOD, (120, WakeContext::Interrupt));
            script.add(1, LEAVE);
            if cycle == 1 {
                assert!(script.judge.cyclic_processes().is_empty(), "it is starting");
            }
        }
        assert!(script.judge.cyclic_processes().contains(&6));
        if let Some(memory) = memory {
            script.judge.set_memory(6, memory);
        }
        // What is known of a thread that has ended stays.
        script.add(1, EventKind::Exit { last: true });
        let report = script.judge.report(&mut |_, _| Vec::new(), &|_| false);
        let breaches = report.threads[0].breaches.iter();
        let found: Vec<_> = breaches.map(|one| (one.rule, one.subject.as_str())).collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{locks:?} {memory:?}");
    }
}
