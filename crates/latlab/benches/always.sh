#!/usr/bin/env bash
# The flight recorder beside hackbench: its memory, its CPU time, that of its BPF programs for 100 000
# switches a second, and what it lost. hackbench gets QUOTA percent of a CPU.
# Usage: always.sh [MINUTES]  (default: 60); needs root, rt-tests and a cpu controller; LATLAB and QUOTA
# are read from the environment.
set -euo pipefail
cd "$(dirname "$0")/../../.."
latlab=${LATLAB:-dist/latlab}
minutes=${1:-60}
out=$(mktemp -d)

# A group of control groups v1 or v2 whose tasks get QUOTA percent of a CPU.
group=/sys/fs/cgroup/cpu/always-$$
[ -d /sys/fs/cgroup/cpu ] || group=/sys/fs/cgroup/always-$$
mkdir "$group"
quota=$((${QUOTA:-30} * 1000))
if [ -e "$group/cpu.max" ]; then echo "$quota 100000" >"$group/cpu.max"; else echo $quota >"$group/cpu.cfs_quota_us"; fi

counts=$(sysctl -n kernel.bpf_stats_enabled)
restore() {
    sysctl -q kernel.bpf_stats_enabled="$counts"
    kill "${load:-}" "${watched:-}" "${recorder:-}" 2>/dev/null || true
    wait 2>/dev/null || true
    # The last hackbench ends by itself.
    for ((try = 0; try < 20; try++)); do rmdir "$group" 2>/dev/null && break; sleep 1; done
    rm -rf "$out"
}
trap restore EXIT

(echo $BASHPID >"$group/cgroup.procs"; while :; do hackbench -g 1 -f 10 -l 20000 -s 8 -T >/dev/null; done) &
load=$!
cyclictest -q -p 80 -i 10000 >/dev/null &
watched=$!
"$latlab" explain --always --above 100us --out "$out/late" --keep 4MiB >"$out/lines" 2>"$out/said" &
recorder=$!
sleep 10

# Nanoseconds in BPF programs, and switches of all tasks. Other descriptors come and go meanwhile.
taken() { cat /proc/$recorder/fdinfo/* 2>/dev/null | awk '/^run_time_ns/ { sum += $2 } END { print sum }'; }
switches() { awk '/^ctxt/ { print $2 }' /proc/stat; }

echo "minute  resident KiB  CPU time s  switches/s  BPF, % of a CPU for 100 000 switches a second"
for ((minute = 0; minute <= minutes; minute++)); do
    if ((minute % 5 == 2)); then
        sysctl -q kernel.bpf_stats_enabled=1
        ns=$(taken) n=$(switches)
        sleep 10
        ns=$(($(taken) - ns)) n=$(($(switches) - n))
        sysctl -q kernel.bpf_stats_enabled="$counts"
        awk -v minute=$minute -v ns=$ns -v n=$n -v ticks="$(getconf CLK_TCK)" \
            -v rss="$(awk '/^VmRSS/ { print $2 }' /proc/$recorder/status)" '
            { printf "%6d  %12d  %10.2f  %10d  %.2f\n", minute, rss, ($14 + $15) / ticks, n / 10, ns / n / 100 }' \
            /proc/$recorder/stat
        sleep 50
    else
        sleep 60
    fi
done
kill -TERM $recorder
wait $recorder || true
recorder=
echo "$(wc -l <"$out/lines") late wake-ups, $(cat "$out"/late/* | wc -c) bytes of records; at the end it said:"
cat "$out/said"
