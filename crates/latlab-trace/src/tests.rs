//! Scenes as ftrace prints them, read and cut into windows.

use crate::Trace;
use latlab_core::explain::{EventKind, InterruptedContext, Line, Window};
use latlab_core::plan::Watched;
use latlab_core::time::Nanos;
use proptest::prelude::*;

/// A task `motor` of priority 60 is woken by its timer, which was due at 1.000100, while `hog` of priority 90 has the CPU.
const SCENE: &str = "\
# tracer: nop
          <idle>-0       [000] d..2.  1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=motor next_pid=7 next_prio=39
           motor-7       [000] d..1.  1.000010: hrtimer_start: hrtimer=00000000000000aa function=hrtimer_wakeup expires=9000100000 softexpires=9000100000 mode=ABS
           motor-7       [000] d..2.  1.000020: sched_switch: prev_comm=motor prev_pid=7 prev_prio=39 prev_state=S ==> next_comm=hog next_pid=8 next_prio=9
             hog-8       [000] d.h..  1.000103: local_timer_entry: vector=236
             hog-8       [000] d.h..  1.000104: hrtimer_expire_entry: hrtimer=00000000000000aa function=hrtimer_wakeup now=9000103000
             hog-8       [000] d.h1.  1.000105: sched_waking: comm=motor pid=7 prio=39 target_cpu=000
             hog-8       [000] d.h2.  1.000106: sched_wakeup: comm=motor pid=7 prio=39 target_cpu=000
             hog-8       [000] d.h..  1.000107: hrtimer_expire_exit: hrtimer=00000000000000aa
             hog-8       [000] d.h..  1.000108: local_timer_exit: vector=236
             hog-8       [000] d..2.  1.003000: sched_switch: prev_comm=hog prev_pid=8 prev_prio=9 prev_state=S ==> next_comm=motor next_pid=7 next_prio=39
";

fn read(text: &str) -> Trace {
    let mut trace = Trace::new(None);
    text.lines().for_each(|line| trace.expect(line));
    text.lines().for_each(|line| trace.read(line));
    trace.end();
    trace
}

fn only(text: &str) -> Window {
    let mut windows = read(text).take();
    assert_eq!(windows.len(), 1, "{windows:?}");
    windows.remove(0)
}

#[test]
fn wake_up_begins_when_its_timer_was_due() {
    let window = only(SCENE);
    // The offset of the clocks is known to 1 us: from reading the timer's clock to the event.
    assert_eq!((window.due, window.expiry), (Nanos(1_000_101_000), Nanos(1_000_101_000)));
    assert_eq!((window.waking, window.switched), (Nanos(1_000_105_000), Nanos(1_003_000_000)));
    let (task, waker) = (window.task, window.waker);
    assert_eq!((task.pid, task.prio, waker.pid, waker.prio), (7, 39, 8, 9));
    assert!(!window.torn && window.lacks_interrupts, "there are no softirqs");
    let kinds: Vec<EventKind> = window.events.iter().map(|event| event.kind).collect();
    let context = InterruptedContext::default();
    let timer = EventKind::Interrupt { line: Line::Timer, context };
    assert!(kinds.contains(&timer) && kinds.contains(&EventKind::InterruptEnd), "{kinds:?}");
}

#[test]
fn plugins_of_trace_cmd_print_the_same() {
    let text = SCENE
        .replace("prev_comm=hog prev_pid=8 prev_prio=9 prev_state=S ==> next_comm=motor next_pid=7 next_prio=39", "hog:8 [9] S ==> motor:7 [39]")
        .replace("comm=motor pid=7 prio=39 target_cpu=000", "motor:7 [39] CPU:000");
    assert_eq!(only(&text), only(SCENE));
}

#[test]
fn quoted_mail_is_the_same() {
    let quoted: String =
        SCENE.lines().map(|line| format!("> {}\r\n", line.replace("  ", " \u{a0}"))).collect();
    assert_eq!(only(&quoted), only(SCENE));
}

#[test]
fn without_events_of_timers_it_begins_when_it_is_woken() {
    let is_timer = |line: &&str| !line.contains("timer");
    let text: String = SCENE.lines().filter(is_timer).map(|line| line.to_owned() + "\n").collect();
    let window = only(&text);
    assert_eq!((window.due, window.waking), (Nanos(1_000_105_000), Nanos(1_000_105_000)));
    // The flags show that an interrupt woke it.
    let context = InterruptedContext::default();
    let unknown = EventKind::Interrupt { line: Line::Unknown, context };
    assert!(window.events.iter().any(|event| event.kind == unknown), "{window:?}");
    assert!(!window.was_woken_by_task());
}

#[test]
fn task_that_did_not_sleep_was_not_woken() {
    let text = SCENE
        .replace("prev_pid=7 prev_prio=39 prev_state=S", "prev_pid=7 prev_prio=39 prev_state=R");
    let woken_before =
        SCENE.lines().find(|line| line.contains("sched_waking")).expect("it is there");
    let before = woken_before.replace("hog-8", "motor-7").replace("1.000105", "1.000015");
    let text: String = text
        .lines()
        .filter(|line| !line.contains("sched_wak"))
        .flat_map(|line| {
            let after = line.contains("hrtimer_start").then(|| before.clone());
            std::iter::once(line.to_owned()).chain(after)
        })
        .map(|line| line + "\n")
        .collect();
    assert_eq!(read(&text).take(), []);
}

