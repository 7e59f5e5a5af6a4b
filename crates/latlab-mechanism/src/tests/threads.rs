//! Tests of IRQ threads: which are raised, how far, and that all are restored.

use super::super::configuration::Configuration;
use super::super::demote::Demote;
use super::super::inherit::Inherit;
use super::super::mode::ByTasks;
use super::super::selective::Selective;
use super::super::suppress::Suppress;
use super::super::transparent::Transparent;
use super::super::*;
use latlab_core::time::Nanos;
use proptest::prelude::*;

const ETH: i32 = 20;
const SOUND: i32 = 21;
const BOOSTED: i32 = 22;
const TIMERS: i32 = 30;
/// Three steps.
const LEARNING: Nanos = Nanos::from_millis(3);

/// A machine with four threads that carries out decisions.
#[derive(Clone, Debug)]
struct FourThreads {
    now: Nanos,
    found: Vec<Thread>,
    threads: Vec<Thread>,
    unusual: Vec<(i32, String)>,
    tasks: Vec<RealTimeTask>,
    requests: Vec<Request>,
}

fn thread(id: i32, name: &str, interrupt: Option<u32>, policy: Policy) -> Thread {
    let actions = name.rsplit('-').next().map(str::to_owned).into_iter().collect();
    Thread { id, name: name.to_owned(), interrupt, actions, driver: None, policy }
}

fn task(id: i32, priority: u32) -> RealTimeTask {
    RealTimeTask { id, process: id, name: format!("task{id}"), priority }
}

fn wake(task: i32, thread: i32) -> Wake {
    Wake { task, process: task, thread, behind: None }
}

impl FourThreads {
    fn new() -> FourThreads {
        let found = vec![
            thread(ETH, "irq/24-eth0", Some(24), Policy::Fifo(50)),
            thread(SOUND, "irq/25-snd_hda_intel", Some(25), Policy::Fifo(50)),
            thread(BOOSTED, "irq/26-nvme0q1", Some(26), Policy::Rr(95)),
            thread(TIMERS, "ktimers/0", None, Policy::Fifo(1)),
        ];
        let (tasks, requests, unusual) = (Vec::new(), Vec::new(), Vec::new());
        FourThreads { now: Nanos(0), threads: found.clone(), found, unusual, tasks, requests }
    }

    /// Observes the threads and these wake-ups a millisecond later, and carries out the decisions.
    fn step(&mut self, adaptation: &mut Adaptation, wakes: &[Wake]) -> Vec<Decision> {
        self.now = self.now + Nanos::from_millis(1);
        let seen = Observation {
            at: self.now,
            realtime: Some(self.tasks.clone()),
            knobs: Vec::new(),
            threads: self.threads.clone(),
            unusual: self.unusual.clone(),
            wakes: wakes.to_vec(),
            requests: self.requests.clone(),
            starved: Vec::new(),
        };
        let decisions = adaptation.decide(&seen);
        for decision in &decisions {
            let Some(at) = self.threads.iter().position(|one| Some(one.id) == decision.thread())
            else {
                assert!(matches!(decision, Decision::Restore { .. }), "the thread has ended");
                continue;
            };
            assert_eq!(self.threads[at].name, decision.knob());
            match decision {
                Decision::Set { was, to, .. } => {
                    assert_eq!(&self.threads[at].policy.to_string(), was);
                    self.threads[at].policy = to.parse().unwrap();
                }
                Decision::Restore { .. } => self.threads[at].policy = self.found[at].policy,
                Decision::Stop { .. } => {}
            }
        }
        decisions
    }

    fn policies(&self) -> Vec<String> {
        self.threads.iter().map(|thread| thread.policy.to_string()).collect()
    }
}

const FOUND: [&str; 4] = ["fifo 50", "fifo 50", "rr 95", "fifo 1"];
/// While no real-time task needs a thread.
const IDLE: [&str; 4] = ["other", "other", "other", "fifo 1"];

