//! The laboratory gives the same bytes in guests restored from a snapshot and booted, whatever is measured.

use crate::program::latlab;

/// Asserts that a plan gives the same bytes in guests restored from a snapshot and booted.
fn assert_repeats(words: &str) {
    let [restored, booted] =
        ["--fresh", "--fresh --cold"].map(|how| latlab(&format!("{words} {how}")));
    assert_eq!(restored.code(), Some(0), "{restored:?}");
    assert_eq!(restored.stdout, booted.stdout, "{words}");
}

macro_rules! repeat {
    ($($name:ident: $words:expr,)*) => {
        $(#[test] fn $name() { assert_repeats($words); })*
    };
}

repeat! {
    adapted_hackbench_repeats:
        "run hackbench:groups=1 --on lab:rt --warm-up 0 --count 1 --json --adapt",
    inherited_priority_repeats_with_irq_threads:
        "run realfeel:device=hpet,frequency=128,priority=80 \
         --load cpu:busy=400ms,every=1s,policy=fifo,priority=70 --for 100ms --warm-up 300ms --json \
         --adapt --on lab:rt --on lab:threadirqs",
    loads_of_devices_repeat:
        "run cyclic --on lab:standard --for 20ms --json --load caps-lock --load console-switch \
         --load interrupts --load ping --load download --load io:size=1MiB \
         --load wilshire-disk:size=1MiB --load page-cache:size=1MiB",
    player_repeats:
        "run player player:period=32 player:device=alsa --load fork --for 50ms --on lab:rt \
         --on lab:standard --json",
    realfeel_repeats_under_hackbench:
        "run realfeel realfeel:device=hpet --load hackbench --on lab:rt --for 50ms --json",
    realfeel_repeats_beside_a_task_of_higher_priority:
        "run realfeel:device=hpet,frequency=128,priority=80 --for 100ms --json \
         --load cpu:busy=400ms,every=1s,policy=fifo,priority=70 --on lab:rt --on lab:threadirqs",
    rhealstone_repeats:
        "run rhealstone:figure=mean signal:tasks=3 mutex --on lab:rt --on lab:low-latency \
         --on lab:preemptible --count 4 --warm-up 5ms --json",
    scans_repeat:
        "scan munmap:4MiB populate:4MiB --points 3 --resolution 1ms --json --on lab:utime \
         --on lab:preemptible-hr",
    schedule_repeats:
        "run schedule:0/10/40/160 --count 16 --json --on lab:preemptible",
}