#[test]
fn lost_events_make_what_is_around_them_unknown() {
    let lost = SCENE.replace(
        "             hog-8       [000] d.h..  1.000107",
        "CPU:0 [LOST 12 EVENTS]\n             hog-8       [000] d.h..  1.000107",
    );
    let mut trace = read(&lost);
    assert_eq!(trace.lost(), 12);
    assert!(trace.take().iter().all(|window| window.torn));
    assert!(trace.limits().iter().any(|limit| limit.starts_with("CPU 0: 12 events lost")));
}

#[test]
fn real_time_tasks_are_preferred_and_others_are_found_by_name() {
    let ordinary = SCENE.replace("39", "120").replace("prio=9 ", "prio=120 ");
    assert_eq!(read(&ordinary).take().len(), 1);
    let both = format!("{ordinary}{}", SCENE.replace(" 1.00", " 2.00"));
    let mut trace = read(&both);
    assert_eq!((trace.watched(), trace.wake_ups()), (Some(&Watched::Realtime), 1));
    assert_eq!(trace.take().len(), 1);
    assert_eq!(trace.tasks(), ["motor"]);
}

#[test]
fn stacks_belong_to_the_event_before_on_their_cpu() {
    let text = SCENE.replace(
        "             hog-8       [000] d.h2.  1.000106",
        "             hog-8       [000] d.h1.  1.000105: <stack trace>\n => try_to_wake_up\n => hrtimer_interrupt\n \
         => asm_sysvec_apic_timer_interrupt\n => clear_page\n => vfs_write\n             hog-8       [000] d.h2.  1.000106",
    );
    let mut trace = read(&text);
    let window = trace.take().remove(0);
    let names = trace.new_names().expect("there are functions");
    let interrupted = window.events.iter().find_map(|event| match event.kind {
        EventKind::Interrupt { context, .. } => Some(context),
        _ => None,
    });
    let interrupted = interrupted.expect("there is one");
    assert!(interrupted.is_kernel());
    let function = |address| names.symbols.find(address).map(|symbol| symbol.function);
    assert_eq!(function(interrupted.ip), Some("clear_page"));
    let stack: Vec<_> = window.interrupted(interrupted).into_iter().map(function).collect();
    assert_eq!(stack, [Some("clear_page"), Some("vfs_write")]);
}

#[test]
fn timerlat_has_its_noise() {
    let text = "\
              sh-109404  [006] dnLh213   426.271247: #58634 context    irq timer_latency     12505 ns
              sh-109404  [006] dNLh313   426.271258: irq_noise: local_timer:236 start 426.271245463 duration 12553 ns
              sh-109404  [006] d...313   426.271263: thread_noise:       sh:109404 start 426.271245853 duration 4769 ns
      timerlat/6-79756   [006] .......   426.271264: #58634 context thread timer_latency     30328 ns
      timerlat/6-79756   [006] ....1..   426.271265: <stack trace>
  => timerlat_irq
  => asm_sysvec_apic_timer_interrupt
  => copy_page
";
    let window = only(text);
    assert_eq!((window.latency(), window.cpu), (Nanos(30_328), 6));
    assert_eq!((window.waker.pid, window.task.pid, window.task.prio), (109_404, 79_756, 4));
    let context = window.events.iter().find_map(|event| match event.kind {
        EventKind::Interrupt { line: Line::Timer, context } => Some(context),
        _ => None,
    });
    assert!(context.is_some_and(|context| context.is_kernel()) && !window.lacks_interrupts);
}

#[test]
fn trace_that_lacks_what_is_needed_says_so() {
    let lack = |text: &str| read(text).lack();
    assert_eq!(lack(SCENE), None);
    assert_eq!(lack("# tracer: nop\n"), Some("it has no event"));
    let without = |word: &str| -> String {
        SCENE
            .lines()
            .filter(|line| !line.contains(word))
            .map(|line| line.to_owned() + "\n")
            .collect()
    };
    assert!(lack(&without("sched_switch")).is_some_and(|why| why.contains("sched_switch")));
    assert!(lack(&without("sched_wak")).is_some_and(|why| why.contains("sched_waking")));
    let two = format!("{}{SCENE}rubbish\n", SCENE.replace(" 1.00", " 5.00"));
    let trace = read(&two);
    assert!(trace.level().contains("level 1 of 4"), "{}", trace.level());
    let limits = trace.limits();
    for part in ["time goes back", "lines are no events", "no irq_handler, softirq events", "1 us"]
    {
        assert!(limits.iter().any(|limit| limit.contains(part)), "{part}: {limits:?}");
    }
}

proptest! {
    #[test]
    fn windows_are_in_order_whatever_lines_are_missing_or_exchanged(
        lines in proptest::collection::vec(0..SCENE.lines().count(), 0..60),
    ) {
        let all: Vec<&str> = SCENE.lines().collect();
        let text: String = lines.iter().map(|nth| all[*nth].to_owned() + "\n").collect();
        for window in read(&text).take() {
            prop_assert!(window.due <= window.waking && window.waking <= window.switched, "{:?}", window);
            prop_assert!(window.events.is_sorted_by_key(|event| event.at));
        }
    }
}
