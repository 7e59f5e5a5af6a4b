//! Tests of results of other tools; the texts have the form that the tools write.

use super::*;
use crate::record::WarningCode;
use crate::time::Nanos;
use proptest::prelude::*;

const MICRO: u64 = 1_000;

fn record(text: &str) -> Record {
    let record = read(text).expect("it is recognized").expect("it is whole");
    // What is kept as a record is read again.
    assert_eq!(Record::from_json(&record.to_json()).expect("it is consistent"), record);
    record
}

fn refused(text: &str) -> String {
    read(text).expect("it is recognized").expect_err("it is damaged").to_string()
}

fn warnings(record: &Record, code: WarningCode) -> Vec<&str> {
    record.warnings.iter().filter(|one| one.code == code).map(|one| one.text.as_str()).collect()
}

const HISTOGRAM: &str = "\
# /dev/cpu_dma_latency set to 0us
# cyclictest V2.80 --threads=2 --policy=fifo --priority=99 --interval=200 --distance=0 --histogram=400 --duration=2
# Histogram
000001 000100\t000000
000002 009800\t009990
000003 000090\t000008
# Min Latencies: 00001 00002
# Avg Latencies: 00002 00002
# Max Latencies: 03785 00409
# Histogram Overflows: 00004 00001
# Histogram Overflow at cycle number:
# Thread 0: 00051 00102 00153 00204
# Thread 1: 00100
";

#[test]
fn histogram_of_cyclictest_keeps_what_is_above_its_range() {
    let record = record(HISTOGRAM);
    assert_eq!(record.tool, "cyclictest 2.80");
    let [first, second] = &record.series[..] else { panic!("two threads") };
    assert_eq!((first.probe.as_str(), first.span.1.as_str()), ("cyclic", "thread running"));
    assert_eq!((first.schedule.policy.as_str(), first.schedule.priority), ("fifo", 99));
    // 2 s in periods of 200 us.
    assert_eq!((first.counts.recorded, first.counts.missed), (9_994, 6));
    assert_eq!((first.min, first.max), (Nanos(MICRO), Nanos(3_785 * MICRO)));
    // To three digits.
    assert_eq!(first.quantiles.p99_9.0 / 10, 300);
    assert!(first.is_at_least(first.quantiles.p99_99) && !first.is_at_least(first.quantiles.p99_9));
    assert_eq!(second.max, Nanos(409 * MICRO));
    let above = warnings(&record, WarningCode::AboveRange);
    assert!(
        above[0].starts_with(
            "5 of 19993 samples are above the range of the histogram. They are counted at 400 us"
        ),
        "{above:?}"
    );
}

#[test]
fn histogram_with_the_sum_of_its_threads_is_that_of_the_threads() {
    let with_sum = HISTOGRAM
        .replace("000100\t000000", "000100\t000000\t000100")
        .replace("009800\t009990", "009800\t009990\t019790")
        .replace("000090\t000008", "000090\t000008\t000098")
        .replace("Max Latencies: 03785 00409", "Max Latencies: 03785 00409 03785")
        .replace("Overflows: 00004 00001", "Overflows: 00004 00001 00005");
    assert_eq!(record(&with_sum).series, record(HISTOGRAM).series);
    let wrong = with_sum.replace("\t019790", "\t019791");
    let why =
        "this is a result of cyclictest, but line 5: its last count is not the sum of the others";
    assert_eq!(refused(&wrong), why);
}

#[test]
fn overflows_at_a_steady_pace_are_said() {
    let list: String = (0..40).map(|nth| format!(" {:05}", 100 + nth * 51)).collect();
    let text = HISTOGRAM.replace(" 00051 00102 00153 00204", &list);
    let record = record(&text);
    let said = warnings(&record, WarningCode::OtherTool);
    assert!(said.iter().any(|text| text.contains("51 cycles, 10.2 ms")), "{said:?}");
    let irregular = HISTOGRAM.replace(" 00051 00102", " 00051 00952");
    assert_eq!(warnings(&read(&irregular).unwrap().unwrap(), WarningCode::OtherTool).len(), 1);
}

