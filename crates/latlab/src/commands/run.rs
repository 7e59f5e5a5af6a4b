//! `latlab run`: measures latency with probes, under loads.

pub(super) mod preset;

use super::adapt::Mechanisms;
use super::complete;
use super::measurement::Measurement;
use latlab_core::cpulist::CpuList;
use latlab_core::plan::{Length, Part, Plan, Setting};
use latlab_core::time::Nanos;
use latlab_measure::load::LOADS;
use latlab_measure::probe::PROBES;
use latlab_part::failure::{Failure, Result};
use latlab_part::part;
use std::path::{Path, PathBuf};

pub(super) const EXAMPLES: &str = "\
Examples:
  latlab run cyclic:interval=200us,priority=80 --cpus 0 --for 60s --out idle.json
  latlab run --load hackbench:groups=4 --load disk:dir=/tmp --stop-above 500us
  latlab run nanosleep:interval=3.25ms --count 1000 --policy other
  latlab run --preset acceptance --for 8h --fail-above 150us --out board.json
  latlab run --on lab:standard --on lab:rt --load fork --count 1000 --out kernels/";

/// Measure latency
///
/// Runs the probes one after the other, each while all loads run. The default is the probe `cyclic`
/// (cyclictest's measurement) for 10 s on all CPUs. The output lists minimum, mean, percentiles and
/// maximum, and warns if the system is not configured for low latency.
///
/// Exit codes: 0 success; 1 --stop-above ended the run, or a sample exceeded --fail-above; 2
/// failure, or all CPUs, or with --fail-above one CPU or load, were lost, or another program changed
/// what --set had set; 3 this machine lacks something that a probe or load needs; 4 it was ended
/// early (Ctrl-C), and the record has what was measured; from a guest (lab:, vm:) there is none.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Run {
    /// Probes with their parameters, e.g. cyclic:interval=100us,priority=80 [default: cyclic]
    #[arg(value_name = "PROBE[:key=value,…]", add = complete::probes())]
    probes: Vec<String>,
    /// Load to run while the probes measure; may be given several times
    #[arg(long = "load", value_name = "NAME[:key=value,…]", add = complete::loads())]
    loads: Vec<String>,
    /// Copy this file or folder into the guest (lab:, vm:), for the commands of the load exec; their
    /// programs and libraries are copied automatically
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    with: Vec<String>,
    /// Time that each probe measures [default: 10s]
    #[arg(long = "for", value_name = "TIME", conflicts_with = "count", value_parser = super::positive)]
    time: Option<Nanos>,
    /// Number of periods that each probe measures on each CPU, instead of a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Measured CPUs, e.g. 0-3,8 [default: all]
    #[arg(long, value_name = "LIST", value_parser = measured_cpus)]
    cpus: Option<CpuList>,
    /// Scheduling policy of probes that are given without policy=: fifo, rr, deadline, other
    #[arg(long, add = complete::policies())]
    policy: Option<String>,
    /// Warm-up time of each probe; its samples are reported separately [default: 200ms]
    #[arg(long, value_name = "TIME")]
    warm_up: Option<Nanos>,
    /// Stop at the first sample above this latency, with exit code 1 (cyclictest -b); of a probe
    /// with several latencies, the first. latlab explain also says why it was late
    #[arg(long, value_name = "TIME")]
    stop_above: Option<Nanos>,
    /// Measure to the end, and exit with code 1 if a sample was above this latency; of a probe
    /// with several latencies, the first
    #[arg(long, value_name = "TIME")]
    fail_above: Option<Nanos>,
    /// Start from these options, which the other ones replace (see: latlab list presets)
    #[arg(long, value_name = "NAME", value_parser = preset::names())]
    preset: Option<String>,
    /// CPUs for latlab's threads that do not measure (cyclictest --mainaffinity, rtla -H); loads
    /// are placed with on=
    #[arg(long, value_name = "LIST", value_parser = measured_cpus)]
    housekeeping: Option<CpuList>,
    /// Measure in this control group, which has to exist; loads stay outside (rtla -C)
    #[arg(long, value_name = "DIR")]
    cgroup: Option<String>,
    /// Set a knob (a kernel setting) while measuring, and restore it afterwards (see: latlab list
    /// knobs); may be given several times
    #[arg(long = "set", value_name = "KNOB=VALUE", add = complete::settings())]
    settings: Vec<Setting>,
    /// Adapt the machine while measuring, as latlab adapt does, with these mechanisms (see: latlab
    /// list mechanisms) [without a value: transparent, inherit, suppress and mode]
    #[arg(
        long,
        value_name = "MECHANISM,…",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        value_parser = super::adapt::mechanisms,
        add = complete::mechanisms()
    )]
    adapt: Option<Mechanisms>,
    /// Skip probes and loads that this machine does not support; the record lists them
    #[arg(long)]
    skip_missing: bool,
    /// Random seed for loads and for the start offset of probes (up to 100 ms; none with seed 0)
    /// [default: 0]
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    measurement: Measurement,
}

fn measured_cpus(text: &str) -> std::result::Result<CpuList, String> {
    match text.parse::<CpuList>() {
        Ok(cpus) if cpus.is_empty() => Err("it names no CPU".to_owned()),
        Ok(cpus) => Ok(cpus),
        Err(e) => Err(e.to_string()),
    }
}

impl Run {
    pub(super) fn run(&self) -> Result<()> {
        self.measurement.carry_out(&self.plan()?)
    }

    /// The targets and the output.
    pub(super) fn measurement(&self) -> &Measurement {
        &self.measurement
    }

