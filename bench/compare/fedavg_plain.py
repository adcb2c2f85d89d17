"""A rival of fedavg.py: FedAvg as a plain PyTorch loop. Under torchrun the processes share the clients of a round."""
import os

import torch
import torch.distributed as dist
from fedavg_task import RoundTimes, load, read_flags


def deal_out(sizes, processes):
    """The largest client first, to the process that has least to do."""
    loads = [0] * processes
    dealt = [[] for _ in range(processes)]
    for position in sorted(range(len(sizes)), key=lambda position: -sizes[position]):
        least = loads.index(min(loads))
        dealt[least].append(position)
        loads[least] += sizes[position]
    return dealt


def main():
    flags, where = read_flags()
    rank, processes = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if processes > 1:
        dist.init_process_group("gloo")
    task = load(*where)
    torch.manual_seed(0)
    model = task.make_model()
    vector = lambda: torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    weights = vector()
    times = RoundTimes(flags)
    for number in range(flags.warmup + flags.rounds):
        times.begin()
        chosen = task.clients_of_round(number)
        sizes = [len(task.samples_of[client]) for client in chosen]
        total = torch.zeros_like(weights)
        for position in deal_out(sizes, processes)[rank]:
            torch.nn.utils.vector_to_parameters(weights.clone(), model.parameters())
            task.train(model, chosen[position])
            total.add_(vector(), alpha=sizes[position] / sum(sizes))
        if processes > 1:
            dist.all_reduce(total)
        weights = total
        times.end()
    if rank == 0:
        times.print("plain")
    if processes > 1:
        dist.barrier()
        dist.destroy_process_group()


main()