#[test]
fn histogram_without_options_leaves_periods_and_policy_unknown() {
    let text: String = HISTOGRAM
        .lines()
        .filter(|line| !line.contains("V2.80"))
        .map(|line| line.to_owned() + "\n")
        .collect();
    let record = record(&text);
    let series = &record.series[0];
    assert_eq!(
        (series.counts.missed, series.interval, series.schedule.policy.as_str()),
        (0, None, "unknown")
    );
    // The range ends after the last bucket at the earliest.
    assert_eq!(series.beyond.unwrap().limit, Nanos(4 * MICRO));
    let unknown = warnings(&record, WarningCode::OtherTool)[0];
    for what in
        ["its kernel", "policy and priority", "missed periods", "if cyclictest ran without -N"]
    {
        assert!(unknown.contains(what), "{unknown}");
    }
}

#[test]
fn damaged_histograms_are_refused_with_their_line() {
    let cut = HISTOGRAM.split("# Max").next().unwrap();
    assert!(
        refused(cut).ends_with("it ends before its line '# Max Latencies:': the file is cut short")
    );
    let mixed = HISTOGRAM.replace("000002 009800\t009990", "000002 009800\t009990\t1\t2");
    assert!(refused(&mixed).contains("line 5: it has 4 counts"), "{}", refused(&mixed));
    let twice = format!("{HISTOGRAM}{HISTOGRAM}");
    let why = "line 20: '# Min Latencies:' is there twice: these are two runs in one file";
    assert!(refused(&twice).contains(why), "{}", refused(&twice));
    let again = HISTOGRAM.replace("000003 000090", "000002 000090");
    assert!(refused(&again).contains("line 6: the bucket 2 is there twice"), "{}", refused(&again));
    let few = HISTOGRAM.replace("Overflows: 00004 00001", "Overflows: 00004");
    assert!(refused(&few).contains("different numbers of threads"), "{}", refused(&few));
    let huge = HISTOGRAM.replace("009800\t009990", "18446744073709551615\t18446744073709551615");
    assert!(refused(&huge).contains("more samples than any run takes"), "{}", refused(&huge));
    let lacking = HISTOGRAM.replace("# Min", "# Total: 009990 009999\n# Min");
    let why = "thread 1 has 9999 samples, and its buckets have 9998: lines are missing";
    assert!(refused(&lacking).contains(why), "{}", refused(&lacking));
    let text = HISTOGRAM.replace("009990", "many");
    assert!(refused(&text).contains("line 5: 'many' is no number"), "{}", refused(&text));
}

#[test]
fn mail_and_terminal_do_not_change_a_histogram() {
    let quoted: String = HISTOGRAM.lines().map(|line| format!("> {line}\n")).collect();
    let spaced = HISTOGRAM.replace('\t', "\u{a0}").replace('\n', "\r\n");
    for text in [quoted, spaced] {
        assert_eq!(record(&text).series, record(HISTOGRAM).series);
    }
}

#[test]
fn lines_of_threads_are_figures_and_samples_a_distribution() {
    let line = |act: u64| {
        format!(
            "T: 0 (  437) P:48 I:1000 C: 540000 Min:      4 Act:{act:5} Avg:   18 Max:     217\n"
        )
    };
    let record_of_lines = record(&format!("policy: fifo: loadavg: 0.00\n{}\r{}", line(7), line(5)));
    let values: Vec<(&str, f64)> =
        record_of_lines.figures.iter().map(|one| (one.name.as_str(), one.value)).collect();
    assert_eq!(values[3], ("thread 0: max", 217_000.0));
    assert!(record_of_lines.series.is_empty());
    let verbose = "Max CPUs = 2\n       0:       0:       8\n       0:       1:       9\n       1:       0:      30\n";
    let record = record(verbose);
    assert_eq!(record.series.iter().map(|one| one.counts.recorded).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(record.series[1].max, Nanos(30 * MICRO));
}

const JSON: &str = r#"{
  "file_version": 1,
  "cmdline:": "cyclictest --threads=2 --policy=fifo --priority=99 --interval=200 --distance=0 --histogram=400 --duration=2",
  "rt_test_version:": "2.80",
  "sysinfo": {"sysname": "Linux", "release": "7.0.0-rt", "realtime": 1},
  "num_threads": 2,
  "resolution_in_ns": 0,
  "thread": {
    "0": {"histogram": {"1": 100, "2": 9800, "3": 90}, "cycles": 9994, "min": 1, "max": 3785, "avg": 2.0, "cpu": 0},
    "1": {"histogram": {"2": 9990, "3": 8}, "cycles": 9999, "min": 2, "max": 409, "avg": 2.0, "cpu": 1}
  }
}"#;

