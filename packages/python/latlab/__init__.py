"""Records of latlab: distributions as HdrHistogram, tables as pandas frames.

    record = latlab.run("cyclic", "--load", "fork", "--for", "10s")
    record = latlab.read("record.json")
    record.histogram("cyclic").get_value_at_percentile(99.9)
    record.series[["probe", "cpu", "p99", "max"]]

Times are integer nanoseconds, as in the record.
"""

import json
import os
import subprocess
import sysconfig
from pathlib import Path

import pandas

__all__ = ["Record", "program", "read", "run"]

SCHEMA = 2

# The range of a record's distributions: 1 ns to 1 h, three significant digits.
_LONGEST = 3_600_000_000_000
_DIGITS = 3


class Record:
    """The result of a run. `data` is the record as it was read; see docs/record.md."""

    def __init__(self, data):
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            found = data.get("schema") if isinstance(data, dict) else None
            raise ValueError(f"this is no record of schema {SCHEMA} (schema: {found})")
        self.data = data

    @property
    def series(self):
        """One row for each probe, span and CPU, with counts and quantiles."""
        return pandas.DataFrame([_row(series) for series in self.data["series"]])

    @property
    def figures(self):
        """Single values: probe, name, value, unit, load, profile."""
        return pandas.DataFrame(self.data["figures"])

    @property
    def worst(self):
        """The worst samples of all series, worst first."""
        return pandas.DataFrame(self.data["worst"])

    @property
    def causes(self):
        """What explained late wake-ups were charged to, largest first; empty without explanation."""
        explained = self.data.get("explained") or {}
        return pandas.DataFrame(explained.get("causes", []))

    @property
    def sections(self):
        """Non-preemptible sections of all scans, with the name of the call."""
        rows = [
            {"call": scan["call"]["name"], "profile": scan.get("profile"), **section}
            for scan in self.data.get("scans") or []
            for section in scan["sections"]
        ]
        return pandas.DataFrame(rows)

    def histogram(self, probe=None, span=None, cpu=None):
        """All samples of the series with this probe, span and CPU, added up.

        Needs the package hdrhistogram, which pip compiles on arm64: `latlab[histogram]`.
        """
        try:
            from hdrh.histogram import HdrHistogram
        except ImportError as error:
            raise ImportError(
                "distributions need hdrhistogram, which pip compiles on this machine: "
                "install gcc and python3-dev, then: pip install hdrhistogram"
            ) from error
        wanted = {"probe": probe, "span": span, "cpu": cpu}
        wanted = {key: value for key, value in wanted.items() if value is not None}
        total, found = HdrHistogram(1, _LONGEST, _DIGITS), False
        for series in self.data["series"]:
            if all(series.get(key) == value for key, value in wanted.items()):
                total.add(HdrHistogram.decode(series["hdr"]))
                found = True
        if not found:
            names = sorted({series["probe"] for series in self.data["series"]})
            raise KeyError(f"no series has {wanted}; probes of this record: {', '.join(names)}")
        return total


def _row(series):
    row = {key: value for key, value in series.items() if not isinstance(value, (dict, list))}
    row.pop("hdr", None)
    return {**row, **series["counts"], **series["quantiles"]}


def read(path):
    """Reads a record that `latlab run --out FILE` wrote."""
    with open(path, encoding="utf-8") as file:
        return Record(json.load(file))


def program():
    """The path of the program in this installation."""
    folders = [sysconfig.get_path("scripts")]
    folders += [sysconfig.get_path("scripts", f"{os.name}_user")]
    for folder in folders:
        path = Path(folder) / "latlab"
        if path.is_file():
            return path
    raise FileNotFoundError(f"the program latlab is in none of: {', '.join(folders)}")


def run(*arguments):
    """Runs `latlab run` with these arguments and returns its record.

    Raises subprocess.CalledProcessError, whose stderr says why, if no record was written. A limit that
    was exceeded (exit code 1) and a run that was ended early (4) still give a record.
    """
    command = [program(), "run", *map(str, arguments), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if not ended.stdout:
        raise subprocess.CalledProcessError(
            ended.returncode, command, output=ended.stdout, stderr=ended.stderr
        )
    return Record(json.loads(ended.stdout))
