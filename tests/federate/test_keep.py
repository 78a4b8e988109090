"""What a client keeps on its disk comes back whole."""

import jax
import numpy as np
import pytest

from mainstem.base import Sample
from mainstem.engines.federate.charter import draw_up
from mainstem.engines.federate.keep import Keep
from mainstem.engines.federate.member import Member
from mainstem.engines.federate.moves import Moves
from mainstem.errors import BrokenRun

CONTENT = {
    "problem": {"name": "linear", "features": 3},
    "algorithm": {"name": "fedogd", "step": 0.1, "sync": {"name": "every", "period": 4}},
    "federate": {"run": "kept", "clients": 2, "dtype": "float64"},
}


@pytest.fixture(scope="module")
def moves():
    return Moves(draw_up(CONTENT))


def lived(moves, steps):
    """A client that has learnt, so that its state is not the first one."""
    member, draw = Member(moves, 1), np.random.default_rng(2)
    for _ in range(steps):
        x = draw.normal(size=3)
        batch = Sample(x[None], np.array([x.sum()]))
        member.learn_many(batch, 1)
    return member


def test_state_and_all_uploads_under_way_come_back(moves, tmp_path):
    member, pending = lived(moves, 3), {4: b"first", 8: b"second", 12: b""}
    kept = Keep(tmp_path / "site")
    kept.save(member, pending)
    kept.close()
    again, found = Member(moves, 1), Keep(tmp_path / "site")
    assert found.load(again) == pending
    found.close()
    assert again.standing == member.count()
    assert again.step == 3
    for one, other in zip(
        jax.tree.leaves(again.client), jax.tree.leaves(member.client), strict=True
    ):
        assert np.array_equal(one, other)


def test_another_clients_folder_is_refused(moves, tmp_path):
    kept = Keep(tmp_path)
    kept.save(lived(moves, 1), {})
    with pytest.raises(BrokenRun, match="is of another run or client"):
        kept.load(Member(moves, 0))