#[test]
fn json_of_cyclictest_has_the_distribution_of_its_histogram() {
    let of_json = record(JSON);
    assert_eq!(of_json.series, record(HISTOGRAM).series);
    assert_eq!(of_json.machine.kernel, "7.0.0-rt");
    let without = JSON.replace("histogram\"", "other\"");
    let without = record(&without);
    assert_eq!((without.series.len(), without.figures.len()), (0, 6));
}

#[test]
fn last_bucket_of_oslat_has_what_is_above_it() {
    let text = r#"{"file_version": 1, "cmdline:": "oslat -D 2", "rt_test_version:": "2.40", "thread": {"0": {"cpu": 1,
        "min": 1, "avg": 1.008, "max": 5372, "duration": 2.006, "histogram": {"1": 990, "31": 6, "32": 4}}}}"#;
    let record = record(text);
    let series = &record.series[0];
    assert_eq!((series.probe.as_str(), series.cpu, series.counts.recorded), ("oslat", 1, 1_000));
    assert_eq!(
        series.beyond.map(|beyond| (beyond.limit, beyond.count)),
        Some((Nanos(32 * MICRO), 4))
    );
    assert_eq!(series.max, Nanos(5_372 * MICRO));
}

#[test]
fn pairs_of_threads_are_figures() {
    let text = r#"{"file_version": 1, "cmdline:": "ptsematest -t1", "rt_test_version:": "2.40", "num_threads": 1,
        "thread": {"0": {"sender": {"cpu": 0, "priority": 80, "samples": 930, "interval": 1000},
        "receiver": {"cpu": 1, "priority": 80, "min": 11, "avg": 16.5, "max": 47}}}}"#;
    let figures = record(text).figures;
    let shown: Vec<(&str, &str, f64)> =
        figures.iter().map(|one| (one.probe.as_str(), one.name.as_str(), one.value)).collect();
    assert_eq!(shown[1], ("ptsematest", "pair 0: mean", 16_500.0));
    assert_eq!(shown.len(), 3);
}

#[test]
fn jitterdebugger_has_lost_what_its_histogram_lacks() {
    let text = r#"{"cpu": {"0": {"histogram": {"3": 3678, "4": 220, "5": 1, "8": 1}, "count": 3901, "min": 3, "max": 1100, "avg": 3.06}}}"#;
    let record = record(text);
    let series = &record.series[0];
    assert_eq!((series.counts.recorded, series.max), (3_901, Nanos(1_100 * MICRO)));
    assert_eq!(series.beyond.map(|beyond| beyond.count), Some(1));
    assert_eq!(record.tool, "jitterdebugger");
}

