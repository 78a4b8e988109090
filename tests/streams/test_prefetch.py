"""Reading ahead in a thread."""

import threading
import time

import numpy as np

from mainstem.streams.prefetch import Prefetch


class Late(Prefetch):
    """Its thread begins late, when the next call already waits for it."""

    def _fill(self, begin, length):
        time.sleep(0.2)
        super()._fill(begin, length)


def test_a_call_does_not_wait_for_a_thread_that_has_nothing_to_read():
    """Seen in a gate that never ended: the thread left at the last step without waking who waited for it."""
    late = Late(lambda begin, end: (np.arange(begin, end),), steps=3)
    late(1, 3)
    found = []
    asks = threading.Thread(target=lambda: found.extend(late(0, 2)[0]), daemon=True)
    asks.start()
    asks.join(10)
    assert found == [0, 1]


def test_ranges_in_any_order_from_two_threads():
    count = 40
    late = Prefetch(lambda begin, end: (np.arange(begin, end),), steps=count)
    wrong = []

    def walk(seed):
        for begin, end in np.sort(np.random.default_rng(seed).integers(0, count, (500, 2))):
            if not np.array_equal(late(begin, end + 1)[0], np.arange(begin, end + 1)):
                wrong.append((begin, end))

    walkers = [threading.Thread(target=walk, args=(seed,), daemon=True) for seed in (1, 2)]
    for each in walkers:
        each.start()
    for each in walkers:
        each.join(60)
        assert not each.is_alive()
    assert not wrong
