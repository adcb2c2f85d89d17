#!/usr/bin/env python3
"""Trains the same models under fedrun, PyTorch DDP and, where it is installed, Horovod, in turns, and prints one table.

    python3 bench/compare/training.py --build build --models convnet,mlp,resnet18 --ranks 2 --repeats 5

Run it with a Python that has torch, on an otherwise idle machine. Every system gets one thread per rank. Systems take
turns within each repeat, so that a machine that drifts drifts for all of them; medians over the repeats are shown, with
the ratio to DDP.
"""
import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Contender:
    """A way to train a model; run() gives samples per second, seconds to the first step and peak memory."""

    def __init__(self, name, compression, command):
        self.name = name
        self.compression = compression
        self.command = command  # model → list of arguments

    def run(self, model):
        with tempfile.TemporaryDirectory() as folder:
            json_path = Path(folder) / "result.json"
            command = [part.replace("{json}", str(json_path)) for part in self.command(model)]
            begin = time.monotonic()
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=HERE)
            first_step_seconds = None
            lines = []
            for line in process.stdout:
                if line.strip().endswith("first step") and first_step_seconds is None:
                    first_step_seconds = time.monotonic() - begin
                lines.append(line)
            problem = process.stderr.read()
            if process.wait() != 0:
                sys.exit(f"training.py: {self.name} failed on {model}:\n{''.join(lines)}{problem}")
            text = json_path.read_text() if json_path.exists() else "".join(lines)
        results = [json.loads(line[line.index("{"):]) for line in text.splitlines() if '{"' in line]
        result = next(result for result in results if result["system"] == self.name.split()[0])
        return {**result, "first_step_seconds": first_step_seconds}


def fedrun(flags, name, compression, *extra):
    build = Path(flags.build).resolve() / "bin"
    return Contender(name, compression, lambda model: [
        str(build / "fedrun"), "-np", str(flags.ranks), "--threads", "1", str(build / "training_bench"), "--model", model,
        "--steps", str(flags.steps), "--warmup", str(flags.warmup), "--rounds", "1", "--compression", compression,
        "--announce-first-step", "--json", "{json}", *extra])


def torchrun(flags, compression):
    return Contender("ddp", compression, lambda model: [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(flags.ranks), "torch_worker.py",
        *worker_flags(flags, "ddp", model, compression)])


def horovod(flags, compression):
    return Contender("horovod", compression, lambda model: [
        "mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(flags.ranks), sys.executable, "torch_worker.py",
        *worker_flags(flags, "horovod", model, compression)])


def worker_flags(flags, system, model, compression):
    return ["--system", system, "--model", model, "--compression", compression, "--steps", str(flags.steps), "--warmup",
            str(flags.warmup)]


def contenders(flags):
    result = []
    for compression in flags.compressions:
        result.append(fedrun(flags, "fedrun", compression, "--systems", "fedrun"))
        result.append(fedrun(flags, "fedrun sharded", compression, "--systems", "fedrun", "--sharded"))
        if compression in ("none", "fp16"):
            result.append(torchrun(flags, compression))
            if importlib.util.find_spec("horovod") is not None and shutil.which("mpirun"):
                result.append(horovod(flags, compression))
    result.append(fedrun(flags, "independent", "none", "--systems", "independent"))
    return result


def read_flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: text.split(",")
    parser.add_argument("--build", default="build", help="where fedrun was built")
    parser.add_argument("--models", type=names, default=["convnet", "mlp", "resnet18"])
    parser.add_argument("--compressions", type=names, default=["none"], help="list of none, fp16 and bf16")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=15, help="timed steps in each repeat")
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--json", help="also write every run to this file, one JSON object per line")
    flags = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        sys.exit("training.py: this Python has no torch: run it with one that has, such as that of a virtual environment "
                 "in which `pip install torch` was called")
    if not (Path(flags.build) / "bin" / "training_bench").exists():
        sys.exit(f"training.py: there is no {flags.build}/bin/training_bench: call `make build`, or say where with --build")
    return flags


def main():
    flags = read_flags()
    json_file = open(flags.json, "w") if flags.json else None
    print(f"# {flags.ranks} ranks, one thread each; medians of {flags.repeats} interleaved repeats of {flags.steps} steps")
    print(f"# {'model':<10} {'system':<16} {'compression':<12} {'samples/s':>10} {'× DDP':>7} {'first step':>11} {'memory':>9}")
    for model in flags.models:
        runs = [(contender, []) for contender in contenders(flags)]
        for _ in range(flags.repeats):
            for contender, results in runs:
                results.append(contender.run(model))
                if json_file:
                    print(json.dumps({**results[-1], "system": contender.name}), file=json_file, flush=True)
        median = lambda results, key: statistics.median(result[key] for result in results)
        reference = next(results for contender, results in runs if contender.name == "ddp")
        for contender, results in runs:
            speed = median(results, "samples_per_second")
            print(f"  {model:<10} {contender.name:<16} {contender.compression:<12} {speed:>10.1f} "
                  f"{speed / median(reference, 'samples_per_second'):>7.2f} "
                  f"{median(results, 'first_step_seconds'):>9.2f} s {median(results, 'peak_memory_mb'):>6.0f} MB",
                  flush=True)


main()