fn adaptation(names: &str) -> Adaptation {
    let all = names.split(',').map(|name| -> Box<dyn Mechanism> {
        match name {
            "transparent" => Box::new(Transparent::default()),
            "selective" => Box::new(Selective::of(Configuration::read("").unwrap().groups)),
            "inherit" => Box::new(Inherit),
            "demote" => Box::new(Demote::after(LEARNING)),
            "suppress" => Box::new(Suppress),
            _ => Box::new(ByTasks::after(Nanos::from_secs(1))),
        }
    });
    Adaptation::of(all.collect(), 90).unwrap()
}

#[test]
fn transparent_raises_waking_thread_to_its_default_priority() {
    let (mut machine, mut adaptation) = (FourThreads::new(), adaptation("transparent"));
    machine.tasks = vec![task(1, 80), task(2, 30)];
    assert!(machine.step(&mut adaptation, &[]).is_empty());
    machine.step(&mut adaptation, &[wake(1, TIMERS), wake(2, ETH)]);
    assert_eq!(machine.policies(), ["fifo 50", "fifo 50", "rr 95", "fifo 50"]);
    machine.tasks = vec![task(2, 30)];
    let decisions = machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), FOUND);
    let because = "no real-time task needs it any more".to_owned();
    let (mechanism, knob) = ("transparent".to_owned(), "ktimers/0".to_owned());
    let expected =
        Decision::Restore { mechanism, knob, thread: Some(TIMERS), because, for_good: false };
    assert_eq!(decisions, [expected]);
    machine.step(&mut adaptation, &[wake(2, TIMERS)]);
    assert_eq!(machine.policies()[3], "fifo 30", "not above the task that it wakes");
}

/// The journal can't be written at that moment.
#[test]
fn thread_that_can_not_be_raised_further_is_restored_and_left_alone() {
    let (mut machine, mut adaptation) = (FourThreads::new(), adaptation("transparent,inherit"));
    machine.tasks = vec![task(1, 60)];
    machine.step(&mut adaptation, &[wake(1, ETH)]);
    assert_eq!(machine.policies()[0], "fifo 60");
    machine.tasks.push(task(2, 80));
    let [further] = machine.step(&mut adaptation, &[wake(2, ETH)]).try_into().unwrap();
    machine.threads[0].policy = Policy::Fifo(60);
    adaptation.give_up(&further);
    let [restored] = machine.step(&mut adaptation, &[]).try_into().unwrap();
    assert!(matches!(restored, Decision::Restore { for_good: true, .. }), "{restored:?}");
    // That fails, too: it is tried again, but not all the time.
    machine.threads[0].policy = Policy::Fifo(60);
    adaptation.give_up(&restored);
    assert!(machine.step(&mut adaptation, &[]).is_empty());
    machine.now = machine.now + Nanos::from_secs(10);
    assert_eq!(machine.step(&mut adaptation, &[]), [restored]);
    assert_eq!(machine.policies(), FOUND);
    for _ in 0..3 {
        machine.now = machine.now + Nanos::from_secs(10);
        assert!(machine.step(&mut adaptation, &[wake(2, ETH)]).is_empty(), "it is left alone");
    }
}

/// A program has made it `SCHED_IDLE`, and made it SCHED_FIFO again later.
#[test]
fn thread_of_an_inexpressible_policy_is_left_alone_until_it_ends() {
    let (mut machine, mut adaptation) = (FourThreads::new(), adaptation("transparent"));
    machine.tasks = vec![task(1, 80)];
    machine.step(&mut adaptation, &[wake(1, TIMERS)]);
    let timers = machine.threads.pop().unwrap();
    machine.unusual = vec![(TIMERS, timers.name.clone())];
    let seen = Observation { unusual: machine.unusual.clone(), ..Observation::default() };
    let decisions = adaptation.decide(&seen);
    let [Decision::Stop { thread: Some(TIMERS), because, .. }] = decisions.as_slice() else {
        panic!("{decisions:?}")
    };
    assert_eq!(because, "another program changed it from fifo 50 to another class");
    machine.unusual.clear();
    machine.threads.push(timers);
    assert!(machine.step(&mut adaptation, &[wake(1, TIMERS)]).is_empty());
    machine.threads.pop();
    machine.step(&mut adaptation, &[]);
    machine.threads.push(machine.found[3].clone());
    assert_eq!(machine.step(&mut adaptation, &[wake(1, TIMERS)]).len(), 1, "it is another thread");
}

