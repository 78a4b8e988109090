"""Server AdaGrad with top-k uploads and error feedback: an algorithm outside the package."""

from typing import Any, NamedTuple

from mainstem import extend as mx


class Client(NamedTuple):
    received: mx.Params  # w, the last broadcast
    unsent: mx.Params  # gradients, and the entries that top-k did not send


class Server(NamedTuple):
    params: mx.Params
    squares: Any  # the state of optax's rule


@mx.value
class TopKAdaGrad(mx.Algorithm):
    """Clients send the `count` largest entries of what they have not sent; the server's step size is adaptive."""

    step: mx.Step = mx.step_size()
    count: int = mx.integer(default=5, least=1)
    rule: mx.Optimizer = mx.leaf(default=mx.parts.optimizer("scale_by_rss"))
    sync: mx.Sync = mx.part(mx.Sync, "every(5)", default=mx.parts.every(1))

    participation = mx.parts.everyone()  # entries of a client that is not sampled would be lost
    collect = mx.parts.total()
    domain = mx.parts.everything()
    sends, corrects_bias = mx.GRADIENTS, True  # needed by `advise` and step="auto"
    traits = mx.Traits(decides_with_broadcast=True, carries=("unsent",))

    @property
    def codec(self):
        return mx.parts.top_k(self.count)

    def start(self, params, setting):
        client = Client(params, mx.jnp.zeros_like(params))
        return Server(params, self.rule.init(params)), lambda k: client

    def model(self, client):
        return client.received

    def learn(self, client, gradient, seen, at):
        return client._replace(unsent=client.unsent + gradient(client.received, seen))

    def upload(self, client, at):
        sent = self.codec.decode(self.codec.encode(client.unsent, at.key), client.unsent.size)
        return client._replace(unsent=client.unsent - sent), sent, 1.0

    def merge(self, server, got, gradient, t):
        mean = got.sum / self.participation.scale(got.clients)
        move, squares = self.rule.update(mean, server.squares, server.params)
        eta, _ = self.step.rate((), mean, t)
        server = got.unless_empty(Server(server.params - eta * move, squares), server)
        return server, server.params

    def download(self, client, params, gradient, merged, t):
        return client._replace(received=params)
