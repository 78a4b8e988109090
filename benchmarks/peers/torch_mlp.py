"""FedOGD and OFedIQ on a 4,609-parameter MLP in eager PyTorch (Kwon, Park and Hong 2023).

Five inputs, two hidden layers of 64 relu units, one output, squared loss; each of the K clients
receives one sample per step. Inputs may be NumPy arrays or tensors on any device.

    python -m benchmarks.peers.torch_mlp [--check] [--device cuda]
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch.func import grad, vmap

from benchmarks.peers import torch_parts as parts

SHAPES = [(64, 5), (64,), (64, 64), (64,), (1, 64), (1,)]
DIMENSION = 4609


def predict(params, features):
    """The network's output, one number per sample."""
    w1, b1, w2, b2, w3, b3 = params
    hidden = F.relu(F.linear(features, w1, b1))
    hidden = F.relu(F.linear(hidden, w2, b2))
    return F.linear(hidden, w3, b3).squeeze(-1)


def fedogd(features, target, indices, step, device="cpu", params=None):
    """FedOGD: all clients' gradients at every step, i.e. the gradient of the mean loss.

    Returns losses[T], the mean over clients of the loss of the model they predicted with.
    """
    features, target, indices = on_device(features, target, indices, device)
    params = [p.requires_grad_() for p in parts.initial_params(SHAPES, device, params)]
    losses = torch.empty(len(indices), device=device)
    for t, batch in enumerate(indices.unbind()):
        guess = predict(params, features.index_select(0, batch))
        loss = F.mse_loss(guess, target.index_select(0, batch))
        gradient = torch.autograd.grad(loss, params)
        with torch.no_grad():
            torch._foreach_add_(params, gradient, alpha=-step)
            losses[t] = loss
    return losses.cpu().numpy()


def client_loss(flat, x, y):
    """One client's squared loss as a function of the parameter vector."""
    return (predict(parts.unflatten(flat, SHAPES), x) - y).square()


# Gradients[client, D] from (flat, features, target), by the general method.
vmapped = vmap(grad(client_loss), (None, 0, 0))


def outer(flat, features, target):
    """Gradients[client, D] as outer products of layer inputs and output gradients, by autograd.

    The known shortcut for dense layers: one batched backward pass, and no vmap to dispatch.
    """
    w1, b1, w2, b2, w3, b3 = parts.unflatten(flat, SHAPES)
    with torch.enable_grad():
        z1 = F.linear(features, w1, b1).requires_grad_()
        a1 = F.relu(z1)
        z2 = F.linear(a1, w2, b2)
        a2 = F.relu(z2)
        z3 = F.linear(a2, w3, b3)
        loss = (z3.squeeze(-1) - target).square().sum()
        d1, d2, d3 = torch.autograd.grad(loss, (z1, z2, z3))
    g1 = (d1[:, :, None] * features[:, None]).flatten(1)
    g2 = (d2[:, :, None] * a1.detach()[:, None]).flatten(1)
    return torch.cat([g1, d1, g2, d2, d3 * a2.detach(), d3], dim=1)


@torch.no_grad()
def ofediq(
    features, target, indices, step, rate, levels, blocks, seed,
    device="cpu", params=None, gradients=vmapped,
):  # fmt: skip
    """OFedIQ with L = 1: w <- w - step / (K rate) * sum of the participants' Q(gradient), eq. (9).

    Returns losses[T]. `gradients` is `vmapped` or `outer`, which give the same numbers.
    """
    features, target, indices = on_device(features, target, indices, device)
    flat = parts.flatten(parts.initial_params(SHAPES, device, params))
    shared = parts.unflatten(flat, SHAPES)
    uniform = parts.uniform_source(seed, device)
    clients = indices.shape[1]
    losses = torch.empty(len(indices), device=device)
    cohorts = parts.draw_cohorts(indices, rate, seed)
    for t, (batch, cohort) in enumerate(zip(indices.unbind(), cohorts, strict=True)):
        guess = predict(shared, features.index_select(0, batch))
        losses[t] = F.mse_loss(guess, target.index_select(0, batch))
        if len(cohort):
            x, y = features.index_select(0, cohort), target.index_select(0, cohort)
            received = parts.quantised_sum(gradients(flat, x, y), levels, blocks, uniform)
            flat.sub_(received, alpha=step / (clients * rate))
    return losses.cpu().numpy()


def on_device(features, target, indices, device):
    """The arrays on the device, copied only if they are elsewhere."""
    return (
        torch.as_tensor(features, dtype=torch.float32, device=device),
        torch.as_tensor(target, dtype=torch.float32, device=device),
        torch.as_tensor(indices, device=device),
    )


def toy(steps, clients=1000, samples=9000, device="cpu"):
    """A smooth target in [0, 1], assigned to clients at random."""
    generator = torch.Generator().manual_seed(0)
    features = torch.rand(samples, 5, generator=generator)
    target = features.sum(1).cos().square()
    indices = torch.randint(samples, (steps, clients), generator=generator)
    return tuple(x.to(device) for x in (features, target, indices))


def check():
    """Checks the parameter count, equal gradients, the quantiser, and losses that fall and agree."""
    flat = parts.flatten(parts.initial_params(SHAPES, "cpu"))
    assert flat.numel() == DIMENSION
    features, target, indices = toy(1000, clients=100)
    torch.testing.assert_close(*(f(flat, features[:50], target[:50]) for f in (vmapped, outer)))
    parts.check_quantiser(DIMENSION, 102)
    ogd = fedogd(features, target, indices, 0.01)
    planned = ofediq(features, target, indices, 0.01, 0.5, 17, 150, 0)
    fine = ofediq(features, target, indices, 0.01, 1.0, 2**20, 150, 0, gradients=outer)
    ends = {"fedogd": ogd[-50:].mean(), "ofediq": planned[-50:].mean()}
    assert max(ends.values()) < min(ogd[0], float(target.var())) / 2, "no better than a constant"
    assert abs(fine - ogd).max() < 1e-4, "everybody taking part with fine levels is FedOGD"
    print(f"ok: loss from {ogd[0]:.4f} to", {name: round(float(x), 4) for name, x in ends.items()})


def cases(steps, device):
    """FedOGD and OFedIQ's 99 % plan: s = 3, p = 0.086, and b = 102 for this D."""
    data = toy(steps, device=device)
    plan = (0.086, 3, 102, 0, device)
    return {
        "torch mlp fedogd": lambda: fedogd(*data, 0.01, device),
        "torch mlp ofediq, vmapped": lambda: ofediq(*data, 0.01, *plan),
        "torch mlp ofediq, outer": lambda: ofediq(*data, 0.01, *plan, gradients=outer),
    }


if __name__ == "__main__":
    parts.main(__doc__, check, cases, steps=200)
