//! Compares the interface of the driver with `kmod/latlab.h`.

use super::*;

const HEADER: &str = include_str!("../../../../kmod/latlab.h");

/// The definition of a macro.
fn defined(name: &str) -> &'static str {
    let start = format!("#define {name}");
    let line = HEADER.lines().find_map(|line| line.strip_prefix(&start)).expect(name);
    line.trim()
}

/// The names of an enumeration, in order.
fn names(of: &str) -> Vec<&'static str> {
    let start = format!("enum {of} {{");
    let (_, rest) = HEADER.split_once(&start).expect(of);
    let (body, _) = rest.split_once('}').expect(of);
    let name = |line: &'static str| line.trim().split([',', '\t', ' ']).next();
    body.lines().filter_map(name).filter(|name| name.starts_with("LATLAB")).collect()
}

#[test]
fn driver_constants_match_the_header() {
    assert_eq!(defined("LATLAB_VERSION"), Version::OURS.to_string());
    assert_eq!(defined("LATLAB_PARTS"), Pieces::MOST.to_string());
    assert_eq!(defined("LATLAB_MAX_POINTS"), Loop::MOST_POINTS.to_string());
    assert_eq!(defined("LATLAB_SWITCHES"), WatchedSwitches::MOST.to_string());
    assert_eq!(defined("LATLAB_BUSIEST_NS"), format!("{}ULL", InterruptSource::BUSIEST.0));
    let longest = Driver::LONGEST_DELAY.0;
    assert_eq!(defined("LATLAB_LONGEST_DELAY_NS"), format!("{longest}ULL"));
    assert_eq!(defined("LATLAB_THREADED"), THREADED.to_string());
    assert_eq!(defined("LATLAB_AT_ONCE"), AT_ONCE.to_string());
    assert_eq!(defined("LATLAB_PERIODIC"), PERIODIC.to_string());
    let shortest = InterruptSource::SHORTEST_PERIOD.0;
    assert_eq!(defined("LATLAB_SHORTEST_PERIOD_NS"), format!("{shortest}ULL"));
    for (number, index, kind, of) in [
        (GET_VERSION, 0, "_IOR", "version"),
        (RUN, 1, "_IOWR", "run"),
        (ARM, 2, "_IOWR", "arm"),
        (WAIT, 3, "_IOWR", "wait"),
        (WATCH, 4, "_IOR", "watch"),
        (SWITCHES, 5, "_IOR", "switches"),
        (INJECT, 6, "_IOWR", "inject"),
    ] {
        let words = format!("{kind}(0xEF, 0x{index:02X}, struct latlab_{of})");
        assert_eq!(defined(&format!("LATLAB_IOC_{}", of.to_uppercase())), words);
        let direction = match kind {
            "_IOR" => READ,
            _ => READ | WRITE,
        };
        assert_eq!((number >> 30, number & 0xFFFF), (direction, 0xEF00 | index));
    }
}

#[test]
fn driver_enumerations_match_the_header() {
    let modes = [
        (Mode::Plain, "LATLAB_PLAIN"),
        (Mode::Spin, "LATLAB_SPIN"),
        (Mode::RawSpin, "LATLAB_RAW_SPIN"),
        (Mode::PreemptOff, "LATLAB_PREEMPT_OFF"),
        (Mode::IrqOff, "LATLAB_IRQ_OFF"),
        (Mode::LockBreak, "LATLAB_LOCK_BREAK"),
    ];
    let listed = names("latlab_mode");
    assert_eq!(listed.len(), modes.len() + 1, "the last name is their count");
    for (mode, name) in modes {
        assert_eq!(listed[mode as usize], name);
    }
    let causes = [
        (DelayCause::InterruptsOff, "LATLAB_INTERRUPTS_OFF"),
        (DelayCause::PreemptionOff, "LATLAB_PREEMPTION_OFF"),
        (DelayCause::RawSpinlock, "LATLAB_RAW_SPINLOCK"),
        (DelayCause::Softirq, "LATLAB_SOFTIRQ"),
        (DelayCause::TimerCallback, "LATLAB_TIMER_CALLBACK"),
        (DelayCause::Mutex, "LATLAB_MUTEX"),
    ];
    let listed = names("latlab_cause");
    assert_eq!(listed.len(), causes.len() + 1, "the last name is their count");
    for (cause, name) in causes {
        assert_eq!(listed[cause as usize], name);
    }
    let sources = names("latlab_source");
    assert_eq!(sources, ["LATLAB_TIMER", "LATLAB_DEVICE", "LATLAB_SOURCES"]);
    assert_eq!((sources[TIMER as usize], sources[EDU as usize]), (sources[0], sources[1]));
}

