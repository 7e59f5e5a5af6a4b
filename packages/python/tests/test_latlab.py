"""Tests of the installed wheel: packages/test runs them in a clean environment."""

import ctypes
import importlib.util
import json
import subprocess

import latlab
import pytest

HAS_HISTOGRAMS = importlib.util.find_spec("hdrh") is not None


@pytest.fixture(scope="module")
def record():
    return latlab.run("cyclic", "--policy", "other", "--count", "200", "--cpus", "0")


@pytest.mark.skipif(HAS_HISTOGRAMS, reason="hdrhistogram is installed")
def test_histogram_without_its_package_says_what_to_install(record):
    with pytest.raises(ImportError, match="pip install hdrhistogram"):
        record.histogram("cyclic")


@pytest.mark.skipif(not HAS_HISTOGRAMS, reason="hdrhistogram is not installed")
def test_histogram_has_every_sample_of_the_series(record):
    series = record.series.iloc[0]
    histogram = record.histogram("cyclic", cpu=0)
    assert histogram.get_total_count() == series["recorded"] > 0
    # Three significant digits.
    assert abs(histogram.get_max_value() - series["max"]) <= series["max"] / 1000
    assert abs(histogram.get_value_at_percentile(50) - series["p50"]) <= series["p50"] / 500


@pytest.mark.skipif(not HAS_HISTOGRAMS, reason="hdrhistogram is not installed")
def test_histogram_of_an_unknown_probe_names_those_there_are(record):
    with pytest.raises(KeyError, match="cyclic"):
        record.histogram("cyclick")


def test_written_record_is_read_with_its_tables(record, tmp_path):
    path = tmp_path / "record.json"
    path.write_text(json.dumps(record.data))
    again = latlab.read(path)
    assert again.series.equals(record.series)
    assert again.worst["latency"].iloc[0] == again.series["max"].max()


def test_other_schema_is_refused(tmp_path):
    path = tmp_path / "record.json"
    path.write_text('{"schema": 1}')
    with pytest.raises(ValueError, match="schema"):
        latlab.read(path)


def test_failed_run_raises_with_the_reason():
    with pytest.raises(subprocess.CalledProcessError) as raised:
        latlab.run("no-such-probe")
    assert "no-such-probe" in raised.value.stderr
    assert raised.value.returncode == 2


def test_program_makes_a_report(record, tmp_path):
    path, page = tmp_path / "record.json", tmp_path / "report.html"
    path.write_text(json.dumps(record.data))
    made = subprocess.run([latlab.program(), "report", path, "-o", page], capture_output=True)
    assert made.returncode == 0, made.stderr
    assert "cyclic" in page.read_text()


def test_period_runs_cycles_that_are_due_whole_periods_apart():
    from latlab.period import Period

    with Period(2_000_000, name="test", lock_memory=False) as period:
        missed = sum(period.wait() for _ in range(20))
        end = period.summary()
    assert (end.cycles, end.missed) == (20, missed)
    assert end.lateness_min_ns <= end.lateness_max_ns
    with pytest.raises(ValueError, match="has ended"):
        period.wait()


def test_parts_lie_within_one_another_and_end_by_exceptions():
    from latlab.mark import Part

    outer, inner = Part("outer"), Part("inner")
    with pytest.raises(KeyError):
        with outer(-1), inner(1 << 40):
            raise KeyError
    with pytest.raises(ctypes.ArgumentError):
        with outer("not a number"):
            pass


def test_period_that_is_refused_says_why():
    from latlab.period import Period

    with pytest.raises(OSError, match="10 us to 1 h"):
        Period(1)
