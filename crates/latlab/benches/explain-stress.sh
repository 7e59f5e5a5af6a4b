#!/usr/bin/env bash
# What latlab explain says of injected causes in guests in which stress-ng runs: how many delays are
# late, the share of the late time that is charged to the cause, and the share left unexplained.
# Usage: explain-stress.sh ; PROFILES, STRESSORS, CAUSES and KEEP=DIR (for the records) are read from
# the environment. It needs stress-ng, busybox-static and python3.
set -euo pipefail
cd "$(dirname "$0")/../../.."
latlab=$(realpath "${LATLAB:-dist/latlab}")
out=${KEEP:-$(mktemp -d)}
profiles=${PROFILES:-rt preemptible-hr utime v7.3-rt}
causes=${CAUSES:-interrupts-off preemption-off raw-spinlock timer-callback softirq interrupt higher-priority equal-priority page-fault mutex}
stress=$(command -v stress-ng)
mkdir -p "$out"
source crates/latlab/benches/guest.sh

# The options of stress-ng. A guest has 1 GiB of memory, its files among it.
declare -A options=(
    [timer]="--timer 1 --timer-freq 10000"
    [vm]="--vm 1 --vm-bytes 64m"
    [hdd]="--hdd 1 --hdd-bytes 32m"
    [sock]="--sock 1"
)

# All causes in one guest beside a stressor, whose count of operations shows that it worked.
measure() { # PROFILE STRESSOR
    local explain="" cause
    for cause in $causes; do
        explain+="
            echo == $cause
            $latlab explain inject:cause=$cause,time=300us --traced --count 20 --above 150us --json 2>/tmp/why
            code=\$?; test \$code = 0 || $box cat /tmp/why; echo exit \$code"
    done
    guest "$1" "
        ${driver:+$box insmod $driver;} $box ifconfig lo up; $box mkdir -p /tmp; cd /tmp
        $stress ${options[$2]} --temp-path /tmp --metrics-brief >/tmp/stress 2>&1 & stress=\$!
        $box sleep 0.3 $explain
        echo == end
        $box kill -INT \$stress; wait \$stress; $box cat /tmp/stress" "$stress" $driver >"$out/$1.$2"
}

echo "| profile | beside | cause | late | named | unexplained |"
echo "| --- | --- | --- | --- | --- | --- |"
for profile in $profiles; do
    driver=$(module "$profile")
    for stressor in ${STRESSORS:-timer vm hdd sock}; do
        measure "$profile" "$stressor"
        python3 crates/latlab/benches/explained.py "$profile" "$stressor" "$out/$profile.$stressor"
    done
done