    /// The targets and the output, where no other option was given. Refuses the others, for a scan.
    pub(super) fn only_measurement(&self) -> Result<&Measurement> {
        match self.first_given_except(&[]) {
            Some(option) => Err(Failure::failed(format!(
                "{option} is for probes: write the options of a scan after its call"
            ))),
            None => Ok(&self.measurement),
        }
    }

    /// The file of a trace, if one is given instead of probes. Refuses all other options then.
    pub(super) fn trace(&self) -> Result<Option<&Path>> {
        let is_probe = |text: &str| {
            let name = text.split(':').next().unwrap_or_default();
            PROBES.iter().any(|probe| probe.about.name == name)
        };
        let is_file = |text: &&String| {
            !is_probe(text) && (text.contains(['/', '.']) || Path::new(text).exists())
        };
        let Some(file) = self.probes.iter().find(is_file) else { return Ok(None) };
        let refused = match self.first_given_except(&["PROBE"]) {
            Some(option) => format!("{option} is for measurements, and {file} is a trace"),
            None if self.probes.len() > 1 => {
                format!("{file} is a trace: give one trace and no probe")
            }
            None => return Ok(Some(Path::new(file))),
        };
        Err(Failure::failed(refused))
    }

    /// How long `explain --always` watches and the folder for its records. Refuses the options of
    /// probes.
    pub(super) fn always(&self) -> Result<(Option<Nanos>, Option<PathBuf>)> {
        match self.first_given_except(&["--for"]) {
            Some(option) => Err(Failure::failed(format!(
                "{option} is for probes: --always watches tasks that are there"
            ))),
            None => Ok((self.time, self.measurement.folder()?)),
        }
    }

    /// Refuses the options of probes, where existing tasks are explained while loads run.
    pub(super) fn check_watching(&self) -> Result<()> {
        const ACCEPTED: &[&str] = &[
            "--load",
            "--with",
            "--for",
            "--count",
            "--stop-above",
            "--fail-above",
            "--housekeeping",
            "--set",
            "--skip-missing",
            "--adapt",
            "--seed",
        ];
        match self.first_given_except(ACCEPTED) {
            Some(option) => Err(Failure::failed(format!(
                "{option} is for probes, and --pid, --comm and --rt watch existing tasks: leave out \
                 one of the two"
            ))),
            None => Ok(()),
        }
    }

    /// The first option or argument that is given, except these.
    fn first_given_except(&self, accepted: &[&str]) -> Option<&'static str> {
        // Without `..`: an option that is added here is missing below until the compiler is satisfied.
        let Run {
            probes,
            loads,
            with,
            time,
            count,
            cpus,
            policy,
            warm_up,
            stop_above,
            fail_above,
            preset,
            housekeeping,
            cgroup,
            settings,
            adapt,
            skip_missing,
            seed,
            measurement: _,
        } = self;
        let given = [
            ("--load", !loads.is_empty()),
            ("--with", !with.is_empty()),
            ("--for", time.is_some()),
            ("--count", count.is_some()),
            ("--cpus", cpus.is_some()),
            ("--policy", policy.is_some()),
            ("--stop-above", stop_above.is_some()),
            ("--fail-above", fail_above.is_some()),
            ("--preset", preset.is_some()),
            ("--housekeeping", housekeeping.is_some()),
            ("--cgroup", cgroup.is_some()),
            ("--set", !settings.is_empty()),
            ("--skip-missing", *skip_missing),
            ("--adapt", adapt.is_some()),
            ("--warm-up", warm_up.is_some()),
            ("--seed", seed.is_some()),
            ("PROBE", !probes.is_empty()),
        ];
        let mut given = given.into_iter().filter(|(_, given)| *given).map(|(option, _)| option);
        given.find(|option| !accepted.contains(option))
    }

    /// The plan that the options describe, without a target.
    pub(super) fn plan(&self) -> Result<Plan> {
        if let Some(preset) = &self.preset {
            return self.or(&preset::run(preset)?).plan();
        }
        let policy = self.policy.iter().map(|policy| ("policy", policy.clone()));
        let policy: Vec<_> = policy.collect();
        let default = ["cyclic".to_owned()];
        let probes = if self.probes.is_empty() { &default } else { self.probes.as_slice() };
        let probes = parts(probes, |text| part::parse("probe", PROBES, text, &policy))?;
        let length = match (self.count, self.time) {
            (Some(count), _) => Length::Count(count),
            (None, time) => Length::For(time.unwrap_or(Nanos::from_secs(10))),
        };
        Ok(Plan {
            probes,
            scans: Vec::new(),
            loads: parts(&self.loads, |text| part::parse("load", LOADS, text, &[]))?,
            target: String::new(),
            with: self.with.clone(),
            cpus: self.cpus.clone().unwrap_or_default(),
            length,
            warm_up: self.warm_up.unwrap_or(Nanos::from_millis(200)),
            seed: self.seed.unwrap_or_default(),
            stop_above: self.stop_above,
            fail_above: self.fail_above,
            housekeeping: self.housekeeping.clone().unwrap_or_default(),
            cgroup: self.cgroup.clone(),
            settings: self.settings.clone(),
            skip_missing: self.skip_missing,
            adapt: self.adapt.clone().map(|Mechanisms(names)| names).unwrap_or_default(),
            explain: None,
        })
    }
}

fn parts(texts: &[String], parse: impl Fn(&str) -> Result<Part>) -> Result<Vec<Part>> {
    texts.iter().map(|text| parse(text)).collect()
}
