//! Debian's archive through apt: with the settings of this machine, or with package lists of latlab's
//! own, which have other suites and architectures. The mirror is always this machine's.

use super::store::Store;
use super::work::{ask, first_error, interrupted, run, tool};
use super::{Progress, cache};
use latlab_part::failure::{Context as _, Failure, FailureKind, Result};
use latlab_sys::file;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A set of package lists that apt can search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Archive {
    /// The lists of this machine.
    Machine,
    /// Lists in this folder of the cache, with its own configuration of apt.
    Own(PathBuf),
}

/// The suites of Debian that are read. They include the security updates if this machine has them.
const SUITES: &[&str] = &[
    "bookworm",
    "bookworm-security",
    "bookworm-backports",
    "trixie",
    "trixie-security",
    "trixie-backports",
    "sid",
];

/// The suites by which a machine's sources name Debian's main archive.
const MAIN: &[&str] = &[
    "oldoldstable",
    "oldstable",
    "stable",
    "testing",
    "unstable",
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "duke",
    "sid",
];

/// Debian's keys, in the package debian-archive-keyring.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Lists that are younger are not asked for anew.
const FRESH: Duration = Duration::from_hours(1);

/// The file whose modification time is the time of the last complete update.
const UPDATED: &str = "updated";

impl Archive {
    /// The lists for one of Debian's architectures, updated if they are old. If that fails, older
    /// lists are used, with a note.
    pub fn own(architecture: &str, progress: &mut dyn Progress) -> Result<Archive> {
        let folder = cache()?.join("apt").join(architecture);
        let key = format!("apt-{architecture}");
        // Only its lock is needed: two processes must not update the same lists.
        let _lock = Store::open()?.begin(&key, "reading Debian's package lists", progress)?;
        let archive = Archive::Own(folder.clone());
        if is_fresh(&folder) {
            return Ok(archive);
        }
        configure(&folder, architecture, &Mirror::of_machine()?)?;
        match archive.update(&folder, progress) {
            Ok(()) => write(&folder.join(UPDATED), b"")?,
            Err(failure) if failure != interrupted() && has_lists(&folder) => {
                progress.note(&format!("{failure}; until then the older package lists are used"));
            }
            Err(failure) => return Err(failure),
        }
        Ok(archive)
    }

    /// A program of apt that uses these lists.
    pub fn tool(&self, program: &str) -> Command {
        let mut command = tool(program);
        if let Archive::Own(folder) = self {
            command.arg("-c").arg(folder.join("apt.conf"));
        }
        command
    }

    /// What to do if a package of these lists can't be downloaded. Own lists are updated the next
    /// time.
    pub fn doubt(&self) -> &'static str {
        match self {
            Archive::Machine => "run apt-get update and try again",
            Archive::Own(folder) => {
                // If it remains, the lists are updated within the hour.
                let _ = fs::remove_file(folder.join(UPDATED));
                "nothing was changed: try again, in an hour if Debian's archive is being updated"
            }
        }
    }

    fn update(&self, folder: &Path, progress: &mut dyn Progress) -> Result<()> {
        progress.note("reading Debian's package lists (some 30 MB)");
        let log = folder.join("update.log");
        // Only the last messages matter; if it remains, they are at its end.
        let _ = fs::remove_file(&log);
        let mut update = self.tool("apt-get");
        update.args(["update", "-q", "-o", "APT::Update::Error-Mode=any"]);
        run(&update, &log, progress, &mut |_| ()).map_err(|failure| match failure.kind {
            FailureKind::Failed => Failure::failed(format!(
                "Debian's package lists can't be read ({}): try again, in an hour if the archive is \
                 being updated",
                first_message(&log).unwrap_or(failure.text)
            )),
            _ => failure,
        })
    }
}

fn is_fresh(folder: &Path) -> bool {
    let updated = fs::metadata(folder.join(UPDATED)).and_then(|there| there.modified());
    updated.is_ok_and(|updated| updated.elapsed().is_ok_and(|age| age < FRESH))
}

fn has_lists(folder: &Path) -> bool {
    let entries = fs::read_dir(folder.join("lists")).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().contains("_Packages"))
}

/// The first error in apt's output.
fn first_message(log: &Path) -> Option<String> {
    first_error(&String::from_utf8_lossy(&fs::read(log).ok()?))
}

/// Where this machine gets Debian's packages.
#[derive(Debug, PartialEq, Eq)]
struct Mirror {
    main: String,
    security: Option<String>,
}

