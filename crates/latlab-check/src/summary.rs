//! Sums up the cycles and breaches of a thread for the report.

use super::breach::{Breach, Held};
use super::call;
use super::cycle::Finished;
use super::event::StackId;
use super::marks::Ended;
use super::place::place;
use super::reason::{PlaceOf, parts, reasons};
use super::report::{
    BreachReport, CycleReport, Frame, MarkedPart, Spread, ThreadReport, WorstCycle,
};
use super::rule::{Level, RULES, Rule};
use super::thread::Cyclic;
use latlab_core::time::Nanos;
use std::collections::BTreeMap;

impl ThreadReport {
    pub(super) fn of(
        cyclic: Cyclic,
        deadline: Option<Nanos>,
        frames: &mut dyn FnMut(u32, StackId) -> Vec<Frame>,
    ) -> ThreadReport {
        let thread = cyclic.thread;
        let mut places = BTreeMap::new();
        let mut place_of = |stack| {
            let named = places.entry(stack).or_insert_with(|| place(&frames(thread.pid, stack)));
            named.clone()
        };
        let cycle = CycleReport::of(&cyclic, deadline, &mut place_of);
        let mut breaches: Vec<BreachReport> = Vec::new();
        for breach in cyclic.breaches.take() {
            let stack = breach.stack.map(|stack| frames(thread.pid, stack)).unwrap_or_default();
            if is_of_watching(&breach, &stack) {
                continue;
            }
            let new = BreachReport::of(breach, stack, deadline.is_some());
            let same = |b: &&mut BreachReport| {
                b.rule == new.rule
                    && b.subject == new.subject
                    && (&b.place, &b.part) == (&new.place, &new.part)
            };
            match breaches.iter_mut().find(same) {
                Some(known) => known.merge(new),
                None => breaches.push(new),
            }
        }
        let rank = |rule| RULES.iter().position(|known| *known == rule);
        breaches.sort_by_key(|b| (b.level, rank(b.rule), u64::MAX - b.count));
        ThreadReport {
            name: thread.comm.to_string(),
            tid: thread.tid,
            pid: thread.pid,
            policy: thread.policy_in_words(),
            cycle,
            breaches,
        }
    }
}

/// Whether watching caused a page fault: the first one in the page into which the kernel copies the
/// instructions of marks, on kernels and processors that can't emulate a NOP.
fn is_of_watching(breach: &Breach, stack: &[Frame]) -> bool {
    breach.rule == Rule::Fault && stack.first().is_some_and(|frame| frame.module == "[uprobes]")
}

impl CycleReport {
    fn of(cyclic: &Cyclic, deadline: Option<Nanos>, place_of: &mut PlaceOf<'_>) -> CycleReport {
        let usual = cyclic.in_time.quantile(0.5);
        CycleReport {
            waits_for: cyclic.wait.words().to_owned(),
            count: cyclic.cycles,
            period: cyclic.periods.median(),
            deadline,
            overruns: cyclic.overruns,
            left_out: cyclic.left_out,
            warm_up: cyclic.warmed_up,
            stops: cyclic.stops.report(),
            reasons: reasons(&cyclic.overran, usual, place_of),
            latency: cyclic.wait.tells_due().then(|| Spread::of(&cyclic.latency)),
            running: Spread::of(&cyclic.running),
            response: Spread::of(&cyclic.response),
            parts: cyclic.parts.report(cyclic.running.sum()),
            worst: { cyclic.worst.as_ref() }
                .map(|worst| WorstCycle::of(worst, cyclic.wait.tells_due(), place_of)),
        }
    }
}

impl WorstCycle {
    fn of(worst: &Finished, tells_due: bool, place_of: &mut PlaceOf<'_>) -> WorstCycle {
        WorstCycle {
            number: worst.number,
            latency: tells_due.then(|| worst.latency()),
            running: worst.running(),
            response: worst.response(),
            parts: parts(worst, place_of),
            marked: worst.cycle.marks.ended.iter().map(|one| one.report(worst.cycle.due)).collect(),
        }
    }
}

impl Ended {
    fn report(&self, due: Nanos) -> MarkedPart {
        MarkedPart {
            name: self.name.clone(),
            id: self.id,
            from: self.from - due,
            length: self.to - self.from,
            running: self.running,
        }
    }
}

impl BreachReport {
    fn of(breach: Breach, stack: Vec<Frame>, has_deadline: bool) -> BreachReport {
        let rule = call::rule_with_stack(breach.rule, &breach.subject, &stack);
        let level = match rule {
            Rule::Overrun if has_deadline => Level::Error,
            rule => rule.level(),
        };
        BreachReport {
            rule,
            level,
            subject: breach.subject,
            place: place(&stack),
            count: breach.count,
            part: breach.part,
            moment: breach.moment,
            first: breach.first,
            last: breach.last,
            longest: breach.longest,
            by: breach.held.map(Held::describe),
            stack,
        }
    }

    fn merge(&mut self, other: BreachReport) {
        self.count += other.count;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        if other.longest > self.longest {
            (self.longest, self.by) = (other.longest, other.by);
        }
    }
}
