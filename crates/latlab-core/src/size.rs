//! Sizes in bytes, as users write them: `4MiB`, `512B`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A size in bytes, with binary (`KiB`, `MiB`, `GiB`) or decimal (`kB`, `MB`, `GB`) units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

const UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// Error for a text that is not a size; the message says how to write one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a size: write a whole number and a unit (B, KiB, MiB, GiB, kB, MB, GB), such as \
     4MiB"
)]
pub struct SizeError(String);

impl FromStr for Bytes {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Bytes, SizeError> {
        let wrong = || SizeError(text.to_owned());
        let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, unit) = text.split_at(split);
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(*scale).map(Bytes).ok_or_else(wrong)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |name: &str, scale: u64| {
            name.contains('i') && self.0 >= scale && self.0.is_multiple_of(scale)
        };
        let (name, scale) =
            UNITS.iter().rfind(|(name, scale)| fits(name, *scale)).unwrap_or(&("B", 1));
        write!(f, "{}{name}", self.0 / scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn binary_and_decimal_units_differ() {
        assert_eq!("4MiB".parse(), Ok(Bytes(4 << 20)));
        assert_eq!("4MB".parse(), Ok(Bytes(4_000_000)));
        for text in ["", "4", "4M", "MiB", "-1B", "99999999999999GiB"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn size_survives_formatting_and_parsing(n in any::<u64>()) {
            prop_assert_eq!(Bytes(n).to_string().parse(), Ok(Bytes(n)));
        }
    }
}
