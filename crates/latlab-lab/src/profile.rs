//! Profiles: named combinations of a kernel, its command line and run-time settings.

use crate::arch::{Arch, ArchName};
use crate::kernel::Source;
use latlab_core::size::Bytes;
use latlab_core::suggest;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_sys::file;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A kernel as the laboratory boots it: a TOML file in `profile/`, or a file of the user.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name on the command line: the file's name.
    #[serde(skip)]
    pub name: String,
    /// Its distinctive settings, in one line.
    pub summary: String,
    /// The kernels of the papers that it models.
    #[serde(default)]
    pub paper: String,
    /// Whether it stands for its release of Linux, and no other kernel of the same kind does.
    #[serde(default)]
    pub release: bool,
    /// The architecture of the guest; by default the kernel's.
    #[serde(default)]
    pub arch: Option<ArchName>,
    /// How it differs on other architectures, by Debian's name: `[on.arm64]`.
    #[serde(default)]
    pub on: BTreeMap<String, Differences>,
    /// The source of the kernel.
    pub kernel: Source,
    /// Additional kernel parameters.
    #[serde(default)]
    pub cmdline: String,
    /// Modules loaded before measuring.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Values written to files of the guest (debugfs, sysctl) before measuring, by path.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The guest's memory: whole mebibytes, as QEMU takes it.
    #[serde(default = "memory", deserialize_with = "size")]
    pub memory: Bytes,
    /// The guest's processors. Where QEMU translates, several processors take turns, so that one waits
    /// for another as no real processor does: useful for races, not for latencies.
    #[serde(default = "cpus")]
    pub cpus: u32,
}

impl Profile {
    /// A kernel without settings.
    pub fn plain(name: &str, kernel: Source) -> Profile {
        Profile {
            name: name.to_owned(),
            summary: "your own kernel without settings".to_owned(),
            paper: String::new(),
            release: false,
            arch: None,
            on: BTreeMap::new(),
            kernel,
            cmdline: String::new(),
            modules: Vec::new(),
            files: BTreeMap::new(),
            memory: memory(),
            cpus: cpus(),
        }
    }

    /// The same profile for this architecture. `Unsupported` where a file does not say how it differs.
    fn on_arch(self, arch: &'static Arch) -> Result<Profile> {
        let name = format!("{}@{}", self.name, arch.debian);
        let is_any = matches!(self.kernel, Source::Image(_) | Source::Added(_));
        let differences = match self.on.get(arch.debian) {
            Some(differences) => differences.clone(),
            None if is_any || self.arch.unwrap_or_default().0 == arch => Differences::default(),
            None => return Err(unavailable(&name, arch)),
        };
        Ok(Profile {
            name,
            arch: Some(ArchName(arch)),
            summary: differences.summary.unwrap_or(self.summary),
            kernel: differences.kernel.unwrap_or(self.kernel),
            cmdline: differences.cmdline.unwrap_or(self.cmdline),
            files: differences.files.unwrap_or(self.files),
            ..self
        })
    }
}

impl Profile {
    /// Refuses a guest without a CPU, or with memory that QEMU does not take.
    fn check_memory(&self) -> Result<()> {
        let (name, memory) = (&self.name, self.memory);
        if self.cpus == 0 || memory.0 < 128 << 20 {
            let why = "a guest needs at least 1 CPU and 128MiB of memory";
            return Err(failed(&format!("the profile {name}"), why));
        }
        if memory.0.is_multiple_of(1 << 20) {
            return Ok(());
        }
        let why = format!(
            "a guest's memory is a whole number of MiB, which {memory} is not: write {}MiB",
            memory.0 >> 20
        );
        Err(failed(&format!("the profile {name}"), why))
    }
}

/// How a profile differs on another architecture.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Differences {
    /// One line about it.
    pub summary: Option<String>,
    /// Where its kernel comes from.
    pub kernel: Option<Source>,
    /// Words for the kernel's command line.
    pub cmdline: Option<String>,
    /// Texts that the guest writes to files before it measures, by path.
    pub files: Option<BTreeMap<String, String>>,
}

/// The failure where a profile is not made for an architecture.
fn unavailable(name: &str, arch: &Arch) -> Failure {
    let all = shipped().into_iter().filter(|profile| profile.on.contains_key(arch.debian));
    let all: Vec<String> = all.map(|profile| profile.name + "@" + arch.debian).collect();
    let all = all.join(", ");
    Failure::unsupported(format!(
        "the profile {name} does not exist: for {} there are {all}, or your own kernel",
        arch.title
    ))
}

fn memory() -> Bytes {
    Bytes(1 << 30)
}

fn cpus() -> u32 {
    1
}

/// A size with its unit, as `512MiB`.
fn size<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Bytes, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

// `SHIPPED`: name and text of every file in `profile/`, by name.
include!(concat!(env!("OUT_DIR"), "/profiles.rs"));

/// The names of the profiles that latlab ships.
pub fn names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// Every profile that latlab ships.
pub fn shipped() -> Vec<Profile> {
    let read = |(name, text): &(&str, &str)| read(name, text).expect("the tests have read it");
    SHIPPED.iter().map(read).collect()
}

/// The profile named after `lab:` or `vm:` on the command line: a shipped name, the name of an
/// added kernel, or the path of a kernel or of a profile. `@arm64` after it chooses the architecture,
/// and then `,memory=2GiB` the guest's memory.
pub fn find(whole: &str, added: &[String]) -> Result<Profile> {
    let Some((name, memory)) = whole.rsplit_once(MEMORY) else { return of_arch(whole, added) };
    let memory = memory.parse().context(whole)?;
    let profile = Profile { memory, ..of_arch(name, added)? };
    profile.check_memory().map(|()| profile)
}