#[test]
fn thread_that_raised_the_softirq_is_needed_as_well() {
    let (mut machine, mut adaptation) = (FourThreads::new(), adaptation("transparent,inherit"));
    machine.tasks = vec![task(1, 80)];
    let decisions = machine.step(&mut adaptation, &[Wake { behind: Some(ETH), ..wake(1, TIMERS) }]);
    assert_eq!(machine.policies(), ["fifo 80", "fifo 50", "rr 95", "fifo 80"]);
    let Decision::Set { mechanism, because, .. } = &decisions[0] else { panic!("{decisions:?}") };
    assert_eq!(
        (mechanism.as_str(), because.as_str()),
        ("inherit", "it wakes task1 (1) at priority 80")
    );
}

#[test]
fn shared_thread_has_highest_need_up_to_the_ceiling() {
    let (mut machine, mut adaptation) = (FourThreads::new(), adaptation("transparent,inherit"));
    machine.tasks = vec![task(1, 60), task(2, 80), task(3, DEADLINE)];
    machine.step(&mut adaptation, &[wake(1, ETH), wake(2, ETH), wake(3, ETH), wake(3, BOOSTED)]);
    assert_eq!(machine.policies(), ["fifo 90", "fifo 50", "rr 95", "fifo 1"]);
    machine.tasks.pop();
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies()[0], "fifo 80");
    machine.tasks.pop();
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies()[0], "fifo 60");
    machine.tasks[0].priority = 70;
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies()[0], "fifo 70", "it follows the task");
    machine.tasks.clear();
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), FOUND);
}

#[test]
fn selective_raises_requested_devices_and_demotes_others() {
    let (mut machine, mut adaptation) = (FourThreads::new(), adaptation("selective"));
    machine.requests = vec![Request { process: 1, thread: None, groups: vec!["audio".to_owned()] }];
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), FOUND, "the process has no real-time task yet");
    machine.tasks = vec![task(1, 70), task(2, 80)];
    let decisions = machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), ["other", "fifo 70", "other", "fifo 1"]);
    assert_eq!(decisions[0].knob(), "irq/25-snd_hda_intel", "the most urgent first");
    machine.requests.push(Request { process: 2, thread: None, groups: vec!["AUDIO".to_owned()] });
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), ["other", "fifo 80", "other", "fifo 1"]);
    machine.requests.clear();
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), FOUND);
}

#[test]
fn request_of_a_thread_does_not_serve_the_others() {
    let (mut machine, mut adaptation) = (FourThreads::new(), adaptation("selective"));
    let threads = [task(1, 70), RealTimeTask { process: 1, ..task(2, 80) }];
    machine.tasks = threads.to_vec();
    machine.requests =
        vec![Request { process: 1, thread: Some(1), groups: vec!["AUDIO".to_owned()] }];
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), ["other", "fifo 70", "other", "fifo 1"]);
    machine.requests[0].thread = None;
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), ["other", "fifo 80", "other", "fifo 1"]);
    machine.requests[0].thread = Some(3);
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), FOUND, "no real-time task has this id");
}

#[test]
fn threads_that_no_known_task_needs_are_demoted() {
    let (mut machine, mut adaptation) = (FourThreads::new(), adaptation("transparent,demote"));
    machine.step(&mut adaptation, &[]);
    machine.tasks = vec![task(1, 80)];
    machine.step(&mut adaptation, &[wake(1, ETH)]);
    assert_eq!(machine.policies(), FOUND, "the task is new");
    machine.now = machine.now + LEARNING;
    let decisions = machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), ["fifo 50", "other", "other", "fifo 1"]);
    let why = "all real-time tasks are known, and none needs it";
    let demoted = |one: &Decision| matches!(one, Decision::Set { mechanism, because, .. } if mechanism == "demote" && because == why);
    assert!(decisions.len() == 2 && decisions.iter().all(demoted), "{decisions:?}");
    machine.step(&mut adaptation, &[wake(1, SOUND)]);
    assert_eq!(machine.policies(), ["fifo 50", "fifo 50", "other", "fifo 1"], "now it is needed");
    machine.tasks.push(task(2, 30));
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), FOUND, "there is a new task");
    machine.now = machine.now + LEARNING;
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), ["fifo 50", "fifo 50", "other", "fifo 1"]);
    machine.tasks.clear();
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), FOUND);
}

