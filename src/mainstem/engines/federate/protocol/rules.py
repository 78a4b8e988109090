"""The rules of a federated run: the table [federate] of its document, read and checked."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from mainstem import check, experiment
from mainstem.base.types import DTYPES
from mainstem.engines.federate.protocol.messages import LAST_STEP
from mainstem.engines.federate.protocol.subjects import token
from mainstem.errors import BadSpec
from mainstem.streams.sample_format import HASHED

PACES = ("free", "lockstep")
DEADLINE = 1.0  # default in seconds, at the free pace
ALARM, ON_ALARM = 10.0, ("hold", "return")
# A document comes from elsewhere: nothing larger is built from it.
MAX_CLIENTS = 10**5
LIMITS = {
    "staleness": 10**6,
    "pending": 10**4,
    "strikes": 10**9,
    "checkpoints": 10**4,
    "checkpoint_every": 10**9,
}
TWICE = ("newest", "first")
# What may change while a run lives.
CHANGEABLE = (
    "algorithm.step",
    "federate.clients",
    "federate.steps",
    "federate.deadline",
    "federate.gather",
    "federate.quorum",
    "federate.staleness",
    "federate.pending",
    "federate.strikes",
    "federate.alarm",
    "federate.on_alarm",
    "federate.twice",
    "federate.checkpoints",
    "federate.checkpoint_every",
)


class Rules(NamedTuple):
    """The table [federate]."""

    clients: tuple[str, ...]
    run: str = "main"
    pace: str = "free"
    seed: int = 0
    dtype: str = "float32"
    steps: int | None = None  # lockstep: the length of the run; None: without an end
    deadline: float | None = (
        None  # seconds from a round's first upload to its merge; None: no limit
    )
    gather: int | None = None  # free: uploads per merge; None: one of each client that is present
    quorum: int | None = None  # fewest clients in a merge; None: two, of three clients and more
    staleness: int = 100  # merges that an upload's model may be behind
    pending: int = 8  # uploads of a client that may be in flight
    strikes: int = 20  # refusals after which a client is quarantined
    twice: str = "newest"  # which of two processes with the name of one client is heard; or "first"
    guard: bool = True  # whether messages of unusual size are shortened or left out
    # How many times larger than at the beginning losses may become; None: 10 at the free pace; 0: no limit.
    alarm: float | None = None
    on_alarm: str = "hold"  # or "return": to the last good model
    start: str | None = None  # the file of a model to begin with; to clients, its checksum
    checkpoints: int = 50  # earlier states to which the run can go back
    checkpoint_every: int = 100  # merges between two of them
    # For samples that are dicts: the names of the features, or HASHED: any names.
    features: tuple[str, ...] | str | None = None
    labels: tuple[Any, ...] | None = None  # the names of the classes


def read_rules(where: str, table: Any) -> Rules:
    """Checks the table [federate]; `where` names it in errors."""
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
    for name, most in LIMITS.items():
        least = 0 if name == "checkpoints" else 1
        check.integer("federate", name, getattr(rules, name), least=least, most=most)
    check.flag("federate", "guard", rules.guard)
    check.one_of("federate", "twice", rules.twice, TWICE)
    check.one_of("federate", "on_alarm", rules.on_alarm, ON_ALARM)
    if rules.alarm is not None and check.number("federate", "alarm", rules.alarm) != 0:
        check.at_least("federate", "alarm", rules.alarm, 1)
    if rules.start is not None and not isinstance(rules.start, str):
        raise check.refuse("federate", "start", "be the name of a file", rules.start)
    if rules.steps is not None:
        check.integer("federate", "steps", rules.steps, least=1, most=LAST_STEP)
    for name in ("gather", "quorum"):
        fewest = getattr(rules, name)
        if fewest is not None:
            check.integer("federate", name, fewest, least=1, most=len(rules.clients))
    if rules.gather is not None and (rules.quorum or 1) > rules.gather:
        wanted = f"be at most gather, {rules.gather}"
        raise check.refuse("federate", "quorum", wanted, rules.quorum)
    if rules.pace == "free" and rules.deadline is None and rules.gather is None:
        rules = rules._replace(deadline=DEADLINE)  # else an absent client would stop all others
    if rules.deadline is not None:
        check.positive("federate", "deadline", rules.deadline)
    features = rules.features
    if isinstance(features, str):
        check.one_of("federate", "features", features, [HASHED])
    else:
        features = _as_tuple(features)
    return rules._replace(features=features, labels=_as_tuple(rules.labels))


def _as_tuple(given: Any) -> tuple[Any, ...] | None:
    return None if given is None else tuple(given)


def _roster(given: Any) -> tuple[str, ...]:
    """The names of the clients. A number n stands for the names "0" to "n - 1"."""
    if isinstance(given, int) and not isinstance(given, bool):
        count = check.integer("federate", "clients", given, least=1, most=MAX_CLIENTS)
        return tuple(map(str, range(count)))
    wanted = "be a number of clients or a list of their names"
    if not isinstance(given, list | tuple) or not 0 < len(given) <= MAX_CLIENTS:
        raise check.refuse("federate", "clients", wanted, given)
    names = tuple(token("federate", "clients", name) for name in given)
    if len(set(names)) != len(names):
        raise check.refuse("federate", "clients", "name each client once", given)
    return names
