//! Keeps a path short: what was called too deep becomes part of who called it.

use super::Raw;

/// How many steps a path has at most.
const MOST: usize = 1_000;

/// The same path with the deepest calls folded into their callers, until it is short enough. Where
/// nothing calls anything any more, neighbours join under the name of the longer one.
pub(super) fn fold(steps: &[Raw]) -> Vec<Raw> {
    let mut steps = steps.to_vec();
    while steps.len() > MOST {
        let deepest = steps.iter().map(|step| step.depth).max().unwrap_or(0);
        let highest = steps.iter().map(|step| step.depth).min().unwrap_or(0);
        steps = if deepest > highest { above(&steps, deepest - 1) } else { pairs(&steps) };
    }
    steps
}

fn pairs(steps: &[Raw]) -> Vec<Raw> {
    let pair = |pair: &[Raw]| {
        let longer = *pair.iter().max_by_key(|step| step.instructions)?;
        let instructions = pair.iter().map(|step| step.instructions).sum();
        Some(Raw { instructions, ..longer })
    };
    steps.chunks(2).filter_map(pair).collect()
}

/// What lies deeper than `depth` becomes part of the step before it; at the begin, it is lifted.
fn above(steps: &[Raw], depth: i64) -> Vec<Raw> {
    let mut kept: Vec<Raw> = Vec::new();
    for step in steps {
        match kept.last_mut() {
            Some(last) if step.depth > depth && last.depth == depth => {
                last.instructions += step.instructions;
            }
            Some(last) if last.function == step.function && last.depth == step.depth.min(depth) => {
                last.instructions += step.instructions;
            }
            _ => kept.push(Raw { depth: step.depth.min(depth), ..*step }),
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
        fn folding_keeps_every_instruction_and_makes_it_short(
            steps in prop::collection::vec((0usize..9, 1u64..50, -20i64..20), 0..4_000)
        ) {
            let raw = |(function, instructions, depth)| Raw { function, instructions, depth };
            let steps: Vec<Raw> = steps.into_iter().map(raw).collect();
            let folded = fold(&steps);
            let sum = |steps: &[Raw]| steps.iter().map(|step| step.instructions).sum::<u64>();
            prop_assert_eq!(sum(&folded), sum(&steps));
            prop_assert!(folded.len() <= MOST);
        }
    }

    #[test]
    fn the_callee_becomes_part_of_its_caller() {
        let raw = |function, depth| Raw { function, instructions: 10, depth };
        let folded = above(&[raw(0, 0), raw(1, 1), raw(2, 2), raw(1, 1), raw(0, 0)], 1);
        let parts: Vec<_> = folded.iter().map(|raw| (raw.function, raw.instructions)).collect();
        assert_eq!(parts, [(0, 10), (1, 30), (0, 10)]);
    }
}
