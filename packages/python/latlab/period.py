"""Periods that hold: a loop whose cycles start on time, and which `latlab watch` shows.

    from latlab.period import FIFO, Period

    with Period(10_000_000, policy=FIFO, priority=80) as period:
        for missed in period:
            ...  # one cycle

Times are integer nanoseconds. docs/period.md describes the settings.
"""

import ctypes
import os
from pathlib import Path

__all__ = ["CATCH_UP", "DEADLINE", "FIFO", "KEEP", "RR", "SKIP", "STOP", "Period", "Summary"]

KEEP, FIFO, RR, DEADLINE = range(4)
SKIP, CATCH_UP, STOP = range(3)


class _Settings(ctypes.Structure):
    _fields_ = [
        ("period_ns", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("policy", ctypes.c_int),
        ("priority", ctypes.c_int),
        ("runtime_ns", ctypes.c_uint64),
        ("on_overrun", ctypes.c_int),
        ("leave_memory_unlocked", ctypes.c_int),
        ("stack_bytes", ctypes.c_uint64),
        ("hold_cpu_dma_latency", ctypes.c_int),
        ("cpu_dma_latency_us", ctypes.c_int),
        ("spin_at_most_ns", ctypes.c_uint64),
        ("failed", ctypes.c_char_p),
    ]


class Summary(ctypes.Structure):
    """The loop so far."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "cycles",
            "overruns",
            "missed",
            "lateness_min_ns",
            "lateness_max_ns",
            "running_max_ns",
            "spin_ns",
        )
    ]


def _library():
    own = Path(__file__).with_name("liblatlab-period.so")
    library = ctypes.CDLL(str(own) if own.exists() else "liblatlab-period.so.0", use_errno=True)
    library.latlab_period_start.restype = ctypes.c_void_p
    library.latlab_period_start.argtypes = [ctypes.POINTER(_Settings)]
    library.latlab_period_wait.restype = ctypes.c_int64
    library.latlab_period_wait.argtypes = [ctypes.c_void_p]
    library.latlab_period_summary.restype = None
    library.latlab_period_summary.argtypes = [ctypes.c_void_p, ctypes.POINTER(Summary)]
    library.latlab_period_end.restype = None
    library.latlab_period_end.argtypes = [ctypes.c_void_p]
    return library


_LIBRARY = _library()


class Period:
    """A loop of the calling thread. Iterating waits for each cycle, and gives the number of periods
    that were skipped before it; it ends where `STOP` was chosen and a cycle ended too late.

    Raises OSError where the kernel refuses a setting.
    """

    def __init__(
        self,
        period_ns,
        *,
        name=None,
        policy=KEEP,
        priority=0,
        runtime_ns=0,
        on_overrun=SKIP,
        lock_memory=True,
        stack_bytes=0,
        cpu_dma_latency_us=None,
        spin_at_most_ns=0,
    ):
        settings = _Settings(
            period_ns=period_ns,
            name=name.encode() if name is not None else None,
            policy=policy,
            priority=priority,
            runtime_ns=runtime_ns,
            on_overrun=on_overrun,
            leave_memory_unlocked=not lock_memory,
            stack_bytes=stack_bytes,
            hold_cpu_dma_latency=cpu_dma_latency_us is not None,
            # No ctypes integer refuses a greater number, or a very low one: it would become another.
            cpu_dma_latency_us=max(-1, min(cpu_dma_latency_us or 0, 2**31 - 1)),
            spin_at_most_ns=spin_at_most_ns,
        )
        self._period = _LIBRARY.latlab_period_start(ctypes.byref(settings))
        if not self._period:
            number = ctypes.get_errno()
            raise OSError(number, f"{settings.failed.decode()}: {os.strerror(number)}")

    def wait(self):
        """Ends a cycle and waits for the next. Returns the number of skipped periods, or -1 where the
        loop has stopped."""
        return _LIBRARY.latlab_period_wait(self._open())

    def __iter__(self):
        while (missed := self.wait()) >= 0:
            yield missed

    def summary(self):
        """Returns the loop so far."""
        summary = Summary()
        _LIBRARY.latlab_period_summary(self._open(), ctypes.byref(summary))
        return summary

    def end(self):
        """Ends the loop. The policy stays, and memory stays locked."""
        period, self._period = self._period, None
        _LIBRARY.latlab_period_end(period)

    def _open(self):
        if self._period is None:
            raise ValueError("the loop has ended")
        return self._period

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
