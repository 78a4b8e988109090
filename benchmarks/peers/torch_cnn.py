"""FedOGD and OFedIQ on the paper's 34,826-parameter CNN in eager PyTorch (Kwon et al. 2023).

28x28 input, 3x3x32, relu, pool 2, 3x3x64, relu, pool 2, dense 10, softmax cross-entropy; each of
the K clients receives one image per step. Inputs may be NumPy arrays or tensors on any device.

    python -m benchmarks.peers.torch_cnn [--check] [--device cuda]
"""

from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812
from torch.func import grad, vmap

from benchmarks.peers import torch_parts as parts

SHAPES = [(32, 1, 3, 3), (32,), (64, 32, 3, 3), (64,), (10, 1600), (10,)]
DIMENSION = 34_826


def channels_last(kernel):
    """The same numbers in another memory layout."""
    return kernel.to(memory_format=torch.channels_last)


def as_it_is(kernel):
    """PyTorch's default layout of a kernel."""
    return kernel


def logits(params, images, layout=channels_last):
    """Class scores. The pool comes before the relu: they commute, and the relu has a quarter of the work.

    Channels-last kernels make the convolutions run channels-last, twice as fast on the CPU.
    """
    w1, b1, w2, b2, w3, b3 = params
    hidden = F.relu(F.max_pool2d(F.conv2d(images, layout(w1), b1), 2))
    hidden = F.relu(F.max_pool2d(F.conv2d(hidden, layout(w2), b2), 2))
    return F.linear(hidden.flatten(1), w3, b3)


def fedogd(images, labels, indices, step, device="cpu", params=None, layout=channels_last):
    """FedOGD: all clients' gradients at every step, i.e. the gradient of the mean loss.

    Returns losses[T] and accuracies[T], means over clients of the model they predicted with.
    """
    images, labels, indices = on_device(images, labels, indices, device)
    params = [p.requires_grad_() for p in parts.initial_params(SHAPES, device, params)]
    observed = torch.empty(2, len(indices), device=device)
    for t, batch in enumerate(indices.unbind()):
        y = labels.index_select(0, batch)
        scores = logits(params, images.index_select(0, batch), layout)
        loss = F.cross_entropy(scores, y)
        gradient = torch.autograd.grad(loss, params)
        with torch.no_grad():
            torch._foreach_add_(params, gradient, alpha=-step)
            observed[0, t] = loss
            observed[1, t] = (scores.argmax(1) == y).float().mean()
    return tuple(observed.cpu().numpy())


def client_loss(flat, x, y, layout=channels_last):
    """One client's cross-entropy as a function of the parameter vector."""
    return F.cross_entropy(logits(parts.unflatten(flat, SHAPES), x[None], layout), y[None])


# Gradients[client, D] from (flat, images, labels), by the general method.
vmapped = vmap(grad(client_loss), (None, 0, 0))
vmapped_as_it_is = vmap(grad(partial(client_loss, layout=as_it_is)), (None, 0, 0))


def unfolded(flat, images, labels):
    """The same as products of each layer's unfolded input and its output gradient, by autograd.

    The known shortcut (Opacus and others): one batched backward pass, no grouped convolutions.
    """
    w1, b1, w2, b2, w3, b3 = parts.unflatten(flat, SHAPES)
    with torch.enable_grad():
        z1 = F.conv2d(images, channels_last(w1), b1).requires_grad_()
        a1 = F.relu(F.max_pool2d(z1, 2))
        z2 = F.conv2d(a1, channels_last(w2), b2)
        a2 = F.relu(F.max_pool2d(z2, 2)).flatten(1)
        z3 = F.linear(a2, w3, b3)
        loss = F.cross_entropy(z3, labels, reduction="sum")
        d1, d2, d3 = torch.autograd.grad(loss, (z1, z2, z3))
    d1, d2 = d1.flatten(2), d2.flatten(2)
    g1 = torch.bmm(d1, F.unfold(images, 3).transpose(1, 2)).flatten(1)
    g2 = torch.bmm(d2, F.unfold(a1.detach(), 3).transpose(1, 2)).flatten(1)
    g3 = (d3[:, :, None] * a2.detach()[:, None]).flatten(1)
    return torch.cat([g1, d1.sum(2), g2, d2.sum(2), g3, d3], dim=1)


