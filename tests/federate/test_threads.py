"""One thread asks for predictions while another learns: no broadcast and no count is lost."""

import threading

import numpy as np
import pytest

from mainstem.base import Sample
from mainstem.engines.federate.client.kernels import Kernels
from mainstem.engines.federate.client.state import ClientState, learn_together
from mainstem.engines.federate.protocol.messages import Broadcast
from mainstem.engines.federate.protocol.run_document import parse
from tests.federate.in_process import run_content

LINEAR = {"name": "linear", "features": 3}
SAMPLE = Sample(np.ones(3, np.float32), np.float32(1.0))


@pytest.fixture
def state():
    kernels = Kernels(parse(run_content({"name": "fedogd", "step": 0.1}, LINEAR, clients=1)))
    return ClientState(kernels, 0)


def broadcast(state, version):
    model = np.full(state.document.message, version, np.float32).tobytes()
    return Broadcast(state.document.digest, version, version, *np.zeros((2, 1), np.int64), model)


class Paused:
    """Wraps a function: the first call waits in the middle until `go`."""

    def __init__(self, function):
        self.function = function
        self.entered, self.go = threading.Event(), threading.Event()
        self.first = True

    def __call__(self, *arguments, **options):
        result = self.function(*arguments, **options)
        if self.first:
            self.first = False
            self.entered.set()
            self.go.wait(10)
        return result


def interleaved(paused, first, second):
    """`first` in a thread until it is paused, `second` in another as far as it comes, then both to their ends."""
    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert paused.entered.wait(10)
    threads[1].start()
    threads[1].join(0.3)
    paused.go.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_a_broadcast_that_comes_while_one_is_applied_is_applied_too(state):
    state.receive(broadcast(state, 1))
    paused = state.kernels.receive = Paused(state.kernels.receive)
    interleaved(paused, lambda: state.client, lambda: state.receive(broadcast(state, 2)))
    model = state.document.algorithm.model(state.client)
    assert state.progress.version == 2
    np.testing.assert_array_equal(model, np.full(state.document.message, 2.0))


def test_a_prediction_while_learning_loses_no_broadcast(state):
    """The prediction applies the broadcast and would put the client of before learning back."""
    state.receive(broadcast(state, 1))
    paused = state.kernels.receive = Paused(state.kernels.receive)
    interleaved(
        paused, lambda: state.decide(SAMPLE.shown), lambda: learn_together([state], [SAMPLE], False)
    )
    assert state.step == 1
    model = np.asarray(state.document.algorithm.model(state.client))
    upload = state.make_upload()
    assert upload.body is not None  # the gradient of the sample is in the client
    assert model.shape == (state.document.message,)


def test_a_loss_that_comes_while_losses_are_summed_is_counted(state):
    class Result:
        """A row on the device that is fetched slowly."""

        paused = Paused(lambda: np.array([[2.0, 4.0]]))

        def __array__(self, dtype=None, copy=None):
            return self.paused()

    learn_together([state], [SAMPLE], False)
    alone = state.totals().loss
    state._uncounted.append((Result(), 0))
    interleaved(Result.paused, state.totals, lambda: learn_together([state], [SAMPLE], False))
    assert state.step == 2
    assert state.totals().loss == pytest.approx(2 * alone + 2.0)
