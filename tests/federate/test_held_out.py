"""Random runs on which the loops, both paths of the simulator and a hub in lockstep agree.

The loops were written from the papers and the design without sight of the package (`tests/held_out`). In lockstep
links have no delay, so that runs with delays are compared without a hub. A float32 run is compared with the hub in
float32, for the loops have float64 only.
"""

import numpy as np
import pytest

import mainstem as ms
from mainstem.testing import World
from mainstem.testing.algorithms import vector
from mainstem.testing.lockstep import check_lockstep
from tests.conftest import free_programs
from tests.held_out.drawn import drawn
from tests.held_out.loops import run as loop

COUNT, SLOW = 200, 20


def _seed(n):
    marks = [pytest.mark.slow] + [pytest.mark.long] * (n >= SLOW)
    return pytest.param(n, marks=marks)


@pytest.mark.parametrize("seed", [_seed(n) for n in range(COUNT)])
def test_all_agree(seed, nats_server):
    case = drawn(seed)
    wanted = loop(case.instance())
    arguments = case.algorithm, case.problem, case.stream
    given = {"steps": case.steps, "seed": seed, "network": case.network, "measure": ()}
    for plain in (False, True):
        run = ms.simulate(*arguments, dtype="float64", plain=plain, **given)
        np.testing.assert_allclose(run.loss, wanted["loss"], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(vector(run.model), wanted["server"][-1], rtol=1e-9, atol=1e-9)
        assert np.array_equal(run.column("uploads"), wanted["uploads"])
    if np.any(case.network.up) or np.any(case.network.down):
        return
    dtype = "float32" if seed % 5 == 4 else "float64"
    world, sizes = World(case.problem, case.stream), {"steps": case.steps, "seed": seed}
    check_lockstep(case.algorithm, world, url=nats_server.url, dtype=dtype, **sizes)
    free_programs()
