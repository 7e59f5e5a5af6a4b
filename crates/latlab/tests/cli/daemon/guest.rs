//! The daemon on real kernels, whose knobs are real.

use crate::program::{Said, command, run};

/// A script in a guest with a PREEMPT_RT kernel, where `/latlab` is this program. `snapshot` says
/// how all knobs stand that it could turn.
fn in_a_guest(script: &str) -> Said {
    let tools = "--with /bin/sleep --with /bin/cat --with /bin/sh --with /usr/bin/setpriv";
    let mut command = command(&format!("exec --on lab:rt {tools} -- sh -c"));
    let snapshot = "\
        snapshot() { cat /sys/kernel/debug/sched/preempt /sys/kernel/debug/sched/features
        for task in /proc/[0-9]*; do
          read -r stat < $task/stat
          case \"$stat\" in *' (irq/'*|*' (ktimers/'*|*' (ksoftirqd/'*)
            set -- $stat; echo $2 ${40} ${41};;
          esac
        done; }\n";
    run(command.arg(format!("{snapshot}{script}")))
}

/// Killed after 0, 10, … 490 ms, from before it turns anything to long after.
#[test]
fn whenever_it_is_killed_restoring_leaves_everything_as_it_was() {
    let said = in_a_guest(
        "before=$(snapshot); kills=0; turned=0
        while [ $kills -lt 50 ]; do
          /latlab adapt --mechanisms selective,suppress,mode 2> /dev/null & daemon=$!
          sleep 0.$((kills / 10))$((kills % 10)); kill -KILL $daemon; wait $daemon
          [ \"$(snapshot)\" = \"$before\" ] || turned=$((turned + 1))
          /latlab adapt --restore > /dev/null || echo not restored
          [ \"$(snapshot)\" = \"$before\" ] || { echo differs after $kills; snapshot; }
          kills=$((kills + 1))
        done; echo $turned; /latlab adapt --restore",
    );
    let (turned, rest) = said.stdout.split_once('\n').expect("it counts");
    assert_eq!(rest, "nothing was left turned\n", "{said:?}");
    let turned: u32 = turned.parse().unwrap_or_else(|e| panic!("{e}: {said:?}"));
    assert!((10..50).contains(&turned), "killed before and after: {said:?}");
}
