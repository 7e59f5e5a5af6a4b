//! What each fuzz target does with its input: it parses the input as latlab does, uses the result as
//! latlab does, and asserts what must hold for any input.
//!
//! libFuzzer runs them in `make fuzz`; the tests replay the kept corpus and changes of it.
#![forbid(unsafe_code)]

pub mod programs;
pub mod records;
pub mod texts;

/// A fuzz target: it panics where an input reveals a defect.
pub type Target = fn(&[u8]);

/// Every fuzz target by the name of its file and of its corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("adapt_log", programs::adapt_log),
    ("bound", records::bound),
    ("cell", programs::cell),
    ("check", programs::check),
    ("claim", texts::claim),
    ("configuration", texts::configuration),
    ("cpio", programs::cpio),
    ("cpulist", texts::cpulist),
    ("debugger", programs::debugger),
    ("diagnosis", programs::diagnosis),
    ("elf", programs::elf),
    ("events", programs::events),
    ("foreign", texts::foreign),
    ("histogram", records::histogram),
    ("http", programs::http),
    ("image", programs::image),
    ("journal", programs::journal),
    ("kernel_facts", programs::kernel_facts),
    ("kernel_image", programs::kernel_image),
    ("kernel_module", programs::kernel_module),
    ("knob", programs::knob),
    ("marks", records::marks),
    ("message", programs::message),
    ("misses", records::misses),
    ("package", programs::package),
    ("part", programs::part),
    ("path", records::path),
    ("plan", programs::plan),
    ("profile", programs::profile),
    ("protocol", texts::protocol),
    ("record", records::record),
    ("recording", texts::recording),
    ("report", records::report),
    ("setting", texts::setting),
    ("size", texts::size),
    ("slurm", programs::slurm),
    ("ssh", programs::ssh),
    ("status", programs::status),
    ("study", texts::study),
    ("symbols", texts::symbols),
    ("terminal", programs::terminal),
    ("time", texts::time),
    ("trace", records::trace),
    ("window", programs::window),
];

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::random::Random;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Changed inputs of each target, besides the corpus itself.
    const CHANGED: u32 = 500;

    fn here(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
    }

    /// The names in a folder, without extension.
    fn names(folder: &str) -> BTreeSet<String> {
        let entries = fs::read_dir(here(folder)).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect()
    }

    /// The kept inputs of a target, in the order of their names.
    fn corpus(target: &str) -> Vec<Vec<u8>> {
        let folder = here("corpus").join(target);
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.collect::<BTreeSet<_>>().iter().map(|path| fs::read(path).unwrap()).collect()
    }

    /// An input with a few parts left out, overwritten, or replaced by parts of another one.
    fn changed(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
        let mut input = corpus[random.below(corpus.len())].clone();
        let other = &corpus[random.below(corpus.len())];
        for _ in 0..=random.below(3) {
            let at = random.below(input.len() + 1);
            let end = (at + random.below(16)).min(input.len());
            let from = random.below(other.len() + 1);
            let part = &other[from..(from + random.below(16)).min(other.len())];
            match (random.below(3), u8::try_from(random.below(256)).unwrap()) {
                (0, _) => drop(input.splice(at..end, [])),
                (1, byte) => input[at..end].iter_mut().take(1).for_each(|one| *one = byte),
                _ => drop(input.splice(at..end, part.iter().copied())),
            }
        }
        input
    }

    #[test]
    fn target_has_a_file_and_a_corpus() {
        let targets: BTreeSet<String> =
            TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(targets, names("fuzz_targets"));
        assert_eq!(targets, names("corpus"));
        assert!(TARGETS.iter().all(|(name, _)| !corpus(name).is_empty()));
    }

    #[test]
    fn corpus_and_changes_of_it_reveal_no_defect() {
        for (name, target) in TARGETS {
            let corpus = corpus(name);
            let mut random = Random::new(1);
            let changes = (0..CHANGED).map(|_| changed(&corpus, &mut random));
            for input in corpus.iter().cloned().chain(changes) {
                let outcome = std::panic::catch_unwind(|| target(&input));
                assert!(outcome.is_ok(), "{name}: {:?}", String::from_utf8_lossy(&input));
            }
        }
    }
}
