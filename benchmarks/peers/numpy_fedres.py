"""FedRes.SGD's experiment (Agarwal, Langford and Wei 2020, Section 6) as a plain NumPy loop.

A client predicts xg . w + xl . v with the server's w and its own v, and incurs the squared loss. At
zero delay, (7) and (8) update both parts by the gradient at the pair that predicted, the server's by
the sum over clients; per-coordinate AdaGrad replaces the paper's `--adaptive`. Clients cycle through
a table of n samples: step t uses row (t - 1) % n.

Inputs are xg [R, P, n, dg], xl [R, P, n, dl] and labels y = +-1 [R, P, n] of R rollouts.
"""

import numpy as np

FLOOR = 1e-8


def rollouts(xg, xl, y, steps, eta):
    """The straightforward form: rollout after rollout, step after step, vectorised over clients.

    Returns `loss[R, T]` and `accuracy[R, T]`, the means over clients, and the last models, `server[R, dg]` and
    `clients[R, P, dl]`.
    """
    count, clients, samples, _ = xg.shape
    loss, accuracy = np.empty((count, steps)), np.empty((count, steps))
    server = np.zeros((count, xg.shape[3]), xg.dtype)
    local = np.zeros((count, clients, xl.shape[3]), xl.dtype)
    for rollout in range(count):
        w, v = server[rollout], local[rollout]
        w_squares, v_squares = np.zeros_like(w), np.zeros_like(v)
        for t in range(1, steps + 1):
            row = (t - 1) % samples
            seen_g, seen_l = xg[rollout, :, row], xl[rollout, :, row]
            label = y[rollout, :, row]
            guess = seen_g @ w + np.sum(seen_l * v, axis=1)
            error = guess - label
            loss[rollout, t - 1] = np.mean(error**2)
            accuracy[rollout, t - 1] = np.mean(np.sign(guess) == label)
            w_gradient = 2 * error @ seen_g
            v_gradient = 2 * error[:, None] * seen_l
            w_squares += w_gradient**2
            v_squares += v_gradient**2
            w -= eta / np.sqrt(w_squares + FLOOR) * w_gradient
            v -= eta / np.sqrt(v_squares + FLOOR) * v_gradient
    return {"loss": loss, "accuracy": accuracy, "server": server, "clients": local}


def tuned(xg, xl, y, steps, eta):
    """The same numbers, all rollouts at once, in the precision of the inputs.

    AdaGrad's step does not change with the scale of the features, so the tables hold eta x and the
    loop u = w / eta: then x . w = (eta x) . u, and a step is u <- u - g / sqrt(squares) with
    g = error * eta x. The floor, scaled likewise, is in `squares` from the start. The long arrays are
    the clients'; their layout is [feature, rollout, client], so that every call is one long loop.
    """
    samples, dtype = xg.shape[2], xg.dtype
    global_rows = scaled(xg.transpose(2, 0, 3, 1), eta)  # [n, R, dg, P]
    local_rows = scaled(xl.transpose(2, 3, 0, 1), eta)  # [n, dl, R, P]
    labels = np.ascontiguousarray(y.transpose(2, 0, 1), dtype)  # [n, R, P]
    server = np.zeros((len(xg), 1, xg.shape[3]), dtype)
    local = np.zeros(local_rows.shape[1:], dtype)
    squares = [np.full_like(model, FLOOR * (eta / 2) ** 2) for model in (server, local)]
    guesses, errors = np.empty_like(labels), np.empty_like(labels)
    loss, accuracy = np.empty((steps, len(xg))), np.empty((steps, len(xg)))
    for start in range(0, steps, samples):
        stop = min(start + samples, steps)
        seen = slice(stop - start)
        rows = global_rows[seen], local_rows[seen], labels[seen], guesses[seen], errors[seen]
        advance((server, local), squares, *rows)
        score(*rows[2:], loss[start:stop], accuracy[start:stop])
    return {
        "loss": loss.T,
        "accuracy": accuracy.T,
        "server": eta * server[:, 0],
        "clients": eta * np.moveaxis(local, 0, -1),
    }


def scaled(table, factor):
    """A transposed table, copied to C order and multiplied."""
    return np.multiply(table, factor, dtype=table.dtype, order="C")


def advance(models, squares, global_rows, local_rows, labels, guesses, errors):
    """One pass over the rows: fills guesses and errors [n, R, P], and updates the models in place."""
    (server, local), (server_squares, local_squares) = models, squares
    shared = np.empty_like(labels[0])
    shared_row = shared[:, None]
    server_gradient, server_scratch = np.empty_like(server), np.empty_like(server)
    server_column = server_gradient.transpose(0, 2, 1)
    gradient, scratch = np.empty_like(local), np.empty_like(local)
    for seen_g, seen_l, label, guess, error, error_column in zip(
        global_rows, local_rows, labels, guesses, errors, errors[..., None], strict=True
    ):
        np.matmul(server, seen_g, shared_row)
        np.einsum("frp,frp->rp", seen_l, local, out=guess)
        np.add(guess, shared, guess)
        np.subtract(guess, label, error)
        np.matmul(seen_g, error_column, server_column)
        np.multiply(seen_l, error, gradient)
        descend(server, server_squares, server_gradient, server_scratch)
        descend(local, local_squares, gradient, scratch)


def descend(model, squares, gradient, scratch):
    """One AdaGrad step in place."""
    np.multiply(gradient, gradient, scratch)
    np.add(squares, scratch, squares)
    np.sqrt(squares, scratch)
    np.divide(gradient, scratch, scratch)
    np.subtract(model, scratch, model)


def score(labels, guesses, errors, loss, accuracy):
    """Mean loss and sign agreement [n, R] of one pass."""
    np.einsum("trp,trp->tr", errors, errors, out=loss)
    loss /= labels.shape[2]
    np.mean(guesses * labels > 0, axis=2, out=accuracy)
