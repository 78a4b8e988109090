"""What all parties of a run agree on: problem, algorithm, roster and rules, as one document.

The document is an experiment file with a table [federate] in the place of [stream] and [simulate]. The hub
puts it where every client can read it, and every message carries its digest.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from mainstem import check, experiment, random
from mainstem.base import Algorithm, Flat, Gradient, Problem, Setting, Step
from mainstem.engines import meeting
from mainstem.engines.federate.names import Names, token
from mainstem.errors import BadSpec
from mainstem.spec import name_of
from mainstem.value import parts_of

PACES = ("free", "lockstep")
DTYPES = ("float32", "float64")
DEADLINE = 1.0  # seconds, at their own pace
_AS_IT_IS = contextlib.nullcontext()
FAR = 10**6  # steps in which a sync must follow, where a run has no end


class Rules(NamedTuple):
    """The table [federate]."""

    clients: tuple[str, ...]
    run: str = "main"
    pace: str = "free"
    seed: int = 0
    dtype: str = "float32"
    steps: int | None = None  # lockstep: the run is finished after so many; None: never
    deadline: float | None = (
        None  # seconds that a round waits after its first upload; None: for all
    )
    gather: int | None = (
        None  # free: a merge for every so many uploads; None: one of each present client
    )
    staleness: int = 100  # by how many merges an upload may be behind
    pending: int = 8  # uploads that a client may have under way
    strikes: int = 20  # refusals after which a client is quarantined
    features: tuple[str, ...] | None = None  # their names, for samples that are dicts
    labels: tuple[Any, ...] | None = None  # the names of the classes


class Charter(NamedTuple):
    """A run, as agreed on."""

    document: Mapping[str, Any]  # the experiment file, in what JSON knows
    rules: Rules
    algorithm: Algorithm
    source: Problem
    problem: Flat
    setting: Setting
    digest: bytes  # 8 bytes
    message: int = 0  # how many numbers an upload has
    upload_bytes: int = 0  # how many bytes its body has on the wire
    codec: bytes = b""  # 4 bytes that tell this codec, size and dtype from others

    @property
    def gradient(self) -> Gradient:
        """The problem's."""
        return self.problem.gradient

    @property
    def names(self) -> Names:
        """What things are called on the broker."""
        return Names(self.rules.run)

    @property
    def clients(self) -> tuple[str, ...]:
        """The roster."""
        return self.rules.clients

    @property
    def dtype(self) -> np.dtype:
        """The run's."""
        return np.dtype(self.rules.dtype)

    @property
    def lockstep(self) -> bool:
        """Whether all clients make step t together."""
        return self.rules.pace == "lockstep"

    def precise(self) -> Any:
        """JAX in the run's dtype; where it is that already, calls are quicker if nothing is set."""
        wanted = self.rules.dtype == "float64"
        now: bool = jax.config.jax_enable_x64  # type: ignore[attr-defined]
        return _AS_IT_IS if now == wanted else jax.enable_x64(wanted)


def read(path: str | Path, changes: Iterable[str] = ()) -> Charter:
    """The charter in the file at `path`, with `key=value` changes made to it first."""
    return draw_up(experiment.parsed(path, changes), str(path))


def draw_up(document: Mapping[str, Any], where: str = "spec") -> Charter:
    """The charter that a parsed file describes."""
    for name in ("problem", "algorithm", "federate"):
        if name not in document:
            raise BadSpec(f"{where}: the table [{name}] is missing")
    experiment.known(where, "table", document, ("problem", "algorithm", "federate"))
    listed = document["algorithm"]
    if isinstance(listed, list):
        if len(listed) != 1:
            raise BadSpec(f"{where}: a federation runs one [[algorithm]], got {len(listed)}")
        listed = listed[0]
    problem, algorithm = experiment.pieces(document["problem"], listed, where)
    rules = _rules(f"{where}: [federate]", document["federate"])
    plain = {
        "problem": document["problem"],
        "algorithm": listed,
        "federate": {key: value for key, value in rules._asdict().items() if value is not None},
    }
    plain = json.loads(json.dumps(plain))
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).digest()[:8]
    with jax.enable_x64(rules.dtype == "float64"):
        vectors = Flat(problem)
        _fits(where, rules, algorithm)
        _named(where, rules, problem)
        late = not (rules.pace == "lockstep" and rules.deadline is None)
        setting = Setting(len(rules.clients), rules.pending if late else 1, vectors.gradient)
        charter = Charter(plain, rules, algorithm, problem, vectors, setting, digest)
        size = int(meeting.body(charter).size)
    algorithm.codec.check(size)
    word = np.dtype(rules.dtype).itemsize
    told = f"{algorithm.codec} {size} {rules.dtype}"
    return charter._replace(
        message=size,
        upload_bytes=algorithm.codec.nbytes(size, 8 * word),
        codec=hashlib.sha256(told.encode()).digest()[:4],
    )


