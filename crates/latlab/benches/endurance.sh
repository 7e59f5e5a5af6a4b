#!/usr/bin/env bash
# Long runs of adapt and explain in guests with PREEMPT_RT. Prints the resident memory of both, 23 times;
# ends with 1 where memory grows by more than 1 MiB after the first 24th, a command fails, a period is
# not counted, a late wake-up is lost, or a knob stays changed.
# Usage: endurance.sh [idle|busy [SECONDS]]
#   idle  without a load, in instruction time (default: 86400, a day)
#   busy  under hackbench on two CPUs, in wall-clock time, while CPU 1 goes offline and comes back every
#         40 s and the time of day jumps an hour forth and back (default: 7200)
# $LOG keeps what the guest prints.
set -euo pipefail
cd "$(dirname "$0")/../../.."
latlab=$(realpath "${LATLAB:-dist/latlab}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=${LOG:-$work/log}

cat >"$work/busy.toml" <<'PROFILE'
summary = "PREEMPT_RT on two CPUs"
kernel = { package = "linux-image-6.12-rt-amd64" }
cpus = 2
memory = "1GiB"
PROFILE

# Starts both commands, and looks at them 23 times.
guest='
policies() { for task in /proc/[0-9]*; do
    read -r stat 2>/dev/null <$task/stat || continue
    case "$stat" in *" (irq/"*|*" (ktimers/"*|*" (ksoftirqd/"*) set -- $stat; echo $2 ${40} ${41};; esac
done; cat /sys/kernel/debug/sched/preempt /sys/kernel/debug/sched/base_slice_ns; }
resident() { while read -r name size _; do [ $name = VmRSS: ] && echo $size; done </proc/$1/status; }
uptime() { read -r up _ </proc/uptime; echo ${up%.*}; }
cpu1=/sys/devices/system/cpu/cpu1/online
disturb() {
    jump=3600 times=0
    while ! [ -e /end ]; do
        echo 0 >$cpu1 || return
        sleep 20
        echo 1 >$cpu1 || return
        date -s @$(($(date +%s) + jump)) >/dev/null || return
        jump=$((-jump)) times=$((times + 1))
        sleep 20
    done
    echo "disturbed $times times"
}
before=$(policies)
/latlab adapt --for ${seconds}s 2>/adapt.log & adapt=$!
sleep 1
/latlab explain cyclic:interval=100ms,priority=80 $load --cpus 0 --for ${seconds}s --above 100us --out /explain.json >/explain.log 2>&1 & explain=$!
[ -z "$load" ] || { disturb & disturb=$!; }
begin=$(uptime)
n=1
while [ $n -lt 24 ]; do
    sleep $((begin + n * seconds / 24 - $(uptime)))
    echo "$n adapt $(resident $adapt) explain $(resident $explain)"
    n=$((n + 1))
done
wait $explain; echo "explain ended with $?"
wait $adapt; echo "adapt ended with $?"
[ -z "$load" ] || { : >/end; wait $disturb; }
[ "$(policies)" = "$before" ] && echo restored
cat /explain.log >&2; cat /adapt.log >&2
echo "record:"; cat /explain.json
'

# Runs both on a target with a load, and judges what they print.
judge() {
    local target=$1 load=$2 seconds=$3
    echo "$seconds s on $target"
    "$latlab" exec --on "$target" --limit $((3 * seconds + 36000))s --with /bin/sh --with /bin/cat \
        --with /bin/date --with /bin/sleep -- sh -c "seconds=$seconds; load='$load'; $guest" \
        2>"$log.errors" | tee "$log" | sed -u '/^record:/,$d' || { tail -20 "$log.errors"; exit 1; }
    python3 - "$log" "$seconds" "${load:+disturbed}" <<'JUDGE'
import json, sys
printed, record = open(sys.argv[1]).read().split("record:\n")
lines = printed.splitlines()
rows = [line.split() for line in lines if " adapt " in line and line[0].isdigit()]
growth = {name: int(rows[-1][at]) - int(rows[0][at]) for name, at in (("adapt", 2), ("explain", 4))}
record = json.loads(record)
counts, explained = record["series"][0]["counts"], record["explained"]
periods, expected = counts["recorded"] + counts["missed"], int(sys.argv[2]) * 10
print("growth in KiB:", growth, "periods:", periods, "of", expected, "missed:", counts["missed"])
print("late:", explained["late"], *explained.get("missing", []), sep="\n  ")
lost = [line for line in explained.get("missing", []) if "wake-ups lost" in line or "without a" in line]
good = not lost and "restored" in lines and sum(line.endswith("ended with 0") for line in lines) == 2
disturbed = any(line.startswith(sys.argv[3]) for line in lines)
sys.exit(not (good and disturbed and max(growth.values()) <= 1024 and abs(periods - expected) <= 1))
JUDGE
}

case ${1:-idle} in
idle) judge lab:rt "" "${2:-86400}" ;;
busy) judge "vm:$work/busy.toml" "--load hackbench" "${2:-7200}" ;;
*) echo "endurance.sh: $1 is neither idle nor busy" >&2; exit 2 ;;
esac