impl Mirror {
    fn of_machine() -> Result<Mirror> {
        // Apt prints the addresses that it would read, and reads nothing.
        let said = ask(tool("apt-get").args(["update", "--print-uris"]))?;
        Mirror::among(&said).ok_or_else(|| {
            Failure::unsupported("the apt sources of this machine do not name Debian's archive")
        })
    }

    /// Reads lines such as `'http://mirror/debian/dists/bookworm/InRelease' mirror_… 0`.
    fn among(said: &str) -> Option<Mirror> {
        let address =
            |line: &str| Some(line.split('\'').nth(1)?.strip_suffix("/InRelease")?.to_owned());
        let addresses: Vec<String> = said.lines().filter_map(address).collect();
        let of = |wanted: &dyn Fn(&str) -> bool| {
            let pairs = addresses.iter().filter_map(|address| address.rsplit_once("/dists/"));
            pairs.filter(|(_, suite)| wanted(suite)).map(|(mirror, _)| mirror.to_owned()).next()
        };
        let main = of(&|suite| MAIN.contains(&suite))?;
        Some(Mirror { main, security: of(&|suite| suite.ends_with("-security")) })
    }

    fn sources(&self, architecture: &str) -> String {
        let line = |suite: &&str| {
            let mirror =
                if suite.ends_with("-security") { self.security.as_ref()? } else { &self.main };
            Some(format!("deb [arch={architecture} signed-by={KEYS}] {mirror} {suite} main\n"))
        };
        SUITES.iter().filter_map(line).collect()
    }
}

/// Writes apt's configuration for lists in this folder. It starts no hooks of this machine, and reads
/// nothing but the lists of packages.
fn configure(folder: &Path, architecture: &str, mirror: &Mirror) -> Result<()> {
    if !Path::new(KEYS).exists() {
        return Err(Failure::unsupported(format!(
            "Debian's keys ({KEYS}) are missing: install the package debian-archive-keyring"
        )));
    }
    for place in ["lists/partial", "archives/partial"] {
        let place = folder.join(place);
        fs::create_dir_all(&place).at(&place)?;
    }
    write(&folder.join("sources.list"), mirror.sources(architecture).as_bytes())?;
    write(&folder.join("status"), b"")?;
    let here = folder.display();
    let settings = format!(
        "#clear APT::Update;\n\
         #clear APT::Architectures;\n\
         APT::Architecture \"{architecture}\";\n\
         APT::Architectures {{ \"{architecture}\"; }};\n\
         APT::Sandbox::User \"root\";\n\
         Dir::State \"{here}\";\n\
         Dir::State::lists \"{here}/lists\";\n\
         Dir::State::status \"{here}/status\";\n\
         Dir::Cache \"{here}\";\n\
         Dir::Cache::archives \"{here}/archives\";\n\
         Dir::Cache::pkgcache \"packages.bin\";\n\
         Dir::Cache::srcpkgcache \"\";\n\
         Dir::Etc::sourcelist \"{here}/sources.list\";\n\
         Dir::Etc::sourceparts \"/dev/null\";\n\
         Dir::Etc::preferences \"/dev/null\";\n\
         Dir::Etc::preferencesparts \"/dev/null\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::GzipIndexes \"true\";\n\
         Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
         Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled \"false\";\n"
    );
    write(&folder.join("apt.conf"), settings.as_bytes())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    file::write_atomically(path, bytes).at(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirror_is_that_of_the_machines_sources() {
        let said = "'http://other/repo/dists/nodistro/InRelease' other 0 \n\
                    'http://m/debian/dists/bookworm-updates/InRelease' m_u 0 \n\
                    'http://m/debian/dists/bookworm/InRelease' m 0 \n\
                    'http://s/debian-security/dists/bookworm-security/InRelease' s 0 \n\
                    'http://m/debian/dists/bookworm/main/binary-amd64/Packages.xz' p 0 \n";
        let mirror = Mirror::among(said).unwrap();
        assert_eq!(
            (mirror.main.as_str(), mirror.security.as_deref()),
            ("http://m/debian", Some("http://s/debian-security"))
        );
        let sources = mirror.sources("arm64");
        let lines: Vec<&str> = sources.lines().collect();
        assert_eq!(lines.len(), SUITES.len());
        assert!(lines[1].starts_with("deb [arch=arm64 signed-by=/usr/share/keyrings/"));
        assert!(lines[1].ends_with("] http://s/debian-security bookworm-security main"));
        let others = said.replace("/bookworm", "/jammy");
        assert_eq!(Mirror::among(&others), None);
    }
}
