#!/usr/bin/env bash
# Benchmarks of the laboratory: reproducibility (the same bytes each time), and the time of a cell.
# Usage: laboratory.sh [repeat|restores|start|studies|cell|jobs|cyclictest|sleep|releases|virtme]…
# (default: all but restores, which takes COUNT restores, 10 000 if not set, and hours; releases, which
# needs latlab for arm64 and stress-ng; and virtme, which needs virtme-ng from PyPI, busybox-static,
# kmod, and virtiofsd or a QEMU that includes it)
set -euo pipefail
cd "$(dirname "$0")/../../.."
latlab=${LATLAB:-dist/latlab}
work=$(mktemp -d)
busy=()
trap '[ ${#busy[@]} = 0 ] || kill "${busy[@]}"; rm -rf "$work"' EXIT
stock="standard utime low-latency rapid-reaction preemptible preemptible-hr threadirqs rt rt-lazy"
built="monolithic-hz100 monolithic-points-hz100 preemptible-hz100 monolithic monolithic-points lock-keeping lock-breaking lab-full"

# Minimum and median of the lines of a histogram, value and number.
median='{ n += $2; at[++k] = $1 + 0; of[k] = $2 } END { for (i = 1; i <= k; i++) { sum += of[i]; if (sum * 2 >= n) { print at[1] ", " at[i] " of " n; exit } } }'

on() { for profile in "$@"; do printf -- '--on lab:%s ' "$profile"; done; }
seconds() { local TIMEFORMAT=%R; { time "$@" >/dev/null 2>&1 || true; } 2>&1; }

