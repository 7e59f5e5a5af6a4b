//! Parts of machines as JSON: the problem of each check, and harmless similar configurations.

use serde_json::{Value, json};

/// Code, severity, and the part of a machine that causes the finding.
#[expect(clippy::too_many_lines, reason = "it is a table")]
pub(super) fn cases() -> Vec<(&'static str, &'static str, Value)> {
    let config = |option: &str| json!({"config": {"CONFIG_HZ": "250", option: "y"}});
    let frequency = |governor: &str, driver: &str| {
        json!({"governor": governor, "processor": {"frequency": {"driver": driver,
            "governors": ["performance", "schedutil"], "min_khz": 400_000, "max_khz": 4_700_000}}})
    };
    let sleeping = |latency: u32, held: i32| {
        json!({"processor": {"arch": "x86_64", "idle": {"driver": "intel_idle",
            "cpu_dma_latency_us": held,
            "states": [{"name": "POLL", "latency_us": 0, "disabled": false},
                       {"name": "C6", "latency_us": latency, "disabled": false},
                       {"name": "C10", "latency_us": 890, "disabled": true}]}}})
    };
    let isolated = |more: Value| {
        let mut isolation = json!({"isolated": "2-3"});
        merge(&mut isolation, &more);
        json!({"cpus": "0-3", "isolation": isolation})
    };
    let thread = |policy: &str, priority: u32| {
        json!({"scheduling": {"rt_threads": [{"comm": "multipathd", "pid": 7, "tid": 8,
            "policy": policy, "priority": priority, "kernel": false}]}})
    };
    let rights = |capabilities: Value, limits: Value| {
        let mut rights = json!({"capabilities": capabilities});
        merge(&mut rights, &limits);
        json!({"rights": rights})
    };
    let server =
        |runtime: u64| json!({"fair_server": {"runtime_ns": runtime, "period_ns": 1_000_000_000}});
    let flaw = |name: &str, state: &str| json!({"processor": {"vulnerabilities": {name: state}}});
    vec![
        ("no-preempt-rt", "fatal", json!({"kernel": "6.1", "preempt": "full"})),
        ("no-preempt-rt", "fatal", json!({"kernel": "6.1", "version": "#1 SMP"})),
        ("preemption-model", "high", json!({"preempt": "none", "preempt_modes": ["full"]})),
        ("preemption-model", "high", json!({"preempt": "voluntary"})),
        ("preemption-model", "info", json!({"preempt": "lazy"})),
        ("unthreaded-interrupts", "medium", config("CONFIG_IRQ_FORCED_THREADING")),
        ("coarse-timers", "fatal", json!({"timer_resolution_ns": 4_000_000})),
        ("coarse-timers", "fatal", json!({"cmdline": "highres=off", "hz": 250})),
        (
            "slow-clocksource",
            "high",
            json!({"clocksource": "hpet", "clocksources": ["tsc"], "processor": {"arch": "x86_64"}}),
        ),
        (
            "slow-clocksource",
            "info",
            json!({"clocksource": "kvm-clock", "processor": {"arch": "x86_64"}}),
        ),
        ("tick-rate", "info", json!({"hz": 100})),
        ("tick-stops-when-idle", "medium", config("CONFIG_NO_HZ_IDLE")),
        ("nohz-full", "medium", json!({"isolation": {"nohz_full": "1"}})),
        ("nohz-full", "high", {
            let clock = json!({"clocksource": "hpet", "processor": {"arch": "x86_64"}});
            let mut machine = json!({"isolation": {"nohz_full": "1"}});
            merge(&mut machine, &clock);
            machine
        }),
        ("debug-options", "high", config("CONFIG_PROVE_LOCKING")),
        ("debug-options", "high", config("CONFIG_KASAN")),
        ("latency-tracers", "high", config("CONFIG_IRQSOFF_TRACER")),
        ("latency-tracers", "high", config("CONFIG_PREEMPT_TRACER")),
        ("tracer-active", "high", json!({"tracer": "function"})),
        ("no-tracing", "info", config("CONFIG_CPU_FREQ")),
        ("lockdown", "medium", json!({"lockdown": "confidentiality"})),
        ("lockdown", "info", json!({"lockdown": "integrity"})),
        ("governor", "high", frequency("schedutil", "acpi-cpufreq")),
        ("governor", "high", frequency("powersave", "intel_pstate")),
        ("governor", "high", frequency("performance,ondemand", "acpi-cpufreq")),
        ("lowest-frequency", "info", frequency("powersave", "acpi-cpufreq")),
        ("other-governors", "medium", {
            let mut machine = frequency("performance", "acpi-cpufreq");
            merge(&mut machine, &config("CONFIG_CPU_FREQ_GOV_SCHEDUTIL"));
            machine
        }),
        ("no-cpufreq", "high", config("CONFIG_CPU_IDLE")),
        ("boost", "info", json!({"processor": {"frequency": {"boost": true}}})),
        ("deep-idle", "high", sleeping(133, 2_000_000_000)),
        ("deep-idle", "medium", sleeping(30, 50)),
        ("no-cpuidle", "info", config("CONFIG_CPU_FREQ")),
        ("smt", "medium", json!({"siblings": {"0": "0,2", "2": "0,2"}})),
        ("thermal-throttling", "high", json!({"counters": {"throttles": 3}})),
        ("cooling", "high", json!({"processor": {"cooling": ["cpufreq-cpu0"]}})),
        ("mitigations", "info", flaw("spectre_v2", "Mitigation: Retpolines")),
        ("old-microcode", "info", flaw("old_microcode", "Vulnerable")),
        ("hypervisor", "high", json!({"hypervisor": "kvm"})),
        ("steal", "high", json!({"cpus": "0", "counters": {"uptime_s": 1000, "steal_ticks": 100}})),
        (
            "steal",
            "medium",
            json!({"cpus": "0", "counters": {"uptime_s": 1000, "steal_ticks": 99}}),
        ),
        ("efi-runtime", "medium", json!({"efi_runtime": true})),
        ("system-management", "info", json!({"counters": {"smi": 12}})),
        ("firmware", "info", json!({"processor": {"arch": "x86_64"}})),
        (
            "firmware",
            "info",
            json!({"processor": {"arch": "aarch64"}, "firmware": ["psci", "optee"]}),
        ),
        ("graphics", "medium", json!({"gpu_drivers": ["amdgpu", "i915"]})),
        ("graphics", "info", json!({"gpu_drivers": ["amdgpu"]})),
        (
            "rt-group",
            "fatal",
            json!({"scheduling": {"cgroup": {"path": "/a", "rt_runtime_us": 0}}}),
        ),
        ("rt-throttled", "info", json!({"kernel": "6.1.0", "rt_runtime_us": 950_000})),
        ("rt-throttled", "info", json!({"kernel": "6.12.0", "rt_runtime_us": 950_000})),
        ("rt-throttled", "info", json!({"rt_runtime_us": -1, "scheduling": server(50_000_000)})),
        ("rt-unthrottled", "medium", json!({"rt_runtime_us": -1})),
        ("rt-unthrottled", "medium", json!({"rt_runtime_us": -1, "scheduling": server(0)})),
        ("highest-priority-taken", "high", thread("fifo", 99)),
        ("rt-rivals", "info", thread("deadline", 0)),
        ("rt-rivals", "info", thread("rr", 20)),
        (
            "soft-watchdog",
            "high",
            json!({"scheduling": {"soft_watchdog": true, "watchdog_thresh": 10}}),
        ),
        ("nmi-watchdog", "high", json!({"scheduling": {"nmi_watchdog": true}})),
        (
            "timer-migration",
            "medium",
            json!({"cpus": "0-1", "scheduling": {"timer_migration": true}}),
        ),
        ("numa-balancing", "medium", json!({"scheduling": {"numa_balancing": 1}})),
        ("slice-extension", "medium", config("CONFIG_RSEQ_SLICE_EXTENSION")),
        ("proxy-execution", "info", config("CONFIG_SCHED_PROXY_EXEC")),
        ("isolated-sibling", "high", {
            let mut machine = isolated(json!({}));
            merge(&mut machine, &json!({"siblings": {"2": "0,2", "3": "3"}}));
            machine
        }),
        ("isolated-interrupts", "medium", isolated(json!({"irq_affinity": "0-2"}))),
        ("isolated-callbacks", "medium", isolated(json!({"rcu_nocbs": "2"}))),
        ("isolated-ticks", "info", isolated(json!({"nohz_full": ""}))),
        ("irqbalance", "medium", isolated(json!({"irqbalance": true}))),
        ("irqbalance", "info", json!({"isolation": {"irqbalance": true}})),
        ("transparent-hugepage", "medium", json!({"memory": {"transparent_hugepage": "always"}})),
        ("ksm", "medium", json!({"memory": {"ksm": 1}})),
        ("swap", "medium", json!({"memory": {"swap_kib": 2048, "swappiness": 60}})),
        ("stat-interval", "info", json!({"memory": {"stat_interval": 1}})),
        ("no-realtime-right", "fatal", rights(json!([]), json!({"rtprio": {"at": 0}}))),
        ("priority-limit", "medium", rights(json!([]), json!({"rtprio": {"at": 20}}))),
        ("priority-limit", "info", rights(json!([]), json!({"rtprio": {"at": 95}}))),
        ("memory-lock-limit", "medium", rights(json!([]), json!({"memlock": {"at": 65536}}))),
        ("realtime-limit", "medium", rights(json!([]), json!({"rttime": {"at": 200_000}}))),
        ("no-tracing-right", "info", rights(json!(["CAP_BPF"]), json!({}))),
    ]
}

