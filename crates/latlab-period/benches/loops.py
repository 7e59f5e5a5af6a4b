#!/usr/bin/env python3
"""Rows of docs/results/period.md: the library's loops and cyclictest, idle and under load.

usage: loops.py LATLAB LOOPS idle|ping|disk PROFILE…

LOOPS is the compiled loops.c. Each loop runs in a guest of its own; the loads are those of latlab, beside
the loop. The guest's disk is made of modules of the profile's kernel, which has to be fetched before.
Needs busybox-static, rt-tests and xz-utils.
"""
import lzma
import os
import re
import subprocess
import sys
import tempfile

# Those of tables 3 and 4, of 1 and 5, and of 2, in microseconds; and the cycles of each.
PERIODS = {
    "idle": [2000, 3250, 4000, 13350, 27500, 38750, 50000, 53350],
    "disk": [50000, 53530],
    "ping": [50000],
}
CYCLES = {"idle": 1000, "disk": 100, "ping": 100}
LOOPS = ["library", "spinning", "absolute", "cyclictest"]
MODULES = ["configfs", "mbcache", "jbd2", "crc16", "crc32c_generic", "ext4"]
GUEST = """#!/usr/bin/busybox sh
load=$1 folder=$2
shift 2
case $load in disk)
    for module in MODULES; do busybox insmod $folder/$module.ko; done
    busybox insmod $folder/null_blk.ko DISK
    busybox mkdir -p /var/tmp
    /usr/sbin/mke2fs -q -t ext4 /dev/nullb0 && busybox mount -t ext4 /dev/nullb0 /var/tmp || exit 1
    load=wilshire-disk ;;
esac
case $load in idle) ;; *)
    /latlab run cyclic:interval=1s,policy=other --load $load --for 1h >/dev/null 2>&1 &
    busybox sleep 1 ;;
esac
"$@"
"""
# As the laboratory's own disk has them.
DISK = "gb=1 memory_backed=1 irqmode=2 completion_nsec=100000 hw_queue_depth=64"


def kernel_of(latlab, profile):
    """The folder of the modules of a profile's kernel."""
    release = subprocess.run([latlab, "exec", "--on", f"lab:{profile}", "--", "/usr/bin/uname", "-r"],
                             capture_output=True, text=True, check=True).stdout.strip()
    cache = os.path.expanduser("~/.cache/latlab/kernels")
    for name in os.listdir(cache):
        folder = os.path.join(cache, name, "lib/modules", release)
        if os.path.isdir(folder):
            return folder
    sys.exit(f"{profile}: the modules of {release} are not in {cache}")


def unpack_modules(kernel, folder):
    for path, _, names in os.walk(kernel):
        for name in names:
            if name.removesuffix(".ko.xz") in [*MODULES, "null_blk"]:
                with lzma.open(os.path.join(path, name)) as packed:
                    with open(os.path.join(folder, name[:-3]), "wb") as module:
                        module.write(packed.read())


def numbers(output):
    """What the loops print: words, each with its number."""
    # cyclictest leaves no space before a long number.
    words = output.replace(":", ": ").split()
    pairs = {word: int(value) for word, value in zip(words, words[1:]) if re.fullmatch(r"-?\d+", value)}
    if "Max:" in pairs:
        pairs |= {"late_mean_ns": pairs["Avg:"], "late_max_ns": pairs["Max:"]}
    return pairs


def row(latlab, loops, load, profile, period, loop, folder):
    guest = os.path.join(folder, "guest.sh")
    tools = ["/usr/bin/busybox", "/usr/bin/cyclictest", "/usr/sbin/mke2fs", loops, folder]
    with_tools = [word for tool in tools for word in ("--with", tool)]
    command = [latlab, "exec", "--on", f"lab:{profile}", *with_tools, "--", guest, load, folder, loops]
    command += [loop, str(period), str(CYCLES[load])]
    output = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    found = numbers(output.stdout)
    if "cpu_ns_per_cycle" not in found:
        sys.exit(f"{profile} {period} {loop}: {output.stdout} {output.stderr}")
    micros = [f"{found[name] / 1000:.2f}" if name in found else "–"
              for name in ("late_mean_ns", "late_max_ns", "jitter_max_ns", "drift_ns", "cpu_ns_per_cycle")]
    missed = found.get("missed", "–")
    print(f"| {profile} | {load} | {period / 1000:g} | {loop} | {' | '.join(micros)} | {missed} |", flush=True)


def main(latlab, loops, load, profiles):
    for profile in profiles:
        with tempfile.TemporaryDirectory() as folder:
            if load == "disk":
                unpack_modules(kernel_of(latlab, profile), folder)
            guest = os.path.join(folder, "guest.sh")
            with open(guest, "w", encoding="utf-8") as script:
                script.write(GUEST.replace("MODULES", " ".join(MODULES)).replace("DISK", DISK))
            os.chmod(guest, 0o755)
            for period in PERIODS[load]:
                for loop in LOOPS:
                    row(latlab, os.path.abspath(loops), load, profile, period, loop, folder)


if __name__ == "__main__":
    if len(sys.argv) < 5 or sys.argv[3] not in PERIODS:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
