#!/usr/bin/env bash
# Throughput that adapting recovers while a real-time task runs: throughput probes together with
# realfeel, without and with `latlab adapt`, each in a latlab process of its own in one guest. Prints
# table rows with ratios; of several alternate pairs (on vm:, which has wall-clock time) the medians of
# the ratios. With a kernel without preemption as VANILLA, such as lab:utime, also the share of the
# cost of preemption that is recovered.
# Usage: [LATLAB=PROGRAM] [PAIRS=1] [LIMIT=1h] [VANILLA=lab:utime] adapt.sh lab:rt|vm:rt [PROBE…]
set -euo pipefail
latlab=$(realpath "${LATLAB:-$(dirname "$0")/../../../dist/latlab}")
on=${1:?which kernel: lab:rt or vm:rt}
shift
[ $# -gt 0 ] || set -- hackbench:groups=3 hackbench:groups=10 hackbench:groups=20 hackbench:groups=40 \
    netbench:clients=5 netbench:clients=10 netbench:clients=20 netbench:clients=40
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Runs realfeel and this probe in a guest of this target and prints both records. With a further
# argument, with `latlab adapt`.
measure() {
    local length="--count 1" target=$1
    shift
    [[ $1 = hackbench* ]] || length="--for 1s"
    local script="/latlab run realfeel:frequency=256 --for 1h --warm-up 0 --json > /tmp/realfeel & reader=\$!
        sleep 0.3; /latlab run $1 --warm-up 0 $length --json > /tmp/probe
        kill \$reader; wait \$reader; cat /tmp/realfeel; echo; cat /tmp/probe"
    if [ $# -gt 1 ]; then
        script="/latlab adapt --mechanisms transparent,inherit,suppress,mode > /dev/null & adapt=\$!; sleep 1
            $script; kill \$adapt; wait \$adapt"
    fi
    "$latlab" exec --limit "${LIMIT:-1h}" --on "$target" --with /bin/sh --with /bin/sleep --with /bin/cat -- \
        sh -c "$script" 2>"$work/errors" || { cat "$work/errors" >&2; exit 1; }
}

echo "| with realfeel | time or throughput | ratio | context switches | ratio | realfeel's worst |${VANILLA:+ recovered |}"
echo "| --- | --- | --- | --- | --- | --- |${VANILLA:+ --- |}"
for probe in "$@"; do
    for pair in $(seq "${PAIRS:-1}"); do
        measure "$on" "$probe" >"$work/$pair.without"
        measure "$on" "$probe" adapted >"$work/$pair.with"
        [ -z "${VANILLA:-}" ] || measure "$VANILLA" "$probe" >"$work/$pair.vanilla"
    done
    python3 - "$work" "$probe" "${PAIRS:-1}" <<'PYTHON'
import json, os, statistics, sys
folder, probe, pairs = sys.argv[1], sys.argv[2], int(sys.argv[3])
def found(pair, how):
    text, decoder = open(f"{folder}/{pair}.{how}").read().strip(), json.JSONDecoder()
    realfeel, end = decoder.raw_decode(text)
    record = json.loads(text[end:])
    value = lambda name: sum(f["value"] for f in record["figures"] if name in f["name"])
    time = probe.startswith("hackbench")
    done = record["series"][0]["max"] / 1e9 if time else value("throughput")
    return done, value("context switches"), realfeel["series"][0]["max"] / 1e3
def median(at):
    ratios = [w[at] / o[at] for o, w in both]
    spread = f" ({min(ratios):.2f} to {max(ratios):.2f})" if pairs > 1 else ""
    return f"{statistics.median(ratios):.2f}{spread}"
both = [(found(p, "without"), found(p, "with")) for p in range(1, pairs + 1)]
(old, before, late), (new, after, worst) = both[0]
unit = "s" if probe.startswith("hackbench") else "MB/s"
number = lambda n: f"{n:,.0f}".replace(",", " ") if n > 100 else f"{n:.2f}"
late, worst = (max(pair[how][2] for pair in both) for how in (0, 1))
back = ""
if os.path.exists(f"{folder}/1.vanilla"):
    plain = [found(p, "vanilla")[0] for p in range(1, pairs + 1)]
    parts = [(o[0] - w[0]) / (o[0] - v) for v, (o, w) in zip(plain, both)]
    back = f" {statistics.median(parts):.0%} (without preemption {plain[0]:.3f} {unit}) |"
print(f"| `{probe}` | {new:.3f} {unit} of {old:.3f} {unit} | {median(0)} | {number(after)} of {number(before)}"
      f" | {median(1)} | {worst:.1f} µs, {late:.1f} µs without |{back}", flush=True)
PYTHON
done
