"""SyncSteps, which computes many syncs at once, agrees with the sync rule step by step."""

import numpy as np
import pytest

from mainstem.engines.federate.protocol.sync_steps import BLOCK, SyncSteps
from mainstem.parts import after_steps, every

KINDS = [
    every(1),
    every(3),
    every(700, offset=5),
    every(5000),
    after_steps([2, 1023, 1024, 1025, 4000]),
]


@pytest.mark.parametrize("sync", KINDS)
def test_each_step_and_the_next_sync(sync):
    last = 4 * BLOCK
    truth = sync.after(np.arange(last + 1))
    truth[0] = False
    syncs, draw = SyncSteps(sync), np.random.default_rng(0)
    for step in draw.integers(1, last, 200).tolist():
        assert syncs.after(step) == truth[step]
        later = np.flatnonzero(truth[step + 1 :])
        assert syncs.next(step, last) == (step + 1 + later[0] if later.size else 0)
        near = later[later < 10]
        assert syncs.next(step, min(step + 10, last)) == (step + 1 + near[0] if near.size else 0)
