"""The workloads of fedavg_bench for PyTorch: the same samples for the same clients, the same models, rounds and batches."""
import argparse
import functools
import gzip
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

# name: (model, clients a round, learning rate)
WORKLOADS = {"lr-10": ("lr", 10, 0.03), "lr-100": ("lr", 100, 0.03), "cnn": ("cnn", 10, 0.1)}
BATCH_SIZE = 10


def lr():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10), nn.Sigmoid())


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(7 * 7 * 64, 512), nn.ReLU(), nn.Linear(512, 10))


def read_idx(directory, name):
    path = Path(directory) / name
    with open(path, "rb") if path.exists() else gzip.open(f"{path}.gz") as file:
        data = file.read()
    dimensions = data[3]
    shape = np.frombuffer(data, ">u4", dimensions, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


class Task:
    """Who trains on what in which round; all samples lie ready as floats."""

    def __init__(self, workload, data_dir, partition_path):
        model, self.clients_per_round, self.learning_rate = WORKLOADS[workload]
        self.workload = workload
        self.make_model = {"lr": lr, "cnn": cnn}[model]
        parts = ("train", "t10k") if model == "lr" else ("train",)  # the power law deals out both parts of MNIST
        images = np.concatenate([read_idx(data_dir, f"{part}-images-idx3-ubyte") for part in parts])
        labels = np.concatenate([read_idx(data_dir, f"{part}-labels-idx1-ubyte") for part in parts])
        inputs = torch.from_numpy(images).unsqueeze(1) / 255
        if model == "lr":
            inputs = (inputs - inputs.mean(0)) / (inputs.std(0, correction=0) + 0.001)
        else:
            inputs = (inputs - 0.1307) / 0.3081
        self.inputs = inputs
        self.targets = torch.from_numpy(labels.astype(np.int64))
        partition = json.loads(Path(partition_path).read_text())
        self.samples_of = [torch.tensor(partition[str(client)]) for client in range(len(partition))]

    def clients_of_round(self, number):
        return np.random.RandomState(number).choice(len(self.samples_of), self.clients_per_round, replace=False)

    def shuffled(self, client):
        """The client's inputs and targets in the order of an epoch."""
        samples = self.samples_of[client]
        order = samples[torch.randperm(len(samples))]
        return self.inputs[order], self.targets[order]

    def train(self, model, client):
        """One epoch of SGD, as anybody would write it."""
        optimizer = torch.optim.SGD(model.parameters(), lr=self.learning_rate)
        inputs, targets = self.shuffled(client)
        for first in range(0, len(targets), BATCH_SIZE):
            optimizer.zero_grad()
            output = model(inputs[first:first + BATCH_SIZE])
            nn.functional.cross_entropy(output, targets[first:first + BATCH_SIZE]).backward()
            optimizer.step()


@functools.cache
def load(workload, data_dir, partition_path):
    return Task(workload, data_dir, partition_path)


class RoundTimes:
    """Collects the milliseconds of rounds, of which the first ones only warm up."""

    def __init__(self, flags):
        self.flags = flags
        self.milliseconds = []

    def begin(self):
        self.start = time.perf_counter()

    def end(self):
        self.milliseconds.append(1e3 * (time.perf_counter() - self.start))

    def print(self, system):
        print(json.dumps({"system": system, "workload": self.flags.workload,
                          "round_ms": self.milliseconds[self.flags.warmup:]}), flush=True)


def read_flags():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", choices=WORKLOADS, required=True)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--partition", required=True, help="as fedavg_bench --write-partition writes it")
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    flags = parser.parse_args()
    torch.set_num_threads(flags.threads)
    return flags, (flags.workload, flags.data_dir, flags.partition)