#[test]
fn options_are_read_in_every_form() {
    let of = |words: &str| {
        let text = HISTOGRAM.replace(
            "--threads=2 --policy=fifo --priority=99 --interval=200 --distance=0 --histogram=400 --duration=2",
            words,
        );
        record(&text).series.swap_remove(0)
    };
    let usual = of("-t2 -p 99 -i 200 -h 400 -D 2");
    assert_eq!((usual.schedule.policy.as_str(), usual.counts.missed), ("fifo", 6));
    assert_eq!(of("-mSp99 -qi200 -h400 -D2s").counts, usual.counts);
    assert_eq!(of("-mq -Sp99 --interval 200 -h400 -D 2").schedule, usual.schedule);
    assert_eq!(of("-i200 -h400 -D2").schedule.policy, "other");
    // What may end a run early leaves the missed periods unknown, and so does a run that ended.
    for words in
        ["-i200 -h400 -D2 -b 500", "-i200 -h400 -D2 -l 9000", "-i200 -h400 -D30", "-i0 -h400 -D2"]
    {
        assert_eq!((of(words).counts.missed, of(words).interval), (0, None), "{words}");
    }
    let early = HISTOGRAM.replace("--duration=2", "--duration=30");
    let said = warnings(&record(&early), WarningCode::OtherTool).join("; ");
    assert!(said.contains("the run ended early, and missed periods are not known"), "{said}");
    let fine = of("-mN -t2 -i200 -h400 -D2");
    assert_eq!((fine.min, fine.beyond.map(|beyond| beyond.limit)), (Nanos(1), Some(Nanos(400))));
    for words in ["-h400 -i 18446744073709551615 -D2", "-h400 -D 18446744073709551615"] {
        assert_eq!(of(words).counts.missed, 0, "{words}");
    }
}

#[test]
fn threads_without_buckets_are_at_their_minimum_or_left_out() {
    let text = HISTOGRAM
        .replace("000100\t000000", "000100\t000000\t000000")
        .replace("009800\t009990", "009800\t000000\t000000")
        .replace("000090\t000008", "000090\t000000\t000000")
        .replace("Min Latencies: 00001 00002", "Min Latencies: 00001 00450 1000000")
        .replace("Max Latencies: 03785 00409", "Max Latencies: 03785 00900 00000")
        .replace("Overflows: 00004 00001", "Overflows: 00004 00007 00000");
    let record = record(&text);
    assert_eq!(record.series.len(), 2);
    let above = &record.series[1];
    assert_eq!((above.min, above.max), (Nanos(450 * MICRO), Nanos(900 * MICRO)));
    assert_eq!(
        above.beyond.map(|beyond| (beyond.limit, beyond.count)),
        Some((Nanos(450 * MICRO), 7))
    );
    let lacking = HISTOGRAM.replace("000001 000100\t000000\n", "");
    let said = read(&lacking).unwrap().unwrap();
    let said = warnings(&said, WarningCode::OtherTool).join("; ");
    assert!(said.contains("a minimum is in none of the buckets: lines are missing"), "{said}");
}

#[test]
fn threads_of_one_cpu_are_one_series() {
    let record = record(&JSON.replace("\"cpu\": 1", "\"cpu\": 0"));
    let [both] = &record.series[..] else { panic!("one CPU") };
    assert_eq!(
        (both.counts.recorded, both.min, both.max),
        (19_993, Nanos(MICRO), Nanos(3_785 * MICRO))
    );
    assert_eq!(both.beyond.map(|beyond| beyond.count), Some(5));
}

#[test]
fn wide_lines_of_threads_are_in_nanoseconds() {
    let line =
        "T: 0 (  437) P:48 I:1000 C:    100 Min:   4123 Act:    5123 Avg:   5000 Max:   90000\n";
    let figures = record(line).figures;
    assert_eq!((figures[3].name.as_str(), figures[3].value), ("thread 0: max", 90_000.0));
}

const RTLA: &str = "\
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:02
Index   IRQ-001   Thr-001   IRQ-002   Thr-002
0          1000       944       999       998
10            0        55         0         1
20            0         1         0         0
over:         0         2         0         0
count:     1000      1002       999       999
min:          0         2         0         2
avg:          0         4         0         3
max:          3        41         2        12
ALL:        IRQ       Thr
count:     1999      2001
";

