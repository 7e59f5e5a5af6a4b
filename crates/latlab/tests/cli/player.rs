//! The probe `player` in guests: coarse timers, underruns of the sound device, too little CPU time.

use crate::program::{Missing, count, latlab, not_run};
use latlab_core::record::{Record, Series};
use std::path::Path;

/// Returns the series of the n-th film whose span ends with `end`.
fn series<'a>(record: &'a Record, end: &str, film: usize) -> &'a Series {
    let mut ending = record.series.iter().filter(|series| series.span.1 == end);
    ending.nth(film).expect("there is such a series")
}

#[test]
fn film_is_smooth_with_fine_timers_only() {
    // The sound buffer of the second film is shorter than a tick of the kernel with coarse timers.
    let words = "run player player:period=32 player:device=alsa --load fork --for 500ms --on lab:rt \
                 --on lab:standard --json";
    let output = latlab(words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let [fine, coarse] = output.two_records();
    for film in 0..3 {
        let late = series(&fine, "frame shown", film);
        assert!((15..=16).contains(&late.counts.recorded), "{late:?}");
        assert_eq!(late.counts.missed, 0, "{late:?}");
        assert!(late.max.0 < 1_000_000, "{late:?}");
        for name in ["frames late", "frames dropped", "underruns", "silence"] {
            assert_eq!(count(&fine, name, film), 0, "{name}");
        }
    }
    for skew in ["sound ahead", "sound behind"] {
        assert!(series(&fine, skew, 2).max.0 < 1_000_000, "{fine:?}");
    }
    assert!(series(&coarse, "sound ahead", 0).max.0 > 1_000_000, "{coarse:?}");
    assert_eq!(count(&coarse, "underruns", 0), 0);
    assert!(count(&coarse, "underruns", 1) > 50, "{:?}", coarse.figures);
    assert!(count(&coarse, "silence", 1) > 50_000_000, "{:?}", coarse.figures);
    assert!(series(&coarse, "sound behind", 1).max.0 > 100_000, "{coarse:?}");
}

#[test]
fn frames_are_dropped_when_player_gets_too_little_time() {
    let words = "run player:work=90% --policy other --load cpu --for 2s --on lab:standard --json";
    let output = latlab(words);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let record = output.record();
    let counts = series(&record, "frame shown", 0).counts;
    assert!(counts.missed > 10 && counts.recorded > 10, "{counts:?}");
    assert_eq!(count(&record, "frames dropped", 0), counts.missed);
    assert_eq!(count(&record, "frames shown", 0), counts.recorded);
    assert!(count(&record, "frames late", 0) > 0, "{:?}", record.figures);
}

#[test]
fn player_with_impossible_parameters_is_refused() {
    latlab("run player:work=91%").assert_refused(2, &["player", "91%", "90%"]);
    latlab("run player:fps=0").assert_refused(2, &["player", "fps"]);
    if Path::new("/dev/snd").exists() {
        not_run(Missing::Optional, "a part of it: this machine has /dev/snd");
    } else {
        let output = latlab("run player:device=alsa --for 1s");
        output.assert_refused(3, &["player", "/dev/snd", "modprobe snd-dummy", "device=clock"]);
    }
    latlab("run player:priority=99 --for 1s").assert_refused(2, &["priority=99", "priority=98"]);
    latlab("run player --policy deadline").assert_refused(2, &["player", "deadline", "fifo"]);
}