#[test]
fn interrupt_threads_but_timers_are_demoted_without_real_time_tasks() {
    let mut adaptation = adaptation("transparent,inherit,mode");
    let mut machine = FourThreads::new();
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), IDLE);
    machine.tasks = vec![task(1, 80)];
    let decisions = machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), FOUND);
    let why = |one: &Decision| matches!(one, Decision::Restore { because, .. } if because == "there is 1 real-time task");
    assert!(decisions.iter().all(why), "{decisions:?}");
    machine.step(&mut adaptation, &[wake(1, ETH)]);
    machine.tasks.clear();
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), FOUND, "for a second after the last task");
    machine.now = machine.now + Nanos::from_secs(1);
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), IDLE);
}

#[test]
fn throughput_knobs_stay_set_with_real_time_tasks_where_needs_are_known() {
    let knob = Knob {
        name: "wakeup_preemption".to_owned(),
        path: String::new(),
        value: "1".to_owned(),
        possible: Vec::new(),
    };
    let realtime = Some(vec![task(1, 80)]);
    let seen = Observation { realtime, knobs: vec![knob], ..Observation::default() };
    assert_eq!(adaptation("transparent,suppress,mode").decide(&seen).len(), 1);
    assert!(adaptation("suppress,mode").decide(&seen).is_empty());
}

#[test]
fn thread_changed_by_others_is_left_alone_until_it_ends() {
    let (mut machine, mut adaptation) = (FourThreads::new(), adaptation("transparent,inherit"));
    machine.tasks = vec![task(1, 80)];
    machine.step(&mut adaptation, &[wake(1, ETH)]);
    machine.threads[0].policy = Policy::Fifo(60);
    let decisions = machine.step(&mut adaptation, &[wake(1, ETH)]);
    let Decision::Stop { because, .. } = &decisions[0] else { panic!("{decisions:?}") };
    assert_eq!(because, "another program changed it from fifo 80 to fifo 60");
    for tasks in [vec![], vec![task(1, 80)]] {
        machine.tasks = tasks;
        assert!(machine.step(&mut adaptation, &[wake(1, ETH)]).is_empty());
    }
    let gone = machine.threads.remove(0);
    machine.step(&mut adaptation, &[]);
    machine.threads.insert(0, Thread { policy: Policy::Fifo(50), ..gone });
    machine.step(&mut adaptation, &[wake(1, ETH)]);
    assert_eq!(machine.policies()[0], "fifo 80", "a new thread with that id and name");
}

#[test]
fn wake_is_known_until_its_task_or_its_thread_ends() {
    let (mut machine, mut adaptation) = (FourThreads::new(), adaptation("transparent,inherit"));
    machine.tasks = vec![task(1, 80), task(2, 80)];
    let behind = Wake { behind: Some(SOUND), ..wake(1, TIMERS) };
    assert!(!adaptation.knows(&wake(1, ETH)), "nothing was observed");
    machine.step(&mut adaptation, &[wake(1, ETH), wake(1, TIMERS)]);
    assert!(adaptation.knows(&wake(1, ETH)) && adaptation.knows(&wake(1, TIMERS)));
    assert!(!adaptation.knows(&behind), "one of its threads is new");
    assert!(!adaptation.knows(&wake(2, ETH)), "another task");
    assert!(!adaptation.knows(&Wake { process: 3, ..wake(1, ETH) }), "another process");
    machine.step(&mut adaptation, &[behind]);
    assert!(adaptation.knows(&behind));
    machine.threads.retain(|one| one.id != SOUND);
    machine.step(&mut adaptation, &[]);
    assert!(!adaptation.knows(&behind) && adaptation.knows(&wake(1, ETH)));
    machine.tasks.remove(0);
    machine.step(&mut adaptation, &[]);
    assert!(!adaptation.knows(&wake(1, ETH)));
}