/// The fields of a structure, with the size of each in bytes.
fn fields(of: &str) -> Vec<(&'static str, usize)> {
    let start = format!("struct latlab_{of} {{");
    let (_, rest) = HEADER.split_once(&start).expect(of);
    let (body, _) = rest.split_once("};").expect(of);
    let declarations = body.lines().filter_map(|line| line.split_once(';'));
    let field = |(declaration, _): (&'static str, &str)| {
        let (kind, name) = declaration.trim().rsplit_once(' ')?;
        let size = match kind {
            "__u64" if name.ends_with("[LATLAB_SWITCHES]") => 8 * WatchedSwitches::MOST,
            "__u64" => 8,
            "__u32" => 4,
            "struct latlab_part" => Pieces::MOST * size_of::<Piece>(),
            _ => panic!("{kind}"),
        };
        Some((name, size))
    };
    declarations.filter_map(field).collect()
}

#[test]
fn driver_structures_match_the_header() {
    use std::mem::offset_of;
    let check = |of: &str, expected: &[(&str, usize)], size: usize| {
        let mut at = 0;
        let mut layout = Vec::new();
        for (name, bytes) in fields(of) {
            layout.push((name, at));
            at += bytes;
        }
        assert_eq!((layout.as_slice(), at), (expected, size), "{of}");
    };
    let version = [
        ("version", offset_of!(Version, version)),
        ("device", offset_of!(Version, device)),
        ("iterations_per_second", offset_of!(Version, iterations_per_second)),
    ];
    check("version", &version, size_of::<Version>());
    let part = [("begin", offset_of!(Piece, begin)), ("end", offset_of!(Piece, end))];
    check("part", &part, size_of::<Piece>());
    let run = [
        ("iterations", offset_of!(Pieces, iterations)),
        ("points", offset_of!(Pieces, points)),
        ("mode", offset_of!(Pieces, mode)),
        ("parts", offset_of!(Pieces, parts)),
        ("zero", offset_of!(Pieces, zero)),
        ("part[LATLAB_PARTS]", offset_of!(Pieces, part)),
    ];
    check("run", &run, size_of::<Pieces>());
    let arm = [
        ("time", offset_of!(Arm, time)),
        ("source", offset_of!(Arm, source)),
        ("flags", offset_of!(Arm, flags)),
        ("busy", offset_of!(Arm, busy)),
    ];
    check("arm", &arm, size_of::<Arm>());
    let wait = [
        ("sequence", offset_of!(Arrival, sequence)),
        ("time", offset_of!(Arrival, due)),
        ("served", offset_of!(Arrival, served)),
    ];
    check("wait", &wait, size_of::<Arrival>());
    check("watch", &[("cost", offset_of!(Watch, cost))], size_of::<Watch>());
    let switches = [
        ("count", offset_of!(WatchedSwitches, count)),
        ("lost", offset_of!(WatchedSwitches, lost)),
        ("took[LATLAB_SWITCHES]", offset_of!(WatchedSwitches, took)),
    ];
    check("switches", &switches, size_of::<WatchedSwitches>());
    let inject = [
        ("at", offset_of!(Inject, at)),
        ("until", offset_of!(Inject, until)),
        ("cause", offset_of!(Inject, cause)),
        ("zero", offset_of!(Inject, zero)),
    ];
    check("inject", &inject, size_of::<Inject>());
}
