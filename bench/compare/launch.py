#!/usr/bin/env python3
"""Times how long fedrun takes to start and end ranks that do nothing, in turns with plain mpirun, and prints both."""
import argparse
import os
import statistics
import subprocess
import time
from pathlib import Path


def seconds(command):
    begin = time.monotonic()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="where fedrun was built")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=21)
    flags = parser.parse_args()

    fedrun = [str(Path(flags.build) / "bin" / "fedrun"), "-np", str(flags.ranks), "true"]
    # The same choices that fedrun makes for one host, so that only its own work differs.
    mpirun = ["mpirun", "-np", str(flags.ranks), "--oversubscribe", "--bind-to", "none",
              "--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp", "true"]
    if os.geteuid() == 0:
        mpirun.insert(1, "--allow-run-as-root")
    times = {"fedrun": [], "mpirun": []}
    for _ in range(flags.repeats):
        times["fedrun"].append(seconds(fedrun))
        times["mpirun"].append(seconds(mpirun))
    medians = {name: 1e3 * statistics.median(values) for name, values in times.items()}
    print(f"{flags.ranks} ranks of `true`, medians of {flags.repeats}: "
          f"fedrun {medians['fedrun']:.1f} ms, mpirun {medians['mpirun']:.1f} ms, "
          f"overhead {medians['fedrun'] - medians['mpirun']:.1f} ms")


if __name__ == "__main__":
    main()
