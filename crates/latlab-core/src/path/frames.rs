//! The calls of a path: from when to when each function was on the stack.

use super::{IDLE, Path};
use crate::time::Nanos;

/// A function on the stack, with all that it called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The function.
    pub function: &'a str,
    /// How deep it was called, from the outermost function of the path.
    pub depth: u32,
    /// When it began, after the begin of the path.
    pub from: Nanos,
    /// How long it was on the stack.
    pub ns: Nanos,
}

/// One that has not ended. What was called before the path began is only known when it comes back.
#[derive(Clone, Copy)]
struct Open<'a> {
    function: Option<&'a str>,
    from: u64,
}

impl Path {
    /// How long the CPU was idle before anything ran.
    pub fn idle_before(&self) -> Nanos {
        let first = self.steps.first().filter(|step| step.function == IDLE);
        first.map_or(Nanos(0), |step| Nanos(step.instructions))
    }

    /// The calls, those first that end first; who called them is not among them where it never ran.
    pub fn frames(&self) -> Vec<Frame<'_>> {
        let (mut frames, mut open): (Vec<Frame<'_>>, Vec<Open<'_>>) = (Vec::new(), Vec::new());
        let mut at = 0;
        for step in &self.steps {
            let place = usize::try_from(step.depth).unwrap_or(usize::MAX);
            close(&mut frames, &mut open, place.saturating_add(1), at);
            let another = |frame: &Open<'_>| frame.function.is_some_and(|f| f != step.function);
            if open.get(place).is_some_and(another) {
                close(&mut frames, &mut open, place, at);
            }
            while open.len() <= place {
                open.push(Open { function: None, from: at });
            }
            open[place].function = Some(&step.function);
            at += step.instructions;
        }
        close(&mut frames, &mut open, 0, at);
        frames
    }
}

/// Ends all but the outermost so many.
fn close<'a>(frames: &mut Vec<Frame<'a>>, open: &mut Vec<Open<'a>>, left: usize, at: u64) {
    while open.len() > left {
        let depth = u32::try_from(open.len() - 1).unwrap_or(u32::MAX);
        let Some(Open { function, from }) = open.pop() else { return };
        if let Some(function) = function {
            frames.push(Frame { function, depth, from: Nanos(from), ns: Nanos(at - from) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Step;
    use super::*;
    use proptest::prelude::*;

    fn path(steps: &[(&str, u64, u32)]) -> Path {
        let step = |(function, instructions, depth): &(&str, u64, u32)| Step {
            function: (*function).to_owned(),
            instructions: *instructions,
            depth: *depth,
        };
        Path { steps: steps.iter().map(step).collect(), ..Path::default() }
    }

    fn frames(path: &Path) -> Vec<(&str, u32, u64, u64)> {
        let frames = path.frames().into_iter();
        frames.map(|one| (one.function, one.depth, one.from.0, one.ns.0)).collect()
    }

    #[test]
    fn a_function_lasts_as_long_as_what_it_calls() {
        let path = path(&[("a", 5, 0), ("b", 3, 1), ("c", 2, 2), ("b", 1, 1), ("a", 4, 0)]);
        assert_eq!(frames(&path), [("c", 2, 8, 2), ("b", 1, 5, 6), ("a", 0, 0, 15)]);
    }

    #[test]
    fn who_called_before_the_path_began_is_known_when_it_comes_back() {
        let path = path(&[("inner", 5, 2), ("middle", 3, 1), ("next", 2, 1)]);
        assert_eq!(frames(&path), [("inner", 2, 0, 5), ("middle", 1, 0, 8), ("next", 1, 8, 2)]);
    }

    #[test]
    fn idle_time_in_the_middle_is_none_before() {
        assert_eq!(path(&[(IDLE, 7, 0), ("a", 1, 0)]).idle_before(), Nanos(7));
        assert_eq!(path(&[("a", 1, 0), (IDLE, 7, 0)]).idle_before(), Nanos(0));
    }

    proptest! {
        #[test]
        fn frames_of_a_depth_follow_each_other_and_hold_what_ran(
            steps in prop::collection::vec((0usize..4, 1u64..50, 0u32..9), 1..200)
        ) {
            let named = |(name, ns, depth)| (["a", "b", "c", "d"][name], ns, depth);
            let steps: Vec<_> = steps.into_iter().map(named).collect();
            let path = path(&steps);
            let frames = path.frames();
            for depth in 0..9 {
                let mut reached = Nanos(0);
                for frame in frames.iter().filter(|frame| frame.depth == depth) {
                    prop_assert!(frame.from >= reached);
                    reached = frame.from + frame.ns;
                }
            }
            // Whatever ran lies in a frame of its own name.
            let mut at = 0;
            for (function, ns, depth) in steps {
                prop_assert!(frames.iter().any(|frame| frame.function == function
                    && frame.depth == depth
                    && frame.from.0 <= at
                    && frame.from.0 + frame.ns.0 >= at + ns));
                at += ns;
            }
        }
    }
}
