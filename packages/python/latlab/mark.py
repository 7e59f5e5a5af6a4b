"""Marks of the parts of a cycle: `latlab check` shows how long each took.

    from latlab.mark import Part

    control = Part("control")
    for cycle, missed in enumerate(period):
        with control(cycle):
            ...  # the part

docs/marks.md describes them.
"""

import ctypes

from latlab.period import _LIBRARY

__all__ = ["Part"]

# A mark keeps the interpreter's lock: no other thread of Python gets it there.
_MARKS = ctypes.PyDLL(_LIBRARY._name)
_BEGIN, _END = _MARKS.latlab_mark_begin, _MARKS.latlab_mark_end
_BEGIN.restype = _END.restype = None
_BEGIN.argtypes = [ctypes.c_char_p, ctypes.c_int64]
# _END has no types: its argument is bytes, and conversion takes longer than the call.


class Part:
    """A part of a cycle, which lasts as long as its block. `id` is any integer that tells this time
    from others, such as the number of the cycle."""

    __slots__ = ("_id", "_name")

    def __init__(self, name):
        self._name = name.encode()
        self._id = 0

    def __call__(self, id):  # noqa: A002
        self._id = id
        return self

    def __enter__(self):
        _BEGIN(self._name, self._id)
        return self

    def __exit__(self, *_):
        _END(self._name)
