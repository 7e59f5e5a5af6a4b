#!/usr/bin/env bash
# latlab explain beside rtla timerlat, rtla osnoise and perf sched, in the same guests: what each names
# for each injected cause, and what each adds to a wake-up, in instructions.
# Usage: explain-peers.sh [names|cost]…  (default: both); PROFILES, CAUSES and KEEP=DIR (for the raw
# output) are read from the environment. It needs rtla and perf (Debian: rtla, linux-perf, those of
# bookworm-backports for the analysis after rtla's -a), and busybox-static; TOOLS is their folder.
set -euo pipefail
cd "$(dirname "$0")/../../.."
latlab=$(realpath "${LATLAB:-dist/latlab}")
tools=${TOOLS:-/usr/bin}
out=${KEEP:-$(mktemp -d)}
profiles=${PROFILES:-rt v7.3-rt}
causes=${CAUSES:-none interrupts-off preemption-off raw-spinlock timer-callback softirq interrupt higher-priority equal-priority page-fault}
mkdir -p "$out"

source crates/latlab/benches/guest.sh

# Runs a shell script in a guest, with the tools and these files.
with_tools() { # PROFILE SCRIPT [FILE]…
    guest "$@" "$tools/rtla" "$tools/perf"
}

# Each cause of inject, 300 us each 10 ms, all in one guest for each profile. timerlat's thread has a
# lower priority than the delaying task (91), and a period of 1.007 ms, so that it meets some delays.
names() {
    for profile in $profiles; do
        driver=$(module "$profile")
        script=
        for cause in $causes; do
            "$latlab" explain "inject:cause=$cause,time=300us" --traced --count 20 --above 150us \
                --on "lab:$profile" >"$out/$profile.$cause.latlab" 2>&1 || true
            inject="$latlab run inject:cause=$cause,time=300us --warm-up 0 --json --count"
            script+="
                echo == $cause timerlat; $inject 900 >/dev/null 2>&1 & $box sleep 0.5
                $tools/rtla timerlat top -k -c 0 -P f:90 -p 1007 -q -d 2s -a 150; $box kill -9 \$!; wait
                echo == $cause osnoise; $inject 900 >/dev/null 2>&1 & $box sleep 0.5
                $tools/rtla osnoise top -c 0 -P f:1 -q -d 2s -p 500000 -r 450000; $box kill -9 \$!; wait
                echo == $cause perf sched
                $tools/perf sched record -q -o /tmp/data -- $inject 20 >/dev/null 2>&1
                $tools/perf sched -i /tmp/data timehist 2>/dev/null | $box grep -B2 ' inject/0' | $box tail -9"
        done
        with_tools "$profile" "${driver:+$box insmod $driver;}$script" $driver >"$out/$profile.peers"
    done
}

# Median of cyclic, in instructions: alone, explained, and beside each peer.
cost() {
    p50() { sed -n 's/^ *"p50": \([0-9]*\).*/\1/p' | head -1; }
    for profile in $profiles; do
        cyclic="$latlab run cyclic --count 500 --json"
        echo "$profile alone $(with_tools "$profile" "$cyclic" | p50)"
        echo "$profile explained $($latlab explain --traced cyclic --count 500 --on "lab:$profile" --json 2>/dev/null | p50)"
        echo "$profile perf-sched $(with_tools "$profile" "$tools/perf sched record -q -o /tmp/data -- $cyclic" | p50)"
        # osnoise keeps the CPU busy: compare it with a load that does.
        echo "$profile busy $("$latlab" run cyclic --load cpu:busy=900ms,every=1s,policy=fifo,priority=1 --count 500 --on "lab:$profile" --json 2>/dev/null | p50)"
        echo "$profile osnoise $(with_tools "$profile" "$tools/rtla osnoise hist -c 0 -P f:1 -d 60s -r 900000 >/dev/null & $box sleep 6; $cyclic" | p50)"
        echo "$profile timerlat-beside $(with_tools "$profile" "$tools/rtla timerlat hist -k -c 0 -P f:80 -d 60s >/dev/null & $box sleep 6; $cyclic" | p50)"
        with_tools "$profile" "$tools/rtla timerlat hist -n -c 0 -P f:90 -d 2s -b 100 -E 9999" >"$out/$profile.timerlat"
        with_tools "$profile" "$tools/rtla timerlat hist -k -n -c 0 -P f:90 -d 2s -b 100 -E 9999" >"$out/$profile.timerlat-k"
        tail -n 6 "$out/$profile.timerlat"; tail -n 6 "$out/$profile.timerlat-k"
    done
}

for part in "${@:-names cost}"; do for one in $part; do $one; done; done
