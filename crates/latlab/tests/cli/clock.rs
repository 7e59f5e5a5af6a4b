//! Clocks that are set while a probe sleeps on them, in guests: the clock of this machine stays.

use crate::program::{command, run};
use latlab_core::record::{Record, Warning};

/// Measures three seconds at 1 ms in a guest whose clock is set by these steps of `date -s`, one every
/// 400 ms after a second. Returns the record and how long it took, in seconds of the guest.
fn measured(clock: &str, steps: &[&str]) -> (Record, f64) {
    let date = |step: &&str| format!("date -s '{step}' >/dev/null; sleep .4\n");
    let steps: String = steps.iter().map(date).collect();
    let script = format!(
        "now() {{ read now rest </proc/uptime; echo $now; }}\n\
         began=$(now)\n\
         /latlab run cyclic:clock={clock} --for 3s --warm-up 0 --json >/record 2>/dev/null & run=$!\n\
         sleep 1\n{steps}wait $run; code=$?\n\
         echo $began $(now); cat /record; exit $code"
    );
    let tools = ["date", "sleep", "cat", "sh"].map(|tool| format!("--with /bin/{tool}"));
    let mut command = command(&format!("exec --on lab:rt {} -- sh -c", tools.join(" ")));
    let output = run(command.arg(script));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let (times, record) = output.stdout.split_once('\n').expect("two lines and more");
    let times: Vec<f64> = times.split(' ').map(|time| time.parse().expect("a number")).collect();
    (Record::from_json(record).unwrap_or_else(|e| panic!("{e}: {output:?}")), times[1] - times[0])
}

fn clock_set(record: &Record) -> Option<&str> {
    let is_it = |warning: &&Warning| warning.code == "clock-set";
    record.warnings.iter().find(is_it).map(|warning| warning.text.as_str())
}

#[test]
fn cyclic_ends_in_time_and_says_so_where_its_clock_is_set() {
    let to_and_fro =
        "cyclic: its clock was set to and fro, or by less than an interval while it measured";
    for (clock, steps, said) in [
        ("realtime", &["+1 hour", "-1 hour"][..], to_and_fro),
        ("tai", &["+1 hour", "-1 hour"], to_and_fro),
        ("realtime", &["-1 min"], "cyclic: its clock was set back by "),
        ("realtime", &["+1 hour"], "cyclic: its clock was set ahead by "),
    ] {
        let (record, took) = measured(clock, steps);
        let text =
            clock_set(&record).unwrap_or_else(|| panic!("no warning: {:?}", record.warnings));
        assert!(text.starts_with(said), "{text}");
        // After a step back the thread sleeps until the monitor looks.
        let counts = record.series[0].counts;
        assert!(took > 3.0 && took < 6.0, "{clock} {steps:?}: {took} s");
        assert!(counts.recorded > 2_000, "{clock} {steps:?}: {counts:?}");
    }
}

#[test]
fn clock_that_is_not_set_gives_each_period_and_no_warning() {
    for clock in ["realtime", "tai", "monotonic"] {
        let (record, _) = measured(clock, &[]);
        let counts = record.series[0].counts;
        assert_eq!((clock_set(&record), counts.recorded + counts.missed), (None, 3_000), "{clock}");
    }
}
