"""A control loop of 100 Hz: each cycle reads a sensor and sets an actuator, both simulated.

The argument is the number of cycles (100): python3 control.py
"""

import gc
import sys

from latlab.mark import Part
from latlab.period import FIFO, Period

cycles = int(sys.argv[1]) if len(sys.argv) > 1 else 100
gc.disable()  # A collection would be part of a cycle.
position = force = 0.0
sensor, actuator = Part("sensor"), Part("actuator")
with Period(10_000_000, name="control", policy=FIFO, priority=80) as period:
    for _missed in period:
        with sensor(cycles):
            position += (force - position) / 100
        with actuator(cycles):
            force += (1 - position) / 10
        cycles -= 1
        if cycles == 0:
            break
    end = period.summary()
print(
    f"{end.cycles} cycles, {end.overruns} overruns, {end.missed} missed, "
    f"at most {end.lateness_max_ns} ns late"
)
