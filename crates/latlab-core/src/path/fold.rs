//! Shortening of a path: the deepest calls become part of their callers.

use super::RawStep;

/// Maximum number of steps in a path.
const MAX_STEPS: usize = 1_000;

/// Returns the path with the deepest calls folded into their callers until it is short enough.
/// Where all steps have the same depth, pairs of steps are joined under the name of the longer one.
pub(super) fn fold(steps: &[RawStep]) -> Vec<RawStep> {
    let mut steps = steps.to_vec();
    while steps.len() > MAX_STEPS {
        let deepest = steps.iter().map(|step| step.depth).max().unwrap_or(0);
        let highest = steps.iter().map(|step| step.depth).min().unwrap_or(0);
        steps = if deepest > highest { above(&steps, deepest - 1) } else { pairs(&steps) };
    }
    steps
}

fn pairs(steps: &[RawStep]) -> Vec<RawStep> {
    let pair = |pair: &[RawStep]| {
        let longer = *pair.iter().max_by_key(|step| step.instructions)?;
        let instructions = pair.iter().map(|step| step.instructions).sum();
        Some(RawStep { instructions, ..longer })
    };
    steps.chunks(2).filter_map(pair).collect()
}

/// Makes steps deeper than `depth` part of the step before them; at the start of the path, it
/// raises them to that depth.
fn above(steps: &[RawStep], depth: i64) -> Vec<RawStep> {
    let mut kept: Vec<RawStep> = Vec::new();
    for step in steps {
        match kept.last_mut() {
            Some(last) if step.depth > depth && last.depth == depth => {
                last.instructions += step.instructions;
            }
            Some(last) if last.function == step.function && last.depth == step.depth.min(depth) => {
                last.instructions += step.instructions;
            }
            _ => kept.push(RawStep { depth: step.depth.min(depth), ..*step }),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fold_keeps_every_instruction_and_limits_steps(
            steps in prop::collection::vec((0usize..9, 1u64..50, -20i64..20), 0..4_000)
        ) {
            let raw = |(function, instructions, depth)| RawStep { function, instructions, depth };
            let steps: Vec<RawStep> = steps.into_iter().map(raw).collect();
            let folded = fold(&steps);
            let sum = |steps: &[RawStep]| steps.iter().map(|step| step.instructions).sum::<u64>();
            prop_assert_eq!(sum(&folded), sum(&steps));
            prop_assert!(folded.len() <= MAX_STEPS);
        }
    }

    #[test]
    fn fold_makes_callee_part_of_its_caller() {
        let raw = |function, depth| RawStep { function, instructions: 10, depth };
        let folded = above(&[raw(0, 0), raw(1, 1), raw(2, 2), raw(1, 1), raw(0, 0)], 1);
        let parts: Vec<_> = folded.iter().map(|raw| (raw.function, raw.instructions)).collect();
        assert_eq!(parts, [(0, 10), (1, 30), (0, 10)]);
    }
}
