#!/usr/bin/env bash
# latlab explain beside rtla timerlat, rtla osnoise and perf sched, in the same guests: what each names
# for each injected cause, and what each adds to a wake-up, in instructions.
# Usage: explain-peers.sh [names|cost]…  (default: both); PROFILES, CAUSES and KEEP=DIR (for the raw
# output) are read from the environment. It needs rtla and perf (Debian: rtla, linux-perf, those of
# bookworm-backports for the analysis after rtla's -a), and busybox-static; TOOLS is their folder.
set -euo pipefail
cd "$(dirname "$0")/../../.."
latlab=${LATLAB:-dist/latlab}
tools=${TOOLS:-/usr/bin}
out=${KEEP:-$(mktemp -d)}
profiles=${PROFILES:-rt v7.3-rt}
causes=${CAUSES:-none interrupts-off preemption-off raw-spinlock timer-callback softirq interrupt higher-priority equal-priority page-fault}
box=$(command -v busybox)
mkdir -p "$out"

# Runs a shell script in a guest, with the tools; with the test driver's module if it is given.
guest() { # PROFILE SCRIPT [MODULE]
    local load=
    [ -z "${3:-}" ] || load="$box insmod $3;"
    "$latlab" exec --limit 20min --on "lab:$1" --with "$tools/rtla" --with "$tools/perf" --with "$latlab" \
        --with /lib/x86_64-linux-gnu/libgcc_s.so.1 ${3:+--with "$3"} -- "$box" sh -c "$load $2" 2>&1 || true
}

# The driver's module for a profile; latlab builds it for the first injected cause. Nothing where it
# can't be built: causes that need it are missing then.
module() {
    "$latlab" run inject:cause=interrupts-off --count 1 --on "lab:$1" --json >"$out/first.json" 2>/dev/null || return 0
    local release
    release=$(sed -n 's/^ *"kernel": "\(.*\)",*$/\1/p' "$out/first.json" | head -1)
    # Of several, the newest: others are of other versions of latlab.
    ls -t $(grep -lae "vermagic=$release " "${XDG_CACHE_HOME:-$HOME/.cache}"/latlab/kernels/*/latlab-*.ko) | head -1
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
        guest "$profile" "$script" "$driver" >"$out/$profile.peers"
    done
}

# Median of cyclic, in instructions: alone, explained, and beside each peer.
cost() {
    p50() { sed -n 's/^ *"p50": \([0-9]*\).*/\1/p' | head -1; }
    for profile in $profiles; do
        cyclic="$latlab run cyclic --count 500 --json"
        echo "$profile alone $(guest "$profile" "$cyclic" | p50)"
        echo "$profile explained $($latlab explain --traced cyclic --count 500 --on "lab:$profile" --json 2>/dev/null | p50)"
        echo "$profile perf-sched $(guest "$profile" "$tools/perf sched record -q -o /tmp/data -- $cyclic" | p50)"
        # osnoise keeps the CPU busy: compare it with a load that does.
        echo "$profile busy $("$latlab" run cyclic --load cpu:busy=900ms,every=1s,policy=fifo,priority=1 --count 500 --on "lab:$profile" --json 2>/dev/null | p50)"
        echo "$profile osnoise $(guest "$profile" "$tools/rtla osnoise hist -c 0 -P f:1 -d 60s -r 900000 >/dev/null & $box sleep 6; $cyclic" | p50)"
        echo "$profile timerlat-beside $(guest "$profile" "$tools/rtla timerlat hist -k -c 0 -P f:80 -d 60s >/dev/null & $box sleep 6; $cyclic" | p50)"
        guest "$profile" "$tools/rtla timerlat hist -n -c 0 -P f:90 -d 2s -b 100 -E 9999" >"$out/$profile.timerlat"
        guest "$profile" "$tools/rtla timerlat hist -k -n -c 0 -P f:90 -d 2s -b 100 -E 9999" >"$out/$profile.timerlat-k"
        tail -n 6 "$out/$profile.timerlat"; tail -n 6 "$out/$profile.timerlat-k"
    done
}

for part in "${@:-names cost}"; do for one in $part; do $one; done; done