/// Harmless machines that resemble a problem: the code that must not be found.
pub(super) fn innocent() -> Vec<(&'static str, Value)> {
    let config = json!({"CONFIG_HZ": "250"});
    vec![
        ("no-preempt-rt", json!({"preempt": "rt", "version": "#1 SMP PREEMPT_RT"})),
        ("preemption-model", json!({"preempt": "full"})),
        ("coarse-timers", json!({"timer_resolution_ns": 1, "cmdline": "highres=off"})),
        (
            "slow-clocksource",
            json!({"clocksource": "arch_sys_counter", "processor": {"arch": "aarch64"}}),
        ),
        (
            "tick-stops-when-idle",
            json!({"config": {"CONFIG_NO_HZ_IDLE": "y"}, "cmdline": "nohz=off"}),
        ),
        (
            "governor",
            json!({"governor": "schedutil", "processor":
            {"frequency": {"min_khz": 800_000, "max_khz": 800_000}}}),
        ),
        ("no-cpufreq", json!({"config": config, "hypervisor": "kvm"})),
        (
            "deep-idle",
            json!({"processor": {"idle": {"cpu_dma_latency_us": 0,
            "states": [{"name": "C6", "latency_us": 133, "disabled": false}]}}}),
        ),
        ("smt", json!({"siblings": {"0": "0", "1": "1"}})),
        ("rt-unthrottled", json!({"kernel": "6.12", "rt_runtime_us": -1})),
        ("rt-throttled", {
            let server = json!({"fair_server": {"runtime_ns": 0, "period_ns": 1_000_000_000}});
            json!({"kernel": "6.12", "config": config, "rt_runtime_us": 950_000,
                "scheduling": server})
        }),
        ("timer-migration", json!({"cpus": "0", "scheduling": {"timer_migration": true}})),
        (
            "rt-rivals",
            json!({"scheduling": {"rt_threads": [{"comm": "irq/9-acpi", "pid": 7,
            "tid": 7, "policy": "fifo", "priority": 50, "kernel": true}]}}),
        ),
        (
            "slice-extension",
            json!({"preempt": "rt", "config": {"CONFIG_RSEQ_SLICE_EXTENSION": "y"}}),
        ),
        (
            "slice-extension",
            json!({"config": {"CONFIG_RSEQ_SLICE_EXTENSION": "y"}, "cmdline": "rseq_slice_ext=off"}),
        ),
        (
            "proxy-execution",
            json!({"config": {"CONFIG_SCHED_PROXY_EXEC": "y"}, "cmdline": "sched_proxy_exec=0"}),
        ),
        ("isolated-callbacks", json!({"isolation": {"isolated": "1", "rcu_nocbs": "1"}})),
        (
            "no-realtime-right",
            json!({"rights":
            {"capabilities": ["CAP_SYS_NICE"], "rtprio": {"at": 0}}}),
        ),
        ("memory-lock-limit", json!({"rights": {"capabilities": [], "memlock": "unlimited"}})),
    ]
}

/// Merges `more` into `value`, member by member.
pub(super) fn merge(value: &mut Value, more: &Value) {
    match (value, more) {
        (Value::Object(value), Value::Object(more)) => {
            for (key, part) in more {
                merge(value.entry(key).or_insert(Value::Null), part);
            }
        }
        (value, more) => *value = more.clone(),
    }
}
