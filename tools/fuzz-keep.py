#!/usr/bin/env python3
"""Replaces the kept corpus of fuzz targets by a minimised one: of all inputs in fuzz/corpus/ and
target/fuzz/corpus/, those that add most coverage. tools/fuzz-keep.py [TARGET…]"""

import hashlib
import pathlib
import subprocess
import sys
import tempfile

MOST = 40  # inputs of a target
LONGEST = 30_000  # bytes of all inputs of a target; one is kept whatever its length


def minimised(target):
    """The inputs of a target, those with the most features first."""
    program = next(pathlib.Path("target/fuzz").glob(f"*-*/fuzz/{target}"))
    folders = [f"fuzz/corpus/{target}", f"target/fuzz/corpus/{target}"]
    with tempfile.TemporaryDirectory() as new:
        control = pathlib.Path(new, "control")
        merged = pathlib.Path(new, "merged")
        merged.mkdir()
        sources = [folder for folder in folders if pathlib.Path(folder).is_dir()]
        command = [program, "-merge=1", f"-merge_control_file={control}", merged, *sources]
        subprocess.run(command, check=True, capture_output=True)
        kept = {path.read_bytes() for path in merged.iterdir()}
        lines = control.read_text().splitlines()
        files = [pathlib.Path(line) for line in lines[2 : 2 + int(lines[0])]]
        features = [line.split() for line in lines if line.startswith("FT ")]
        inputs = [(len(words) - 2, files[int(words[1])].read_bytes()) for words in features]
    inputs = [(count, data) for count, data in inputs if data in kept]
    return [data for _, data in sorted(inputs, key=lambda one: (-one[0], len(one[1]), one[1]))]


def main():
    targets = sys.argv[1:] or sorted(path.stem for path in pathlib.Path("fuzz/fuzz_targets").iterdir())
    for target in targets:
        folder = pathlib.Path("fuzz/corpus", target)
        length, chosen = 0, []
        for data in minimised(target):
            if not chosen or len(chosen) < MOST and length + len(data) <= LONGEST:
                chosen.append(data)
                length += len(data)
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        for data in chosen:
            folder.joinpath(hashlib.sha1(data).hexdigest()[:16]).write_bytes(data)
        print(f"{target}: {len(chosen)} inputs, {length} bytes")


main()
