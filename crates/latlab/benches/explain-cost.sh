#!/usr/bin/env bash
# What explaining adds to a wake-up on this machine: medians of cyclic with `latlab explain` and with
# `latlab run`, in turns, by load; the median of the ratios and their quartiles.
# Usage: explain-cost.sh [PAIRS]  (default: 10); needs root; LATLAB and LOADS are read from the environment.
set -euo pipefail
cd "$(dirname "$0")/../../.."
latlab=${LATLAB:-dist/latlab}
pairs=${1:-10}

# The median latency of a measurement, in nanoseconds.
p50() { # COMMAND LOAD
    local load=()
    [ "$2" = none ] || load=(--load "$2")
    "$latlab" "$1" cyclic --cpus 1 --for 3s "${load[@]}" --json 2>/dev/null | sed -n 's/^ *"p50": \([0-9]*\).*/\1/p' | head -1
}

# A quantile of the numbers on standard input.
at() { # SHARE
    sort -n | awk -v share="$1" '{ sorted[NR] = $1 } END { print sorted[1 + int(share * (NR - 1) + 0.5)] }'
}

echo "load       pairs  run, us  explain, us  ratio  quartiles"
for load in ${LOADS:-none hackbench disk netbench}; do
    runs=() explained=() ratios=()
    for ((pair = 0; pair < pairs; pair++)); do
        # The one that comes first alternates.
        if ((pair % 2)); then a=$(p50 run "$load") b=$(p50 explain "$load")
        else b=$(p50 explain "$load") a=$(p50 run "$load"); fi
        runs+=("$a") explained+=("$b") ratios+=("$(awk "BEGIN { print $b / $a }")")
    done
    printf '%-9s  %5d  %7.2f  %11.2f  %.3f  %.3f to %.3f\n' "$load" "$pairs" \
        "$(printf '%s\n' "${runs[@]}" | at 0.5)e-3" "$(printf '%s\n' "${explained[@]}" | at 0.5)e-3" \
        "$(printf '%s\n' "${ratios[@]}" | at 0.5)" "$(printf '%s\n' "${ratios[@]}" | at 0.25)" \
        "$(printf '%s\n' "${ratios[@]}" | at 0.75)"
done
