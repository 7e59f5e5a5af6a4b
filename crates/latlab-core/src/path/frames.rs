//! Call frames of a path: when each function was on the stack.

use super::{IDLE, Path};
use crate::time::Nanos;

/// A function on the stack, callees included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The function.
    pub function: &'a str,
    /// Call depth, from the outermost function of the path.
    pub depth: u32,
    /// When it was called, after the start of the path.
    pub from: Nanos,
    /// The time for which it was on the stack.
    pub ns: Nanos,
}

/// A frame that has not ended. A function that was called before the path began is only known once
/// it runs again.
#[derive(Clone, Copy)]
struct OpenFrame<'a> {
    function: Option<&'a str>,
    from: u64,
}

impl Path {
    /// Returns the idle time before the first instruction.
    pub fn idle_before(&self) -> Nanos {
        let first = self.steps.first().filter(|step| step.function == IDLE);
        first.map_or(Nanos(0), |step| Nanos(step.instructions))
    }

    /// Returns the frames in the order in which they end. A caller that never ran itself is not
    /// among them.
    pub fn frames(&self) -> Vec<Frame<'_>> {
        let (mut frames, mut open): (Vec<Frame<'_>>, Vec<OpenFrame<'_>>) = (Vec::new(), Vec::new());
        let mut at = 0;
        for step in &self.steps {
            let place = usize::try_from(step.depth).unwrap_or(usize::MAX);
            close(&mut frames, &mut open, place.saturating_add(1), at);
            let another =
                |frame: &OpenFrame<'_>| frame.function.is_some_and(|f| f != step.function);
            if open.get(place).is_some_and(another) {
                close(&mut frames, &mut open, place, at);
            }
            while open.len() <= place {
                open.push(OpenFrame { function: None, from: at });
            }
            open[place].function = Some(&step.function);
            at += step.instructions;
        }
        close(&mut frames, &mut open, 0, at);
        frames
    }
}

/// Ends all open frames but the outermost `left`.
fn close<'a>(frames: &mut Vec<Frame<'a>>, open: &mut Vec<OpenFrame<'a>>, left: usize, at: u64) {
    while open.len() > left {
        let depth = u32::try_from(open.len() - 1).unwrap_or(u32::MAX);
        let Some(OpenFrame { function, from }) = open.pop() else { return };
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
    fn frame_lasts_as_long_as_its_callees() {
        let path = path(&[("a", 5, 0), ("b", 3, 1), ("c", 2, 2), ("b", 1, 1), ("a", 4, 0)]);
        assert_eq!(frames(&path), [("c", 2, 8, 2), ("b", 1, 5, 6), ("a", 0, 0, 15)]);
    }

    #[test]
    fn frame_of_earlier_call_is_known_once_it_runs_again() {
        let path = path(&[("inner", 5, 2), ("middle", 3, 1), ("next", 2, 1)]);
        assert_eq!(frames(&path), [("inner", 2, 0, 5), ("middle", 1, 0, 8), ("next", 1, 8, 2)]);
    }

    #[test]
    fn idle_before_excludes_idle_time_in_the_middle() {
        assert_eq!(path(&[(IDLE, 7, 0), ("a", 1, 0)]).idle_before(), Nanos(7));
        assert_eq!(path(&[("a", 1, 0), (IDLE, 7, 0)]).idle_before(), Nanos(0));
    }

    proptest! {
        #[test]
        fn frames_of_one_depth_do_not_overlap_and_contain_their_steps(
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
            // Each step lies in a frame of its function.
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
