//! The innermost function that nearly all of a path ran in.

use super::{IDLE, PROGRAM, Step};
use std::collections::HashMap;

/// The share of a path that counts as all of it, in per cent: the entry into the kernel and the
/// return from it may lie outside of the function.
const NEARLY_ALL: u64 = 90;

/// Returns the function that, callees included, executed the fewest instructions that are still
/// nearly all of the path.
pub(super) fn innermost(steps: &[Step]) -> Option<&str> {
    let mut within: HashMap<&str, u64> = HashMap::new();
    let mut callers: Vec<&Step> = Vec::new();
    let mut whole = 0;
    for step in steps {
        callers.truncate(callers.partition_point(|caller| caller.depth < step.depth));
        callers.push(step);
        whole += step.instructions;
        for (depth, caller) in callers.iter().enumerate() {
            // A recursive function counts once.
            let again = callers[..depth].iter().any(|other| other.function == caller.function);
            if !again {
                *within.entry(&caller.function).or_default() += step.instructions;
            }
        }
    }
    let nearly_all = |(name, sum): &(&str, u64)| {
        *sum * 100 >= whole * NEARLY_ALL && *name != PROGRAM && *name != IDLE
    };
    let candidates = within.into_iter().filter(nearly_all);
    candidates.min_by_key(|(name, sum)| (*sum, *name)).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &[(&str, u64, u32)]) -> Vec<Step> {
        let step = |(function, instructions, depth): &(&str, u64, u32)| Step {
            function: (*function).to_owned(),
            instructions: *instructions,
            depth: *depth,
        };
        text.iter().map(step).collect()
    }

    #[test]
    fn innermost_contains_nearly_all_of_the_path() {
        let clearing = [("clear", 1_000, 3), ("zero", 9, 2), ("clear", 1_000, 3), ("zero", 9, 2)];
        let mut path = steps(&[("fault", 30, 1), ("zero", 5, 2)]);
        path.extend(steps(&clearing));
        assert_eq!(innermost(&path), Some("clear"));
        // Where two functions share the work, it is the one that calls both.
        path.extend(steps(&[("copy", 1_000, 3), ("zero", 9, 2), ("fault", 9, 1)]));
        assert_eq!(innermost(&path), Some("zero"));
        path.extend(steps(&[("other", 5_000, 0)]));
        assert_eq!(innermost(&path), None);
    }
}
