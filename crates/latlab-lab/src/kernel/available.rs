//! The kernels that Debian's archive has: the newest of each series and kind.

use super::archive::Archive;
use super::package::parts as parts_of;
use super::store::version_key;
use super::{Progress, apt};
use latlab_part::failure::{Failure, Result};
use std::collections::{BTreeMap, BTreeSet};

/// A kernel that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// `linux-image-7.3.4+deb13-rt-amd64`.
    pub package: String,
    /// Its version, as Debian numbers it.
    pub version: String,
    /// `trixie-backports`.
    pub suite: String,
}

/// The newest kernel of each series and kind for one of Debian's architectures, oldest first.
pub(super) fn offers(architecture: &str, progress: &mut dyn Progress) -> Result<Vec<Offer>> {
    let archive = Archive::own(architecture, progress)?;
    let mut names = apt::names(&archive, START)?;
    names.retain(|name| series_and_kind(name, architecture).is_some());
    if names.is_empty() {
        let why =
            format!("the package lists of this machine's mirror have no kernel for {architecture}");
        return Err(Failure::failed(why));
    }
    let all = read(&apt::suites(&archive, &names)?);
    let parts = parts(&apt::show_all(&archive, &names)?);
    let needed: Vec<String> = parts.values().flatten().cloned().collect();
    let there = if needed.is_empty() { String::new() } else { apt::suites(&archive, &needed)? };
    Ok(newest(whole(all, &parts, &read(&there)), architecture))
}

/// The packages among which each kernel is divided, by its name.
fn parts(packages: &[apt::Package]) -> BTreeMap<String, Vec<String>> {
    let of = |package: &apt::Package| (package.name.clone(), parts_of(package).cloned().collect());
    packages.iter().map(of).collect()
}

/// The kernels whose `parts` are all `there`. Some parts are missing while Debian's archive is
/// being updated, and sometimes later too.
fn whole(all: Vec<Offer>, parts: &BTreeMap<String, Vec<String>>, there: &[Offer]) -> Vec<Offer> {
    let there: BTreeSet<&str> = there.iter().map(|part| part.package.as_str()).collect();
    let is_whole = |offer: &Offer| {
        let mut parts = parts.get(&offer.package).into_iter().flatten();
        parts.all(|part| there.contains(part.as_str()))
    };
    all.into_iter().filter(is_whole).collect()
}

const START: &str = "linux-image-";

/// `7.3` and `rt-amd64` of `linux-image-7.3.4+deb13-rt-amd64`; none if this is not a kernel for the
/// architecture, as packages of a series and of debug information are not.
fn series_and_kind<'a>(package: &'a str, architecture: &str) -> Option<(String, &'a str)> {
    let (number, kind) = package.strip_prefix(START)?.split_once('-')?;
    let kind = kind.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
    let mut numbers = number.split(['.', '+']);
    let (major, minor, _patch) = (numbers.next()?, numbers.next()?, numbers.next()?);
    major.parse::<u32>().ok()?;
    kind.ends_with(architecture).then(|| (format!("{major}.{minor}"), kind))
}

/// Reads the answer of [`apt::suites`].
fn read(said: &str) -> Vec<Offer> {
    said.lines().filter_map(offer).collect()
}

fn newest(offers: Vec<Offer>, architecture: &str) -> Vec<Offer> {
    let mut newest: BTreeMap<_, Offer> = BTreeMap::new();
    for offer in offers {
        let Some((series, kind)) = series_and_kind(&offer.package, architecture) else { continue };
        let key = (version_key(&series), kind.to_owned());
        let is_older = |there: &Offer| version_key(&there.version) < version_key(&offer.version);
        if newest.get(&key).is_none_or(is_older) {
            newest.insert(key, offer);
        }
    }
    newest.into_values().collect()
}

fn offer(line: &str) -> Option<Offer> {
    let mut fields = line.split('|').map(str::trim);
    let (package, version, place) = (fields.next()?, fields.next()?, fields.next()?);
    let (suite, _component) = place.split_whitespace().nth(1)?.split_once('/')?;
    let [package, version, suite] = [package, version, suite].map(str::to_owned);
    Some(Offer { package, version, suite })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_kernel_of_each_series_and_kind_is_offered() {
        let said = "\
linux-image-6.1.0-9-amd64 | 6.1.99-1 | http://m/debian bookworm/main amd64 Packages
linux-image-6.1.0-56-amd64 | 6.1.192-2 | http://s bookworm-security/main amd64 Packages
linux-image-6.12-amd64 | 6.12.117-1~deb12u1 | http://s bookworm-security/main amd64 Packages
linux-image-7.3.4+deb13-rt-amd64 | 7.3.4-1~bpo13+1 | http://m trixie-backports/main amd64 Packages
linux-image-7.2.13+deb14-rt-amd64 | 7.2.13-1 | http://m sid/main amd64 Packages
linux-image-6.1.0-56-amd64-dbg | 6.1.192-2 | http://s bookworm-security/main amd64 Packages
";
        let offers = newest(read(said), "amd64");
        let shown: Vec<(&str, &str)> =
            offers.iter().map(|offer| (offer.package.as_str(), offer.suite.as_str())).collect();
        let expected = [
            ("linux-image-6.1.0-56-amd64", "bookworm-security"),
            ("linux-image-7.2.13+deb14-rt-amd64", "sid"),
            ("linux-image-7.3.4+deb13-rt-amd64", "trixie-backports"),
        ];
        assert_eq!(shown, expected);
    }

    /// An older kernel of the series is offered where the newest one lacks a part.
    #[test]
    fn kernel_of_which_a_part_is_missing_is_not_offered() {
        let line = |package: &str| {
            let version = package.split('-').nth(2).unwrap();
            format!("{package} | {version}-1 | http://m sid/main amd64 Packages\n")
        };
        let all: String = ["8", "9"].map(|n| line(&format!("linux-image-7.1.{n}-amd64"))).concat();
        let package = |n: u32| apt::Package {
            name: format!("linux-image-7.1.{n}-amd64"),
            version: "7.1.9-1".to_owned(),
            depends: ["initramfs-tools", "linux-base", "linux-binary"]
                .map(|part| format!("{part}-7.1.{n}-amd64"))
                .to_vec(),
            size: 1,
            unpacked: 1,
        };
        let parts = parts(&[8, 9].map(package));
        let offered = |there: &[&str]| {
            let there: String = there.iter().map(|part| line(part)).collect();
            let offers = newest(whole(read(&all), &parts, &read(&there)), "amd64");
            offers.into_iter().map(|offer| offer.package).collect::<Vec<_>>()
        };
        let [of_8, of_9] =
            [8, 9].map(|n| ["base", "binary"].map(|part| format!("linux-{part}-7.1.{n}-amd64")));
        let of = |parts: &[String]| offered(&parts.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(of(&[&of_8[..], &of_9].concat()), ["linux-image-7.1.9-amd64"]);
        assert_eq!(of(&[&of_8[..], &of_9[..1]].concat()), ["linux-image-7.1.8-amd64"]);
        assert_eq!(of(&of_9[1..]), Vec::<String>::new());
        assert_eq!(newest(whole(read(&all), &BTreeMap::new(), &[]), "amd64").len(), 1, "no parts");
    }
}