#[test]
fn thread_that_could_not_be_set_is_not_tried_again() {
    let (mut machine, mut adaptation) = (FourThreads::new(), adaptation("transparent,inherit"));
    machine.tasks = vec![task(1, 80)];
    let decisions = machine.clone().step(&mut adaptation, &[wake(1, ETH)]);
    adaptation.give_up(&decisions[0]);
    assert!(machine.step(&mut adaptation, &[wake(1, ETH)]).is_empty());
}

#[test]
fn thread_that_ends_is_forgotten() {
    let (mut machine, mut adaptation) = (FourThreads::new(), adaptation("transparent,inherit"));
    machine.tasks = vec![task(1, 80)];
    machine.step(&mut adaptation, &[wake(1, ETH)]);
    let gone = machine.threads.remove(0);
    let decisions = machine.step(&mut adaptation, &[]);
    let Decision::Restore { because, .. } = &decisions[0] else { panic!("{decisions:?}") };
    assert_eq!(because, "its thread has ended");
    machine.threads.insert(0, Thread { name: "irq/30-other".to_owned(), ..gone });
    assert!(machine.step(&mut adaptation, &[]).is_empty(), "the thread id is reused");
}

#[test]
fn transparent_forgets_fifty_short_tasks() {
    let (mut machine, mut adaptation) = (FourThreads::new(), adaptation("transparent,inherit"));
    for id in 1..=50 {
        machine.tasks = vec![task(id, 80)];
        machine.step(&mut adaptation, &[wake(id, ETH), wake(id, TIMERS)]);
        assert_eq!(machine.policies(), ["fifo 80", "fifo 50", "rr 95", "fifo 80"]);
        machine.tasks.clear();
        machine.step(&mut adaptation, &[wake(id, ETH)]);
        assert_eq!(machine.policies(), FOUND);
    }
    let mut one = Transparent::default();
    let seen =
        |realtime| Observation { realtime, wakes: vec![wake(1, ETH)], ..Observation::default() };
    one.assess(&seen(Some(vec![task(1, 80)])));
    one.assess(&seen(Some(Vec::new())));
    assert_eq!(format!("{one:?}"), format!("{:?}", Transparent::default()));
}

#[test]
fn mode_and_priorities_are_right_after_a_thousand_starts_and_stops() {
    let (mut machine, mut adaptation) =
        (FourThreads::new(), adaptation("transparent,inherit,suppress,mode"));
    for _ in 0..1000 {
        machine.tasks = vec![task(1, 80)];
        machine.step(&mut adaptation, &[wake(1, SOUND)]);
        assert_eq!(machine.policies(), ["fifo 50", "fifo 80", "rr 95", "fifo 1"]);
        machine.tasks.clear();
        machine.step(&mut adaptation, &[]);
        assert_eq!(machine.policies(), FOUND);
    }
    machine.now = machine.now + Nanos::from_secs(1);
    machine.step(&mut adaptation, &[]);
    assert_eq!(machine.policies(), IDLE);
}

#[test]
fn mechanisms_that_find_no_thread_are_refused_without_one_that_does() {
    let inherit: Vec<Box<dyn Mechanism>> = vec![Box::new(Inherit)];
    let demote: Vec<Box<dyn Mechanism>> =
        vec![Box::new(Suppress), Box::new(Demote::after(LEARNING))];
    for all in [inherit, demote] {
        let refused = Adaptation::of(all, 90).unwrap_err();
        assert!(refused.contains("name transparent as well"), "{refused}");
    }
}

#[test]
fn observations_and_decisions_survive_json() {
    let machine = FourThreads::new();
    let (realtime, threads) = (Some(vec![task(1, 80)]), machine.threads);
    let seen =
        Observation { realtime, threads, wakes: vec![wake(1, ETH)], ..Observation::default() };
    let kept = serde_json::to_string(&seen).unwrap();
    assert_eq!(serde_json::from_str::<Observation>(&kept).unwrap(), seen);
    let decisions = adaptation("transparent,inherit").decide(&seen);
    let kept = serde_json::to_string(&decisions).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Decision>>(&kept).unwrap(), decisions);
}