#[test]
fn histogram_of_rtla_has_a_series_for_each_column() {
    let record = record(RTLA);
    assert_eq!(record.series.len(), 4);
    let thread = &record.series[1];
    assert_eq!((thread.cpu, thread.span.1.as_str()), (1, "thread of the kernel running"));
    assert_eq!((thread.counts.recorded, thread.max), (1_002, Nanos(41 * MICRO)));
    assert_eq!(
        thread.beyond.map(|beyond| (beyond.limit, beyond.count)),
        Some((Nanos(21 * MICRO), 2))
    );
    let unknown = warnings(&record, WarningCode::OtherTool)[0];
    assert!(unknown.contains("values are rounded down to the start of their bucket"), "{unknown}");
}

#[test]
fn histogram_of_rtla_that_lacks_lines_is_refused() {
    let cut = RTLA.split("count:").next().unwrap();
    assert!(refused(cut).contains("it ends before its line 'count:'"));
    let lacking = RTLA.replace("10            0        55         0         1\n", "");
    assert!(
        refused(&lacking).contains("CPU 1 has 947 samples: lines of the histogram are missing"),
        "{}",
        refused(&lacking)
    );
    let odd = RTLA.replace("Thr-002", "Xyz-002");
    assert!(refused(&odd).contains("line 4: 'Xyz-002' is no known column"), "{}", refused(&odd));
}

/// As rtla prints it since Linux 6.10; a mail has turned the blanks of older versions into others.
const ANALYSIS: &str = "\
rtla timerlat hit stop tracing
## CPU 1 hit stop tracing, analyzing it ##
  IRQ handler delay:                                         0.00 us (0.00 %)
  IRQ latency:                                             709.25 us
  Blocking thread:
                             ip:3567
    Blocking thread stack trace
                -> timerlat_irq
                -> __hrtimer_run_queues
                -> hrtimer_interrupt
                -> __sysvec_apic_timer_interrupt
                -> asm_sysvec_apic_timer_interrupt
                -> igb_update_mc_addr_list
                -> igb_set_rx_mode
------------------------------------------------------------------------
     IRQ latency:                                          709.25 us (100%)
";

#[test]
fn analysis_of_rtla_names_what_ran() {
    let record = record(ANALYSIS);
    let said = warnings(&record, WarningCode::OtherTool)[1];
    let ran = "ip:3567 was running, in igb_update_mc_addr_list, called by igb_set_rx_mode";
    assert!(
        said.starts_with("CPU 1: 709.25 us: the timer interrupt was late") && said.ends_with(ran),
        "{said}"
    );
    let figures: Vec<(&str, f64)> =
        record.figures.iter().map(|one| (one.name.as_str(), one.value)).collect();
    assert_eq!(figures, [("IRQ latency", 709_250.0), ("IRQ handler delay", 0.0)]);
    let cut = ANALYSIS.split("-----").next().unwrap();
    assert!(
        refused(cut).contains("line 2: the analysis that begins here has no latency"),
        "{}",
        refused(cut)
    );
}

#[test]
fn analysis_of_a_late_thread_has_the_parts_of_its_latency() {
    let text = "\
## CPU 3 hit stop tracing, analyzing it ##
\u{a0} IRQ handler delay:\u{a0}\u{a0}  3.40 us (0.68 %)
  IRQ latency:             4.63 us
  Timerlat IRQ duration:  10.88 us (2.20 %)
  Blocking thread:       468.65 us (94.70 %)
                 sh:811  468.65 us
    Blocking thread stack trace
                -> timerlat_irq
                -> do_exit
  IRQ interference         4.67 us (0.94 %)
        local_timer:236    4.67 us
------
     Thread latency:     494.88 us (100%)
";
    let record = record(text);
    let figures: Vec<(&str, f64)> =
        record.figures.iter().map(|one| (one.name.as_str(), one.value.round())).collect();
    assert_eq!(figures[0], ("Thread latency", 494_880.0));
    assert!(figures.contains(&("Blocking thread", 468_650.0)), "{figures:?}");
    assert!(figures.contains(&("IRQ interference: local_timer:236", 4_670.0)), "{figures:?}");
    let said = warnings(&record, WarningCode::OtherTool)[1];
    assert!(said.ends_with("the thread was late; sh:811 was running, in do_exit"), "{said}");
}