def at_site(charter: Charter, problem: Problem) -> Charter:
    """The charter with a client's own `problem`: its own part is of another kind, the shared one is the same."""
    if not charter.algorithm.personal:
        asked = "the run's: only of fedres_sgd and its kin a client has a model of its own"
        raise BadSpec(f"join: problem must be {asked}")
    with charter.precise():
        if not problem.personal:
            raise BadSpec("join: problem must have a shared and an own part")
        vectors = Flat(problem)
        setting = charter.setting._replace(gradient=vectors.gradient)
        own = charter._replace(source=problem, problem=vectors, setting=setting)
        if (_shared(own), meeting.body(own).size) != (_shared(charter), charter.message):
            raise BadSpec("join: problem must have the run's shared part")
    return own


def _shared(charter: Charter) -> int:
    """How many numbers the shared part has."""
    shapes = jax.eval_shape(lambda: meeting.first_params(charter, random.root(0)))
    return int(shapes.shared.size)


def _fits(where: str, rules: Rules, algorithm: Algorithm) -> None:
    if any(isinstance(it, Step) and it.automatic for _, it in parts_of(algorithm)):
        raise BadSpec(f'{where}: step = "auto" looks at data, which a hub has not: give a number')
    if not algorithm.sync.after(np.arange(1, (rules.steps or FAR) + 1)).any():
        raise BadSpec(
            f"{where}: {name_of(algorithm)} never syncs here: there is nothing to federate"
        )
    algorithm.participation.check(rules.steps or 1, len(rules.clients))
    if rules.pace == "free" and not algorithm.participation.apart:
        raise BadSpec(
            f"{where}: {name_of(algorithm.participation)}(...) needs pace = lockstep: at their own "
            "pace clients toss coins"
        )


def _named(where: str, rules: Rules, problem: Problem) -> None:
    """As many names as there are features and classes."""
    shape = problem.shape
    if rules.features is not None and shape is not None and shape != (len(rules.features),):
        raise BadSpec(f"{where}: features names {len(rules.features)}, the problem has {shape}")
    if rules.labels is not None and problem.classes not in (None, len(rules.labels)):
        raise BadSpec(f"{where}: labels names {len(rules.labels)} of {problem.classes} classes")


def _rules(where: str, table: Any) -> Rules:
    if not isinstance(table, Mapping):
        raise BadSpec(f"{where}: wants a table, got {table!r}")
    experiment.known(where, "key", table, Rules._fields)
    if "clients" not in table:
        raise BadSpec(f"{where}: clients is missing: a list of names, or how many")
    given = dict(table)
    rules = Rules(**given | {"clients": _roster(given["clients"])})
    token("federate", "run", rules.run)
    check.one_of("federate", "pace", rules.pace, PACES)
    check.one_of("federate", "dtype", rules.dtype, DTYPES)
    check.integer("federate", "seed", rules.seed, least=0, most=2**63 - 1)
    for name in ("staleness", "pending", "strikes"):
        check.integer("federate", name, getattr(rules, name), least=1)
    if rules.steps is not None:
        check.integer("federate", "steps", rules.steps, least=1)
    if rules.gather is not None:
        check.integer("federate", "gather", rules.gather, least=1)
        if rules.gather > len(rules.clients):
            most = f"be at most the {len(rules.clients)} clients"
            raise check.refuse("federate", "gather", most, rules.gather)
    if rules.pace == "free" and rules.deadline is None and rules.gather is None:
        rules = rules._replace(deadline=DEADLINE)  # else an absent client would stop all others
    if rules.deadline is not None:
        check.positive("federate", "deadline", rules.deadline)
    return rules._replace(features=_words(rules.features), labels=_words(rules.labels))


def _words(given: Any) -> tuple[Any, ...] | None:
    return None if given is None else tuple(given)


def _roster(given: Any) -> tuple[str, ...]:
    """The names of the clients; a number n stands for "0" to "n - 1"."""
    if isinstance(given, int) and not isinstance(given, bool):
        return tuple(map(str, range(check.integer("federate", "clients", given, least=1))))
    wanted = "be a number of clients or a list of their names"
    if not isinstance(given, list | tuple) or not given:
        raise check.refuse("federate", "clients", wanted, given)
    names = tuple(token("federate", "clients", name) for name in given)
    if len(set(names)) != len(names):
        raise check.refuse("federate", "clients", "name each client once", given)
    return names