@torch.no_grad()
def ofediq(
    images, labels, indices, step, rate, levels, blocks, seed,
    device="cpu", params=None, gradients=vmapped, layout=channels_last,
):  # fmt: skip
    """OFedIQ with L = 1: w <- w - step / (K rate) * sum of the participants' Q(gradient), eq. (9).

    Returns losses[T] and accuracies[T]. `gradients` is `vmapped` or `unfolded` (same numbers).
    """
    images, labels, indices = on_device(images, labels, indices, device)
    flat = parts.flatten(parts.initial_params(SHAPES, device, params))
    shared = parts.unflatten(flat, SHAPES)
    uniform = parts.uniform_source(seed, device)
    clients = indices.shape[1]
    observed = torch.empty(2, len(indices), device=device)
    cohorts = parts.draw_cohorts(indices, rate, seed)
    for t, (batch, cohort) in enumerate(zip(indices.unbind(), cohorts, strict=True)):
        y = labels.index_select(0, batch)
        scores = logits(shared, images.index_select(0, batch), layout)
        observed[0, t] = F.cross_entropy(scores, y)
        observed[1, t] = (scores.argmax(1) == y).float().mean()
        if len(cohort):
            x, y = images.index_select(0, cohort), labels.index_select(0, cohort)
            received = parts.quantised_sum(gradients(flat, x, y), levels, blocks, uniform)
            flat.sub_(received, alpha=step / (clients * rate))
    return tuple(observed.cpu().numpy())


def on_device(images, labels, indices, device):
    """The arrays on the device, images as [N, 1, 28, 28], copied only if they are elsewhere."""
    return (
        torch.as_tensor(images, dtype=torch.float32, device=device).reshape(-1, 1, 28, 28),
        torch.as_tensor(labels, dtype=torch.int64, device=device),
        torch.as_tensor(indices, device=device),
    )


def toy(steps, clients=1000, samples=5000, device="cpu"):
    """Noisy copies of ten sparse random images, assigned to clients at random."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(10, (samples,), generator=generator)
    prototypes = (torch.rand(10, 28, 28, generator=generator) < 0.2).float()
    noise = torch.rand(samples, 28, 28, generator=generator)
    indices = torch.randint(samples, (steps, clients), generator=generator)
    images = 0.8 * prototypes[labels] + 0.2 * noise
    return tuple(x.to(device) for x in (images, labels, indices))


def check():
    """Checks the parameter count, equal gradients, the quantiser, and losses that fall and agree."""
    flat = parts.flatten(parts.initial_params(SHAPES, "cpu"))
    assert flat.numel() == DIMENSION
    data = toy(80, clients=50)
    images, labels, _ = on_device(*data, "cpu")
    torch.testing.assert_close(*(f(flat, images[:20], labels[:20]) for f in (vmapped, unfolded)))
    parts.check_quantiser(DIMENSION, 777, copies=2000)
    ogd, accuracy = fedogd(*data, 0.05)
    planned, _ = ofediq(*data, 0.05, 0.5, 17, 1134, 0)
    fine, _ = ofediq(*data, 0.05, 1.0, 2**20, 777, 0, gradients=unfolded)
    ends = {"fedogd": ogd[-10:].mean(), "ofediq": planned[-10:].mean()}
    assert max(ends.values()) < ogd[0] / 2
    assert accuracy[-10:].mean() > 0.8
    assert abs(fine - ogd).max() < 1e-3, "everybody taking part with fine levels is FedOGD"
    print(f"ok: loss from {ogd[0]:.3f} to", {name: round(float(x), 3) for name, x in ends.items()})


def cases(steps, device):
    """FedOGD and OFedIQ's 99 % plan: p = 0.086, s = 3, b = 777."""
    data = toy(steps, device=device)
    plan = (0.086, 3, 777, 0, device)
    return {
        "torch cnn fedogd": lambda: fedogd(*data, 0.01, device),
        "torch cnn ofediq, vmapped": lambda: ofediq(*data, 0.01, *plan),
        "torch cnn ofediq, unfolded": lambda: ofediq(*data, 0.01, *plan, gradients=unfolded),
    }


if __name__ == "__main__":
    parts.main(__doc__, check, cases, steps=5)
