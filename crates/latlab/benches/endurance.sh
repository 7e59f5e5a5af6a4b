#!/usr/bin/env bash
# Long runs of adapt and explain in guests. Prints the resident memory of both, 24 times, and their
# exit codes; ends with 1 where memory grows by more than 1 MiB after the first 24th, a command fails,
# periods are lost, or a knob stays changed.
# Usage: endurance.sh [idle|churn]…  (default: both)
#   idle: IDLE seconds (default 86400, a day) of instruction time on an idle machine
#   churn: CHURN seconds (default 7200) of instruction time on two CPUs, while CPU 1 goes offline and
#          online and the time of day is set
set -euo pipefail
cd "$(dirname "$0")/../../.."
latlab=$(realpath "${LATLAB:-dist/latlab}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Starts both commands; `disturb` runs 24 times.
guest='
policies() { for task in /proc/[0-9]*; do
    read -r stat 2>/dev/null <$task/stat || continue
    case "$stat" in *" (irq/"*|*" (ktimers/"*|*" (ksoftirqd/"*) set -- $stat; echo $2 ${40} ${41};; esac
done; cat /sys/kernel/debug/sched/preempt /sys/kernel/debug/sched/base_slice_ns; }
resident() { while read -r name size _; do [ $name = VmRSS: ] && echo $size; done </proc/$1/status; }
before=$(policies)
/latlab adapt --for ${seconds}s 2>/adapt.log & adapt=$!
sleep 1
/latlab explain cyclic:interval=100ms,priority=80 --cpus 0 --for ${seconds}s --above 100us --out /explain.json >/explain.log 2>&1 & explain=$!
n=0
while [ $n -lt 24 ]; do
    disturb
    n=$((n + 1))
    echo "$n adapt $(resident $adapt) explain $(resident $explain)"
done
wait $explain; echo "explain ended with $?"
wait $adapt; echo "adapt ended with $?"
[ "$(policies)" = "$before" ] && echo restored
cat /explain.log >&2; cat /adapt.log >&2
echo "record:"; cat /explain.json
'

# Runs both on a target, and judges what they print.
judge() {
    local name=$1 target=$2 seconds=$3 disturb=$4
    echo "$name: $seconds s on $target"
    "$latlab" exec --on "$target" --limit $((3 * seconds + 36000))s --with /bin/sh --with /bin/cat \
        --with /bin/sleep --with /bin/date -- sh -c \
        "seconds=$seconds; disturb() { $disturb; }; $guest" >"$work/out" 2>"$work/errors" ||
        { tail -20 "$work/errors"; exit 1; }
    sed '/^record:/,$d' "$work/out"
    sed '1,/^record:/d' "$work/out" >"$work/explain.json"
    python3 - "$work/out" "$work/explain.json" "$seconds" <<'JUDGE'
import json, sys
lines = open(sys.argv[1]).read().split("record:")[0].splitlines()
rows = [line.split() for line in lines if " adapt " in line and line[0].isdigit()]
growth = {name: int(rows[-2][at]) - int(rows[0][at]) for name, at in (("adapt", 2), ("explain", 4))}
record = json.load(open(sys.argv[2]))
counts = record["series"][0]["counts"]
periods, expected = counts["recorded"] + counts["missed"], int(sys.argv[3]) * 10
print("growth in KiB:", growth, "periods:", periods, "of", expected, "missed:", counts["missed"])
good = "restored" in lines and sum(line.endswith("ended with 0") for line in lines) == 2
sys.exit(not (good and max(growth.values()) <= 1024 and abs(periods - expected) <= 1))
JUDGE
}

idle() {
    local seconds=${IDLE:-86400}
    judge idle lab:rt "$seconds" "sleep $((seconds / 24 - 1))"
}

churn() {
    local seconds=${CHURN:-7200}
    cat >"$work/two.toml" <<'PROFILE'
summary = 'PREEMPT_RT with two CPUs'
paper = ''
cpus = 2
kernel = { package = 'linux-image-6.12-rt-amd64' }
PROFILE
    judge churn "lab:$work/two.toml" "$seconds" "
        sleep $((seconds / 48)); echo 0 >/sys/devices/system/cpu/cpu1/online; date -s 2030-01-01 >/dev/null
        sleep $((seconds / 48 - 1)); echo 1 >/sys/devices/system/cpu/cpu1/online; date -s 2027-06-01 >/dev/null"
}

[ $# != 0 ] || set -- idle churn
for part in "$@"; do $part; done
