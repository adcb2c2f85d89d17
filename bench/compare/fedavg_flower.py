"""A rival of fedavg.py: Flower's simulation, with two Ray workers. Any node trains whatever client it is told to."""
import torch
from fedavg_task import RoundTimes, load, read_flags
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation


class TimedFedAvg(FedAvg):
    """Sends each node the number of a client, and times from before the messages until after the average."""

    def __init__(self, task, where, times):
        super().__init__(fraction_evaluate=0.0)
        self.task, self.where, self.times = task, where, times

    def configure_train(self, server_round, arrays, config, grid):
        self.times.begin()
        for node, client in zip(grid.get_node_ids(), self.task.clients_of_round(server_round - 1)):
            order = ConfigRecord({"client": int(client), "where": list(self.where)})
            yield Message(content=RecordDict({"arrays": arrays, "config": order}), message_type="train", dst_node_id=node)

    def aggregate_train(self, server_round, replies):
        result = super().aggregate_train(server_round, replies)
        self.times.end()
        return result


client_app = ClientApp()


@client_app.train()
def train(message, context):
    torch.set_num_threads(1)
    order = message.content["config"]
    task = load(*order["where"])
    model = task.make_model()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    task.train(model, order["client"])
    samples = len(task.samples_of[order["client"]])
    return Message(
        content=RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": samples})}),
        reply_to=message)


def main():
    flags, where = read_flags()
    task = load(*where)
    times = RoundTimes(flags)
    server_app = ServerApp()

    @server_app.main()
    def serve(grid, context):
        torch.manual_seed(0)
        arrays = ArrayRecord(task.make_model().state_dict())
        TimedFedAvg(task, where, times).start(grid=grid, initial_arrays=arrays, num_rounds=flags.warmup + flags.rounds)

    run_simulation(server_app, client_app, num_supernodes=task.clients_per_round, backend_config={
        "init_args": {"num_cpus": 2}, "client_resources": {"num_cpus": 1, "num_gpus": 0.0}})
    times.print("flower")


if __name__ == "__main__":
    main()
