//! Presets of `latlab run`: names for sets of options.

use super::Run;
use crate::commands::run_command;
use clap::builder::{PossibleValue, PossibleValuesParser};
use latlab_part::failure::Result;
use latlab_part::part::About;

/// A name for options of `latlab run`.
pub(in crate::commands) struct Preset {
    pub(in crate::commands) about: About,
    /// The options, as on the command line.
    pub(in crate::commands) options: &'static str,
}

/// Every preset, in the order `latlab list presets` shows them.
pub(in crate::commands) static PRESETS: &[Preset] = &[
    preset(
        "acceptance",
        "a board under all-round load for a day, with a limit",
        "cyclic --load cpu --load memory --load disk --load hackbench --load fork --load netbench \
         --for 24h --fail-above 100us",
    ),
    preset(
        "smoke",
        "the same for a minute without a limit, for CI",
        "cyclic --load cpu --load memory --load disk --load hackbench --load fork --load netbench \
         --for 1min",
    ),
    preset(
        "cyclictest",
        "as cyclictest -S -m -p 90: no idle states, no load",
        "cyclic:interval=1ms --set cpu_dma_latency=0",
    ),
];

const fn preset(name: &'static str, summary: &'static str, options: &'static str) -> Preset {
    Preset { about: About { name, summary }, options }
}

/// The names, for clap.
pub(super) fn names() -> PossibleValuesParser {
    let value = |preset: &Preset| PossibleValue::new(preset.about.name).help(preset.about.summary);
    PossibleValuesParser::new(PRESETS.iter().map(value))
}

/// The options that a preset stands for.
pub(super) fn run(name: &str) -> Result<Run> {
    let preset = PRESETS.iter().find(|preset| preset.about.name == name);
    let options = preset.map_or("", |preset| preset.options);
    let words: Vec<String> =
        ["run"].into_iter().chain(options.split_whitespace()).map(str::to_owned).collect();
    run_command(&words, &format!("the preset {name}"))
}

/// Description of the preset of this name.
pub(in crate::commands) fn describe(name: &str) -> Option<String> {
    let preset = PRESETS.iter().find(|preset| preset.about.name == name)?;
    let About { summary, .. } = preset.about;
    let options = preset.options;
    Some(format!(
        "{name} (preset): {summary}\n\n  latlab run {options}\n\nUse it with: latlab run --preset {name}. \
         Options given besides replace these; --load replaces all loads.\n"
    ))
}

impl Run {
    /// These options, and those of `base` that are not given here.
    pub(super) fn or(&self, base: &Run) -> Run {
        let or = |own: &[String], base: &[String]| if own.is_empty() { base } else { own }.to_vec();
        let has_length = self.time.is_some() || self.count.is_some();
        let mut settings = base.settings.clone();
        settings.retain(|one| self.settings.iter().all(|own| own.knob != one.knob));
        settings.extend(self.settings.iter().cloned());
        Run {
            preset: None,
            probes: or(&self.probes, &base.probes),
            loads: or(&self.loads, &base.loads),
            time: if has_length { self.time } else { base.time },
            fail_above: self.fail_above.or(base.fail_above),
            settings,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::plan::Length;
    use latlab_core::time::Nanos;

    fn plan(words: &str) -> latlab_core::plan::Plan {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        run_command(&words, "test").unwrap().plan().unwrap()
    }

    #[test]
    fn presets_are_what_they_stand_for() {
        for preset in PRESETS {
            let name = preset.about.name;
            let options = preset.options.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(plan(&format!("run --preset {name}")), plan(&format!("run {options}")));
        }
    }

    #[test]
    fn options_replace_those_of_a_preset() {
        let given = "run nanosleep --preset acceptance --load cpu --count 5 --fail-above 1ms";
        let plan = plan(given);
        assert_eq!(plan.probes[0].name, "nanosleep");
        assert_eq!((plan.loads.len(), plan.loads[0].name.as_str()), (1, "cpu"));
        assert_eq!(plan.length, Length::Count(5));
        assert_eq!(plan.fail_above, Some(Nanos::from_millis(1)));
    }

    #[test]
    fn policy_replaces_that_of_a_preset() {
        let policy = |words: &str| plan(words).probes[0].params["policy"].clone();
        assert_eq!(policy("run --preset cyclictest"), "fifo");
        assert_eq!(policy("run --preset cyclictest --policy other"), "other");
    }

    #[test]
    fn setting_of_a_knob_replaces_that_of_a_preset() {
        let plan = plan("run --preset cyclictest --set cpu_dma_latency=10 --set ksm=0");
        let settings: Vec<_> =
            plan.settings.iter().map(|one| format!("{}={}", one.knob, one.value)).collect();
        assert_eq!(settings, ["cpu_dma_latency=10", "ksm=0"]);
    }
}
