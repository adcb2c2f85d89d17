"""A rival of fedavg.py: pfl-research, alone or with several processes under torchrun."""
import os

import torch
from fedavg_task import BATCH_SIZE, RoundTimes, load, read_flags
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel


class Classifier(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def loss(self, inputs, targets, eval=False):
        return torch.nn.functional.cross_entropy(self.network(inputs), targets)

    def metrics(self, inputs, targets, eval=True):
        return {}


class NextClient:
    """The clients of all rounds, one after the other."""

    def __init__(self, task, rounds):
        self.clients = iter([int(client) for number in range(rounds) for client in task.clients_of_round(number)])

    def __call__(self):
        return next(self.clients, 0)


class Clock(TrainingProcessCallback):
    def __init__(self, times):
        self.times = times

    def on_train_begin(self, *, model):
        self.times.begin()
        return Metrics()

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        self.times.end()
        self.times.begin()
        return False, Metrics()


def main():
    flags, where = read_flags()
    rounds = flags.warmup + flags.rounds
    task = load(*where)
    torch.manual_seed(0)
    network = Classifier(task.make_model())
    model = PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), lr=1.0))
    clients = FederatedDataset(
        lambda client: Dataset(task.shuffled(client), user_id=client), NextClient(task, rounds),
        {client: len(samples) for client, samples in enumerate(task.samples_of)})
    times = RoundTimes(flags)
    FederatedAveraging().run(
        NNAlgorithmParams(central_num_iterations=rounds, evaluation_frequency=1 << 30,
                          train_cohort_size=task.clients_per_round, val_cohort_size=None),
        SimulatedBackend(clients, clients, [WeightByDatapoints()]), model,
        NNTrainHyperParams(local_batch_size=BATCH_SIZE, local_num_epochs=1, local_learning_rate=task.learning_rate),
        callbacks=[Clock(times)])
    if int(os.environ.get("RANK", 0)) == 0:
        times.print("pfl")


main()
