#!/usr/bin/env python3
"""Times rounds of federated averaging in fedrun, Flower's simulation, pfl-research and a plain PyTorch loop, in turns.

    python3 bench/compare/fedavg.py --data-dir DIR --workloads lr-10,lr-100,cnn --repeats 3

Run it with a Python that has torch, on an otherwise idle machine with two cores; DIR has MNIST's files. Rivals that are
not installed are left out. All of them train the same clients on the same samples in the same rounds, without tests,
with two processes of one thread (`threads`: one process of two). Systems take turns within each repeat, so that a
machine that drifts drifts for all of them; medians of the rounds' times, and of these over the repeats, are shown.
"""
import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

# How many times as long as fedrun's a rival's round is to take at least.
BARS = {
    "lr": {"flower": 80, "pfl": 5, "plain": 4, "tight": 1},
    "cnn": {"flower": 1, "pfl": 1, "pfl threads": 1, "plain threads": 1, "independent": 1 / 1.05},
}
# rival: the module that it needs, and how that is installed.
NEEDED = {"flower": ("flwr", "flwr[simulation]"), "pfl": ("pfl", "pfl"), "plain": ("torch", "torch")}


def kind_of(workload):
    return workload.split("-")[0]


def fedrun_command(flags, workload, rounds, folder):
    bin_dir = Path(flags.build).resolve() / "bin"
    return [str(bin_dir / "fedrun"), "-np", "2", "--threads", "1", str(bin_dir / "fedavg_bench"), "--workload", workload,
            "--systems", "fedrun,tight" if kind_of(workload) == "lr" else "fedrun,independent", "--turns", "1", "--rounds",
            str(rounds), "--data-dir", flags.data_dir, "--write-partition", str(folder / f"{workload}.json"), "--json",
            str(folder / "result.json")]


def rival_command(flags, rival, workload, rounds, folder):
    """fedavg_bench warms up for as many rounds as it measures, and so do the rivals: these are the same rounds."""
    script, _, variant = rival.partition(" ")
    launch = [sys.executable]
    if script != "flower" and variant != "threads":
        launch += ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
    return [*launch, f"fedavg_{script}.py", "--workload", workload, "--data-dir", flags.data_dir, "--partition",
            str(folder / f"{workload}.json"), "--rounds", str(rounds), "--warmup", str(rounds), "--threads",
            "2" if variant == "threads" else "1"]


def run(name, command):
    """What was printed; ends the program where a system fails."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode != 0:
        sys.exit(f"fedavg.py: {name} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def one_repeat(flags, workload, rivals, folder):
    """system: milliseconds of a round."""
    rounds = flags.rounds or (1 if workload == "cnn" else 20)
    run("fedrun", fedrun_command(flags, workload, rounds, folder))
    lines = [json.loads(line) for line in (folder / "result.json").read_text().splitlines()]
    times = {line["system"]: line["round_ms"] for line in lines}
    for rival in rivals:
        printed = run(rival, rival_command(flags, rival, workload, rounds, folder))
        result = next(json.loads(line) for line in printed.splitlines() if line.startswith('{"system"'))
        times[rival] = statistics.median(result["round_ms"])
    return times


def show(workload, repeats):
    bars = BARS[kind_of(workload)]
    for system in repeats[0]:
        ratio = statistics.median(times[system] / times["fedrun"] for times in repeats)
        bar = bars.get(system)
        verdict = "" if bar is None else f"{'at least' if ratio >= bar else 'MISSED:'} {bar:.2f}"
        print(f"  {workload:<8} {system:<14} {statistics.median(times[system] for times in repeats):>10.2f} {ratio:>10.2f}"
              f"   {verdict}", flush=True)


def read_flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: text.split(",")
    parser.add_argument("--build", default="build", help="where fedrun was built")
    parser.add_argument("--data-dir", required=True, help="directory with MNIST's files")
    parser.add_argument("--workloads", type=names, default=["lr-10", "lr-100", "cnn"])
    parser.add_argument("--rivals", type=names, help="list of flower, pfl, plain; default: those that are installed")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, help="timed in each repeat; default 20, for cnn 1")
    parser.add_argument("--json", help="also write every repeat to this file, one JSON object per line")
    flags = parser.parse_args()
    flags.data_dir = str(Path(flags.data_dir).resolve())
    if not (Path(flags.build) / "bin" / "fedavg_bench").exists():
        sys.exit(f"fedavg.py: there is no {flags.build}/bin/fedavg_bench: call `make build`, or say where with --build")
    return flags


def installed_rivals(flags):
    rivals = []
    for rival in flags.rivals or NEEDED:
        module, package = NEEDED[rival]
        if importlib.util.find_spec(module) is None:
            print(f"# {rival} is not installed: pip install '{package}'")
        else:
            rivals.append(rival)
    return rivals


def main():
    flags = read_flags()
    json_file = open(flags.json, "w") if flags.json else None
    rivals = installed_rivals(flags)
    print(f"# two cores; medians of {flags.repeats} interleaved repeats\n"
          f"# {'workload':<8} {'system':<14} {'ms a round':>10} {'× fedrun':>10}   bar")
    with tempfile.TemporaryDirectory() as folder:
        for workload in flags.workloads:
            # Two threads help only where a batch is much work.
            more = [f"{rival} threads" for rival in rivals if rival != "flower" and kind_of(workload) == "cnn"]
            repeats = []
            for _ in range(flags.repeats):
                repeats.append(one_repeat(flags, workload, rivals + more, Path(folder)))
                if json_file:
                    print(json.dumps({"workload": workload, "round_ms": repeats[-1]}), file=json_file, flush=True)
            show(workload, repeats)


main()
