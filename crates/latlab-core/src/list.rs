//! Lists of values separated by slashes, as users write them: `0/10/25`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// At least one value, without duplicates, in the given order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct List<T>(Vec<T>);

impl<T: PartialEq + fmt::Display> List<T> {
    /// Parses the values between the slashes with `one`.
    pub fn read(text: &str, one: impl Fn(&str) -> Result<T, String>) -> Result<List<T>, String> {
        let all = text.split('/').map(one).collect::<Result<Vec<T>, String>>()?;
        match (1..all.len()).find(|nth| all[..*nth].contains(&all[*nth])) {
            Some(nth) => Err(format!("{} is given twice", all[nth])),
            None => Ok(List(all)),
        }
    }
}

impl<T> List<T> {
    /// The values, in order.
    pub fn get(&self) -> &[T] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbers(text: &str) -> Result<List<u32>, String> {
        List::read(text, |word| word.parse().map_err(|_| format!("'{word}' is not a number")))
    }

    #[test]
    fn list_refuses_invalid_and_duplicate_values() {
        assert_eq!(numbers("7").unwrap().get(), [7]);
        assert_eq!(numbers("5/6/05"), Err("5 is given twice".to_owned()));
        for (text, wrong) in [("", ""), ("1/", ""), ("1/x/2", "x")] {
            assert_eq!(numbers(text), Err(format!("'{wrong}' is not a number")));
        }
    }

    proptest! {
        #[test]
        fn list_keeps_its_order(values in prop::collection::hash_set(any::<u32>(), 1..20)) {
            let values: Vec<u32> = values.into_iter().collect();
            let words: Vec<String> = values.iter().map(u32::to_string).collect();
            let read = numbers(&words.join("/"));
            prop_assert_eq!(read.as_ref().map(List::get), Ok(values.as_slice()));
        }
    }
}
