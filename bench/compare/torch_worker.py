"""One rank of training.py's rivals: PyTorch DDP over Gloo, or Horovod. Rank 0 prints one JSON object."""
import argparse
import json
import resource
import statistics
import time

import torch
from models import MODELS
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--system", choices=["ddp", "horovod"], required=True)
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--compression", choices=["none", "fp16"], default="none")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True)
    flags = parser.parse_args()

    torch.set_num_threads(1)
    make_model, shape, batch_size = MODELS[flags.model]
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    if flags.system == "ddp":
        rank, ranks, model = wrap_with_ddp(model, flags.compression)
    else:
        rank, ranks, optimizer = wrap_with_horovod(model, optimizer, flags.compression)

    images = torch.randn(batch_size, *shape)
    target = torch.randint(10, (batch_size,))
    seconds = []
    for step in range(flags.warmup + flags.steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), target).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
        if step == 0 and rank == 0:
            print("first step", flush=True)
    if rank == 0:
        step = statistics.mean(seconds[flags.warmup:])
        print(json.dumps({
            "system": flags.system, "model": flags.model, "ranks": ranks, "compression": flags.compression,
            "samples_per_second": ranks * batch_size / step, "step_ms": 1e3 * step,
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}), flush=True)
    if flags.system == "ddp":
        torch.distributed.barrier()  # a rank that leaves while others still wait for it takes them down
        torch.distributed.destroy_process_group()


def wrap_with_ddp(model, compression):
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    dist.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(model)
    if compression == "fp16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    return dist.get_rank(), dist.get_world_size(), model


def wrap_with_horovod(model, optimizer, compression):
    import horovod.torch as hvd

    hvd.init()
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(), compression=getattr(hvd.Compression, compression))
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return hvd.rank(), hvd.size(), optimizer


main()
