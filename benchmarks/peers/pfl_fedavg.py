"""The same in pfl-research, in one process: users in turn, eager PyTorch. Needs `pip install pfl`.

Nothing is evaluated, so pfl does less than the other sides, which also record the loss of every image.
"""


def fedavg(images, labels, rounds, batch, step):
    """A function that runs so many rounds; `images` are [users, n, 32, 32, 3]."""
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
    from pfl.internal.ops.pytorch_ops import get_default_device
    from pfl.metrics import Weighted
    from pfl.model.pytorch import PyTorchModel

    class Network(torch.nn.Module):
        """The network of the benchmark, without dropout."""

        def __init__(self):
            super().__init__()
            relu, pool = torch.nn.ReLU(), torch.nn.MaxPool2d(2)
            convolutions = torch.nn.Conv2d(3, 32, 3), relu, torch.nn.Conv2d(32, 64, 3), relu, pool
            dense = torch.nn.Linear(12544, 128), relu, torch.nn.Linear(128, 10)
            self.layers = torch.nn.Sequential(*convolutions, torch.nn.Flatten(), *dense)

        def loss(self, x, y):
            return torch.nn.functional.cross_entropy(self.layers(x), y)

        def metrics(self, x, y):
            return {"loss": Weighted(self.loss(x, y).item() * len(y), len(y))}

    device, users = get_default_device(), range(len(images))
    x = torch.as_tensor(images, device=device).permute(0, 1, 4, 2, 3).contiguous()
    y = torch.as_tensor(labels, dtype=torch.int64, device=device)
    network = Network()
    model = PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), lr=1.0))

    def dataset():
        sampler = get_user_sampler("minimize_reuse", list(users))
        return FederatedDataset(lambda user: Dataset([x[user], y[user]]), sampler)

    backend = SimulatedBackend(training_data=dataset(), val_data=dataset())
    never = 10**9
    train = NNTrainHyperParams(local_num_epochs=1, local_learning_rate=step, local_batch_size=batch)
    evaluate = NNEvalHyperParams(local_batch_size=None)

    def run():
        algorithm = FederatedAveraging()
        algorithm._current_central_iteration = 1  # iteration 0 always evaluates
        parameters = NNAlgorithmParams(rounds + 1, never, len(users), None)
        algorithm.run(parameters, backend, model, train, evaluate, send_metrics_to_platform=False)
        if device.type == "cuda":
            torch.cuda.synchronize()

    return run