# Every profile (or PROFILES) under every load, from the snapshots of two caches, and once more while
# both CPUs are busy.
repeat() {
    mkdir -m 700 "$work/cache" "$work/cache/latlab"
    cp -a "${XDG_CACHE_HOME:-$HOME/.cache}/latlab/kernels" "$work/cache/latlab/"
    for load in none hackbench fork procfs memory disk; do
        with=(); [ $load = none ] || with=(--load $load)
        for turn in first second busy; do
            cache=${XDG_CACHE_HOME:-$HOME/.cache}
            [ $turn != second ] || cache=$work/cache
            if [ $turn = busy ]; then
                for _ in 1 2; do (while :; do :; done) & busy+=($!); done
            fi
            # shellcheck disable=SC2046
            XDG_CACHE_HOME=$cache $latlab run cyclic "${with[@]}" --count 200 $(on ${PROFILES:-$stock $built}) --fresh --out "$work/$load-$turn" >/dev/null 2>"$work/errors" || { cat "$work/errors"; exit 1; }
            [ ${#busy[@]} = 0 ] || kill "${busy[@]}"
            busy=()
        done
        diff -rq "$work/$load-first" "$work/$load-second"
        diff -rq "$work/$load-first" "$work/$load-busy"
        echo "$load: $(find "$work/$load-first" -type f | wc -l) profiles, identical bytes in three runs"
    done
}

# COUNT restores of mixed cells, two at a time: their bytes against those of the same cell booted.
restores() {
    cells=() booted=()
    for profile in rt preemptible-hr; do
        for load in none fork disk:size=1MiB hackbench:groups=1; do
            with=; [ $load = none ] || with="--load $load"
            cells+=("$latlab run cyclic $with --count 10 --warm-up 0 --on lab:$profile --fresh --json")
        done
    done
    for cell in "${cells[@]}"; do
        $cell --cold >"$work/booted" 2>"$work/errors" || { cat "$work/errors"; exit 1; }
        booted+=("$(sha256sum <"$work/booted")")
    done
    one() {
        for ((n = $1; n < ${COUNT:-10000}; n += 2)); do
            at=$((n / 2 % ${#cells[@]}))
            if [ "$(${cells[at]} 2>"$work/errors.$1" | sha256sum)" = "${booted[at]}" ]; then
                echo same
            else
                echo "different: ${cells[at]}: $(head -1 "$work/errors.$1")"
            fi
        done >"$work/restores.$1"
    }
    one 0 & one 1 & wait
    sort "$work"/restores.[01] | uniq -c
}

# Time of a run and of the first command in a guest, alternately from a snapshot and booted.
start() {
    for command in "run cyclic --on lab:rt --count 1000" "exec --on lab:utime -- true"; do
        one="${command/ /  --fresh }"
        $latlab $one >/dev/null 2>&1
        for turn in 1 2 3 4 5 6 7 8 9 10; do
            # shellcheck disable=SC2086
            echo "$(seconds $latlab $one) $(seconds $latlab ${one/--fresh/--fresh --cold})"
        done >"$work/start"
        median() { sort -n | awk '{ at[NR] = $1 } END { print (at[int((NR + 1) / 2)] + at[int(NR / 2) + 1]) / 2 }'; }
        from=$(cut -d' ' -f1 "$work/start" | median) booted=$(cut -d' ' -f2 "$work/start" | median)
        awk -v c="$command" -v a="$from" -v b="$booted" 'BEGIN { printf "%s: from a snapshot %.2f s, booted %.2f s, ratio %.2f (medians of ten)\n", c, a, b, a / b }'
    done
}

# Wall-clock time of studies, alternately from snapshots and booted; their tables are the same bytes.
studies() {
    for study in quick heursch-pdlt rabbits-throughput-tbench; do
        from=$(seconds $latlab study $study --fresh --out "$work/from")
        booted=$(seconds $latlab study $study --fresh --cold --out "$work/booted")
        cmp "$work/from/table.csv" "$work/booted/table.csv"
        awk -v s=$study -v a="$from" -v b="$booted" 'BEGIN { printf "%s: from snapshots %.1f s, booted %.1f s, ratio %.2f\n", s, a, b, a / b }'
        rm -r "$work/from" "$work/booted"
    done
}

# Time of a cell of 3000 wake-ups at 1 ms, including the boot.
cell() {
    for profile in $stock $built; do
        times=$(for _ in 1 2 3; do seconds $latlab run cyclic --on lab:$profile --count 3000 --fresh --json; done | sort -n | xargs)
        echo "$profile: $times s"
    done
}

# Time of eight cells, alternately one and two at a time.
jobs() {
    # shellcheck disable=SC2086
    eight=$(on ${stock% *})
    for turn in 1 2 3; do
        # shellcheck disable=SC2086
        one=$(seconds $latlab run cyclic --count 3000 $eight --fresh --jobs 1 --out "$work/jobs")
        # shellcheck disable=SC2086
        two=$(seconds $latlab run cyclic --count 3000 $eight --fresh --jobs 2 --out "$work/jobs")
        awk -v a="$one" -v b="$two" 'BEGIN { printf "--jobs 1: %.1f s, --jobs 2: %.1f s, ratio %.2f\n", a, b, b / a }'
    done
}

# cyclictest, copied into the guest, and latlab's cyclic: one CPU, priority 90, 1000 wake-ups at 1 ms,
# in nanoseconds. cyclictest's histogram has a line per nanosecond, so only lines with samples leave
# the guest. Without high-resolution timers that would be millions of lines, so cyclictest's own
# minimum and average are used there.
cyclictest() {
    echo "profile | cyclictest min, median | latlab min, median (ns)"
    for profile in $stock $built; do
        case $profile in standard | low-latency | preemptible | *-hz100)
            echo "$profile | $($latlab exec --on lab:$profile -- cyclictest -N -m -p 90 -i 1000 -l 1000 -q 2>/dev/null | grep -o 'Min:.*')"
            continue
            ;;
        esac
        $latlab exec --on lab:$profile --with /usr/bin/cyclictest --with /usr/bin/grep -- sh -c "
            /usr/bin/cyclictest -N -m -p 90 -i 1000 -l 1000 -h 20000 --histfile=/tmp/histogram -q >/dev/null
            /usr/bin/grep -P '^[0-9]+ 0*[1-9]' /tmp/histogram" >"$work/histogram" 2>/dev/null || true
        theirs=$(awk "$median" "$work/histogram")
        $latlab run cyclic --on lab:$profile --count 1000 --json 2>/dev/null >"$work/record"
        ours=$(python3 -c "import json; s = json.load(open('$work/record'))['series'][0]; print(s['min'], s['quantiles']['p50'], sep=', ')")
        echo "$profile | $theirs | $ours"
    done
}

# Releases of Linux on arm64 (or PROFILES): three records of 1000 wake-ups compared, the third while
# stress-ng keeps both CPUs busy, and Debian's cyclictest for arm64 in the same guests.
releases() {
    (cd "$work" && apt-get download -qq {rt-tests,libnuma1,busybox-static}:arm64 2>/dev/null && for package in *.deb; do dpkg-deb -x "$package" arm64; done)
    tools=$work/arm64/usr/bin box=$work/arm64/bin/busybox
    echo "profile | kernel | latlab min, median, max | three records | cyclictest min, median (ns)"
    for profile in ${PROFILES:-v6.1 v6.1-rt v6.12 v6.12-rt v7.2 v7.2-rt v7.3 v7.3-rt}; do
        profile=${profile%@arm64}@arm64
        for turn in 1 2 3; do
            [ $turn != 3 ] || { stress-ng --quiet --cpu 2 & busy+=($!); }
            $latlab run cyclic --on "lab:$profile" --count 1000 --fresh --json >"$work/record.$turn" 2>"$work/errors" || cat "$work/errors"
        done
        kill "${busy[@]}" && busy=()
        same=different
        ! cmp -s "$work/record.1" "$work/record.2" || ! cmp -s "$work/record.1" "$work/record.3" || same=identical
        $latlab exec --on "lab:$profile" --env LD_LIBRARY_PATH="$work/arm64/usr/lib/aarch64-linux-gnu" --with "$tools/cyclictest" -- "$box" sh -c "
            $tools/cyclictest -N -m -p 90 -i 1000 -l 1000 -h 50000 --histfile=/tmp/histogram -q >/dev/null
            $box grep -E '^[0-9]+ 0*[1-9]' /tmp/histogram" >"$work/histogram" 2>"$work/errors" || cat "$work/errors"
        ours=$(python3 -c "import json; r = json.load(open('$work/record.1')); s = r['series'][0]; print(r['machine']['kernel'], '|', s['min'], s['quantiles']['p50'], s['max'])")
        echo "$profile | $ours | $same | $(awk "$median" "$work/histogram")"
    done
}

# Delay of relative sleeps, with the periods of Rapid Reaction Linux.
sleep() {
    for profile in monolithic-hz100 rapid-reaction; do
        for period in 2ms 3.25ms 4ms 13.35ms 27.5ms 38.75ms 50ms 53.35ms; do
            $latlab run nanosleep:interval=$period --on lab:$profile --count 100 --json 2>/dev/null >"$work/record"
            mean=$(python3 -c "import json; print(json.load(open('$work/record'))['series'][0]['mean'] / 1e6)")
            echo "$profile $period: mean delay $mean ms"
        done
    done
}

# Time to the first command in a guest, alternately with virtme-ng, both with TCG, on the same kernel
# with the same processor and memory.
virtme() {
    (cd "$work" && apt-get download linux-image-6.12.117+deb12-amd64-unsigned >/dev/null && dpkg-deb -x ./*.deb kernel)
    release=$(ls "$work/kernel/lib/modules")
    depmod -b "$work/kernel" "$release"
    for turn in 1 2 3; do
        theirs=$(seconds script -qec "vng -r $work/kernel/boot/vmlinuz-$release --disable-kvm --cpus 1 --memory 1G -- echo" /dev/null)
        ours=$(seconds $latlab exec --on lab:utime --fresh -- true)
        cold=$(seconds $latlab exec --on lab:utime --fresh --cold -- true)
        awk -v a="$theirs" -v b="$ours" -v c="$cold" 'BEGIN { printf "virtme-ng: %.1f s, latlab: %.2f s (booted %.1f s), ratio %.2f\n", a, b, c, b / a }'
    done
}

for part in "${@:-repeat start studies cell jobs cyclictest sleep}"; do for one in $part; do $one; done; done
