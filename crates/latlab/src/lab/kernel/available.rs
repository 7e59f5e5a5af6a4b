//! The kernels that Debian's archive has: the newest of each series and kind.

use super::archive::Archive;
use super::store::version_key;
use super::{Progress, apt};
use crate::failure::Result;
use std::collections::BTreeMap;

/// A kernel that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// `linux-image-7.3.4+deb13-rt-amd64`.
    pub(crate) package: String,
    pub(crate) version: String,
    /// `trixie-backports`.
    pub(crate) suite: String,
}

/// The newest kernel of each series and kind for one of Debian's architectures, oldest first.
pub(crate) fn offers(architecture: &str, progress: &mut dyn Progress) -> Result<Vec<Offer>> {
    let archive = Archive::own(architecture, progress)?;
    let mut names = apt::names(&archive, START)?;
    names.retain(|name| series_and_kind(name, architecture).is_some());
    Ok(newest(&apt::suites(&archive, &names)?, architecture))
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
fn newest(said: &str, architecture: &str) -> Vec<Offer> {
    let mut newest: BTreeMap<_, Offer> = BTreeMap::new();
    for offer in said.lines().filter_map(offer) {
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
        let offers = newest(said, "amd64");
        let shown: Vec<(&str, &str)> =
            offers.iter().map(|offer| (offer.package.as_str(), offer.suite.as_str())).collect();
        let expected = [
            ("linux-image-6.1.0-56-amd64", "bookworm-security"),
            ("linux-image-7.2.13+deb14-rt-amd64", "sid"),
            ("linux-image-7.3.4+deb13-rt-amd64", "trixie-backports"),
        ];
        assert_eq!(shown, expected);
    }
}