#[test]
fn two_histograms_of_rtla_are_refused_and_an_analysis_is_added() {
    assert!(refused(&format!("{RTLA}{RTLA}")).contains("a second histogram begins here"));
    let with_analysis = record(&format!("{RTLA}{ANALYSIS}"));
    let said = warnings(&with_analysis, WarningCode::OtherTool).join("; ");
    assert!(said.contains("ip:3567 was running"), "{said}");
    let only_zero = RTLA
        .lines()
        .filter(|line| !line.starts_with("10 ") && !line.starts_with("20 "))
        .map(|line| {
            line.replace("1002", "946")
                .replace("count:     1000      946", "count:     1000       946")
                + "\n"
        })
        .collect::<String>()
        .replace("999       999\nmin", "999       998\nmin");
    assert_eq!(record(&only_zero).series[1].beyond.map(|beyond| beyond.limit), Some(Nanos(MICRO)));
}

#[test]
fn mail_with_an_introduction_is_read() {
    let quoted: String = HISTOGRAM.lines().map(|line| format!("> {line}\n")).collect();
    let text = format!("On Monday somebody wrote:\n{quoted}\nWhy?\n");
    assert_eq!(record(&text).series, record(HISTOGRAM).series);
}

#[test]
fn text_of_nobody_is_not_recognized() {
    for text in [
        "",
        "<html></html>",
        "{}",
        "[1, 2]",
        "T: something",
        "12:30:45\n12:30:46",
        "{\"schema\": 2}",
        "{\"cpu\"",
        r#"{"cpu": {"0": {"usage": 3}}}"#,
        r#"{"cpu": "A72"}"#,
    ] {
        assert!(read(text).is_none(), "{text}");
    }
}

proptest! {
    /// A histogram of any counts is one distribution, whichever way it is written.
    #[test]
    fn any_counts_are_read_alike_from_text_and_json(
        counts in proptest::collection::btree_map(0_u64..399, 1_u64..1_000_000, 1..40),
        overflows in 0_u64..50,
        longest in 400_u64..100_000,
    ) {
        let (first, last) = (counts.keys().next().unwrap(), counts.keys().next_back().unwrap());
        let max = if overflows > 0 { longest } else { *last };
        let rows: String = counts.iter().map(|(at, count)| format!("{at:06} {count:06}\n")).collect();
        let text = format!(
            "# cyclictest -t1 -h400\n# Histogram\n{rows}# Min Latencies: {first:05}\n# Avg Latencies: 00002\n\
             # Max Latencies: {max:05}\n# Histogram Overflows: {overflows:05}\n"
        );
        let bins: Vec<String> = counts.iter().map(|(at, count)| format!("\"{at}\": {count}")).collect();
        let cycles = counts.values().sum::<u64>() + overflows;
        let json = format!(
            r#"{{"file_version": 1, "cmdline:": "cyclictest -t1 -h400", "thread": {{"0": {{"histogram": {{{}}},
                "cycles": {cycles}, "min": {first}, "max": {max}, "cpu": 0}}}}}}"#,
            bins.join(", ")
        );
        let (text, json) = (record(&text), record(&json));
        prop_assert_eq!(&text.series, &json.series);
        prop_assert_eq!(text.series[0].counts.recorded, cycles);
        prop_assert_eq!(text.series[0].max, Nanos(max * MICRO));
    }

    #[test]
    fn changed_text_is_read_or_refused(at in 0_usize..500, with in any::<char>(), which in 0_usize..5) {
        let text = [HISTOGRAM, JSON, RTLA, ANALYSIS, "T: 0 (  437) P:48 I:1000 C: 5 Min: 4 Act: 5 Avg: 1 Max: 2"][which];
        let changed: String = text.chars().enumerate().map(|(nth, c)| if nth == at { with } else { c }).collect();
        if let Some(Ok(record)) = read(&changed) {
            prop_assert!(record.check().is_ok(), "{:?}", record.check());
        }
    }
}