/// An event before a step: a task starts, ends or sends a request; a thread wakes one; another
/// program changes a thread's policy.
#[derive(Clone, Debug)]
enum BeforeStep {
    Starts(i32, u32),
    Ends(i32),
    Requests(i32, &'static str),
    Wakes(i32, i32),
    Changes(usize, u32),
}

fn events() -> impl Strategy<Value = BeforeStep> {
    let thread = prop::sample::select(vec![ETH, SOUND, BOOSTED, TIMERS]);
    prop_oneof![
        4 => (1..4_i32, 1..=DEADLINE).prop_map(|(id, priority)| BeforeStep::Starts(id, priority)),
        3 => (1..4_i32).prop_map(BeforeStep::Ends),
        2 => (1..4_i32, prop::sample::select(vec!["AUDIO", "NETWORK", "STORAGE"]))
            .prop_map(|(id, group)| BeforeStep::Requests(id, group)),
        6 => (1..4_i32, thread).prop_map(|(id, thread)| BeforeStep::Wakes(id, thread)),
        1 => (0..4_usize, 1..99_u32).prop_map(|(thread, priority)| BeforeStep::Changes(thread, priority)),
    ]
}

fn mechanisms() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "transparent",
        "selective",
        "transparent,inherit",
        "selective,inherit",
        "transparent,selective,inherit",
        "transparent,selective,inherit,mode",
        "transparent,inherit,demote",
        "transparent,selective,inherit,demote,mode",
    ])
}

impl FourThreads {
    /// Applies an event. Returns the wake-ups it stands for.
    fn apply(&mut self, event: &BeforeStep, theirs: &mut [bool]) -> Vec<Wake> {
        match *event {
            BeforeStep::Starts(id, priority) => {
                self.tasks.retain(|task| task.id != id);
                self.tasks.push(task(id, priority));
            }
            BeforeStep::Ends(id) => {
                self.tasks.retain(|task| task.id != id);
                self.requests.retain(|request| request.process != id);
            }
            BeforeStep::Requests(id, group) => {
                self.requests.push(Request {
                    process: id,
                    thread: None,
                    groups: vec![group.to_owned()],
                });
            }
            BeforeStep::Wakes(id, thread) => return vec![wake(id, thread)],
            BeforeStep::Changes(at, priority) => {
                let policy = Policy::Rr(priority);
                theirs[at] |= self.threads[at].policy != self.found[at].policy;
                // A thread that is not set is found with the changed policy.
                self.threads[at].policy = policy;
                if !theirs[at] {
                    self.found[at].policy = policy;
                }
            }
        }
        Vec::new()
    }
}

proptest! {
    /// Whatever happens: no thread gets a priority above the ceiling or the highest task, unless it
    /// was found with it; a thread that was left alone stays so; without tasks all threads are
    /// restored; and the same observations give the same decisions.
    #[test]
    fn priorities_stay_in_bounds_and_are_restored(
        names in mechanisms(),
        all in prop::collection::vec(events(), 1..80),
    ) {
        let (mut one, mut other) = (adaptation(names), adaptation(names));
        let (mut machine, mut theirs) = (FourThreads::new(), [false; 4]);
        let mut again = machine.clone();
        for event in &all {
            let wakes = machine.apply(event, &mut theirs);
            again.apply(event, &mut theirs);
            let decisions = machine.step(&mut one, &wakes);
            prop_assert_eq!(&decisions, &again.step(&mut other, &wakes));
            let highest = machine.tasks.iter().map(|task| task.priority).max().unwrap_or(0).min(90);
            for (at, thread) in machine.threads.iter().enumerate() {
                let allowed = highest.max(machine.found[at].policy.priority());
                prop_assert!(theirs[at] || thread.policy.priority() <= allowed);
                let touched = decisions.iter().any(|one| one.thread() == Some(thread.id)
                    && !matches!(one, Decision::Stop { .. }));
                prop_assert!(!(theirs[at] && touched));
            }
        }
        machine.tasks.clear();
        machine.requests.clear();
        machine.step(&mut one, &[]);
        for (at, thread) in machine.threads.iter().enumerate() {
            let expected = machine.found[at].policy;
            let waits = names.ends_with("mode") && thread.policy == Policy::Other;
            prop_assert!(theirs[at] || waits || thread.policy == expected);
        }
    }
}
