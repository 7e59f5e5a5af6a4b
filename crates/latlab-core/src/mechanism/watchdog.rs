//! Whether ordinary tasks starve: on each CPU one of ours asks to run now and then, and it is seen
//! when it does not get to.

use crate::time::Nanos;
use std::collections::BTreeMap;

/// Who does not run for so long starves.
pub const STARVED: Nanos = Nanos::from_secs(1);
/// At most so much counts of the time between two looks: where nobody looked for longer, nobody
/// ran, as when a virtual machine is stopped.
const LOOK: Nanos = Nanos::from_millis(200);

/// For how long the task of each CPU has not run.
#[derive(Clone, Debug, Default)]
pub struct Watchdog {
    looked: Option<Nanos>,
    /// Of each CPU, when its task ran last, and what counts of the time since.
    silent: BTreeMap<u32, (Nanos, Nanos)>,
}

impl Watchdog {
    /// Looks at when each CPU's task ran last. The CPUs on which tasks starve; of each it is said
    /// once in that time.
    pub fn look(&mut self, at: Nanos, ran: &[(u32, Nanos)]) -> Vec<u32> {
        let since = self.looked.replace(at).map_or(Nanos(0), |looked| (at - looked).min(LOOK));
        let mut starved = Vec::new();
        for &(cpu, ran) in ran {
            let (last, silent) = self.silent.entry(cpu).or_insert((ran, Nanos(0)));
            *silent = if *last == ran { *silent + since } else { Nanos(0) };
            *last = ran;
            if *silent >= STARVED {
                *silent = Nanos(0);
                starved.push(cpu);
            }
        }
        starved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks each 100 ms; on CPU 0 the task runs until then, on CPU 1 always. When it is said that
    /// one starves.
    fn said(until: u64) -> Vec<u64> {
        let mut watchdog = Watchdog::default();
        let ms = Nanos::from_millis;
        let look = |n: u64| watchdog.look(ms(n * 100), &[(0, ms(n.min(until) * 100)), (1, ms(n))]);
        let looks: Vec<Vec<u32>> = (0..35).map(look).collect();
        assert!(looks.iter().flatten().all(|cpu| *cpu == 0));
        (0..35).zip(looks).filter(|(_, cpus)| !cpus.is_empty()).map(|(n, _)| n).collect()
    }

    #[test]
    fn who_has_not_run_for_a_second_starves_and_it_is_said_once_a_second() {
        assert_eq!(said(5), [15, 25]);
        assert_eq!(said(100), [0; 0]);
    }

    #[test]
    fn where_nobody_could_look_nobody_starves() {
        let mut watchdog = Watchdog::default();
        watchdog.look(Nanos(0), &[(0, Nanos(0))]);
        let later = Nanos::from_secs(60);
        assert!(watchdog.look(later, &[(0, Nanos(0))]).is_empty());
    }
}