/// What precedes the memory of a guest in the name of a profile.
const MEMORY: &str = ",memory=";

fn of_arch(name: &str, added: &[String]) -> Result<Profile> {
    match name.rsplit_once('@') {
        // A path may contain the character.
        Some((_, arch)) if name.contains('/') && Arch::named(arch).is_err() => usual(name, added),
        Some((name, arch)) => usual(name, added)?.on_arch(Arch::named(arch)?),
        None => usual(name, added),
    }
}

fn usual(name: &str, added: &[String]) -> Result<Profile> {
    if let Some((name, text)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
        return read(name, text);
    }
    if name.contains('/') {
        return at(name);
    }
    if added.iter().any(|added| added == name) {
        return Ok(Profile::plain(name, Source::Added(name.to_owned())));
    }
    let names: Vec<&str> =
        SHIPPED.iter().map(|(name, _)| *name).chain(added.iter().map(String::as_str)).collect();
    Err(Failure::failed(format!(
        "there is no profile '{name}': {} (the path of a kernel or a profile must contain a '/')",
        suggest::hint(name, &names)
    )))
}

fn at(path: &str) -> Result<Profile> {
    if Path::new(path).extension().is_some_and(|extension| extension == "toml") {
        let text = file::read_text(Path::new(path)).context(path)?;
        return read(path, &text);
    }
    Ok(Profile::plain(path, Source::Image(path.into())))
}

/// Reads a profile from TOML. Fails with the place of what is wrong.
pub fn read(name: &str, text: &str) -> Result<Profile> {
    let profile: Profile = toml::from_str(text).map_err(|e| {
        let before = e.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        failed(&format!("the profile {name}, line {line}"), e.message().replace('\n', " "))
    })?;
    profile.on.keys().try_for_each(|arch| Arch::named(arch).map(drop))?;
    let profile = Profile { name: name.to_owned(), ..profile };
    profile.check_memory().map(|()| profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_part::failure::FailureKind;

    #[test]
    fn shipped_profiles_are_valid_and_documented() {
        for profile in shipped() {
            assert!(profile.summary.len() <= 72, "{}", profile.name);
            assert!(!profile.paper.is_empty(), "{}", profile.name);
            assert!(find(&profile.name, &[]).is_ok());
        }
    }

    #[test]
    fn find_suggests_the_nearest_profile() {
        let error = find("rt-lasy", &[]).unwrap_err().to_string();
        assert!(error.contains("rt-lazy"), "{error}");
    }

    #[test]
    fn find_chooses_the_architecture_after_the_name() {
        let kernel = |name: &str| find(name, &["mine".to_owned()]).map(|profile| profile.kernel);
        let package = |name: &str| Ok(Source::Package(name.to_owned()));
        assert_eq!(kernel("rt"), package("linux-image-6.12-rt-amd64"));
        assert_eq!(kernel("rt@amd64"), package("linux-image-6.12-rt-amd64"));
        assert_eq!(kernel("rt@arm64"), package("linux-image-6.12-rt-arm64"));
        assert_eq!(kernel("mine@arm64"), Ok(Source::Added("mine".to_owned())));
        assert_eq!(kernel("./linux@2/Image"), Ok(Source::Image("./linux@2/Image".into())));
        assert_eq!(kernel("./linux@2/Image@arm64"), Ok(Source::Image("./linux@2/Image".into())));
        let error = kernel("rt@arm65").unwrap_err().to_string();
        assert_eq!(error, "there is no architecture 'arm65': did you mean arm64 or amd64?");
        let error = kernel("monolithic@arm64").unwrap_err();
        assert_eq!(error.kind, FailureKind::Unsupported, "{error}");
        assert!(error.to_string().contains("rt@arm64, standard@arm64"), "{error}");
    }

    #[test]
    fn find_gives_the_guest_the_memory_after_the_name() {
        let memory = |name: &str| find(name, &[]).map(|profile| (profile.name, profile.memory.0));
        assert_eq!(memory("rt"), Ok(("rt".to_owned(), 1 << 30)));
        assert_eq!(memory("rt,memory=256MiB"), Ok(("rt".to_owned(), 256 << 20)));
        assert_eq!(memory("rt@arm64,memory=2GiB"), Ok(("rt@arm64".to_owned(), 2 << 30)));
        let said = |name: &str| memory(name).unwrap_err().to_string();
        assert!(said("rt,memory=64MiB").contains("at least 1 CPU and 128MiB"));
        assert!(said("rt,memory=1GB").contains("write 953MiB"));
        assert!(said("rt,memory=much").starts_with("rt,memory=much: "));
        assert!(said("rx,memory=2GiB").contains("there is no profile 'rx'"));
    }

    #[test]
    fn read_refuses_wrong_keys_and_sizes() {
        let kernel = "summary = 'x'\nkernel = { image = '/boot/vmlinuz' }\n";
        let error =
            read("mine.toml", &format!("{kernel}cmdlin = 'quiet'")).unwrap_err().to_string();
        assert!(error.contains("cmdlin") && error.contains("line 3"), "{error}");
        let half = read("mine.toml", &format!("{kernel}memory = '512MiB'")).unwrap();
        assert_eq!(half.memory, Bytes(512 << 20));
        let error = read("mine.toml", &format!("{kernel}cpus = 0")).unwrap_err();
        assert!(error.to_string().contains("at least 1 CPU"), "{error}");
        let error = read("mine.toml", &format!("{kernel}memory = '1GB'")).unwrap_err().to_string();
        assert!(error.contains("whole number of MiB") && error.contains("953MiB"), "{error}");
        assert!(read("mine.toml", kernel).is_ok());
    }
}
