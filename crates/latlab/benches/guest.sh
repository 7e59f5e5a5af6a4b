# What scripts need that run other programs beside latlab in its guests. Sourced, not run: $latlab is
# the absolute path of latlab, $out a folder.
box=$(command -v busybox)

# Runs a shell script in a guest that has latlab, busybox and these files besides.
guest() { # PROFILE SCRIPT [FILE]…
    local profile=$1 script=$2
    shift 2
    "$latlab" exec --limit 20min --on "lab:$profile" --with "$latlab" \
        --with /lib/x86_64-linux-gnu/libgcc_s.so.1 "${@/#/--with=}" -- "$box" sh -c "$script" 2>&1 || true
}

# The test driver's module for a profile; latlab builds it for the first injected cause. Nothing where
# it can't be built: causes that need it are missing then.
module() { # PROFILE
    "$latlab" run inject:cause=interrupts-off --count 1 --on "lab:$1" --json >"$out/first.json" 2>/dev/null || return 0
    local release
    release=$(sed -n 's/^ *"kernel": "\(.*\)",*$/\1/p' "$out/first.json" | head -1)
    # Of several, the newest: others are of other versions of latlab.
    ls -t $(grep -lae "vermagic=$release " "${XDG_CACHE_HOME:-$HOME/.cache}"/latlab/kernels/*/latlab-*.ko) | head -1
}
