"""The run document: problem, algorithm, roster and rules of a federated run, read and checked.

It is an experiment file with a table [federate] in the place of [stream] and [simulate]. The hub publishes it for
every client. Every message carries a digest of what may not change while the run lives; see changes.py.
"""

import contextlib
import copy
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from mainstem import check, experiment, plugins
from mainstem.algorithms import guarded
from mainstem.base import Algorithm, Flat, Gradient, Problem, Setting
from mainstem.engines import error_feedback, run_context
from mainstem.engines.federate.protocol import versions
from mainstem.engines.federate.protocol.messages import (
    LAST_STEP,
    SMALL,
    Broadcast,
    Reason,
    Refused,
    most_broadcast_bytes,
    read_broadcast,
)
from mainstem.engines.federate.protocol.rules import ALARM, CHANGEABLE, Rules, read_rules
from mainstem.engines.federate.protocol.subjects import Subjects
from mainstem.errors import BadSpec, MainstemError
from mainstem.parts.step import automatic_steps
from mainstem.spec import name_of
from mainstem.streams.sample_format import HASHED

_NO_CHANGE = contextlib.nullcontext()
MAX_FIRST_SYNC = 10**6  # steps within which a sync must occur
# A document comes from elsewhere: nothing larger is built from it.
MAX_PARAMETERS = 10**8
MAX_DEPTH = 32  # of its tables


class RunDocument(NamedTuple):
    """A run document, with the values that it describes."""

    content: Mapping[str, Any]  # the experiment file, as JSON
    rules: Rules
    algorithm: Algorithm
    source: Problem
    problem: Flat
    setting: Setting
    digest: bytes  # of what may not change, 8 bytes
    revision: int = 0  # how often the rest has changed
    formerly: Mapping[str, str] = {}  # the first names of clients that were renamed
    file: Mapping[str, Any] = {}  # the content with which the hub was last started
    start: np.ndarray | None = None  # the model to begin with, at the hub
    versions: Mapping[str, Any] = {}  # of this process, and of the packages that the content needs
    message: int = 0  # numbers in an upload
    upload_bytes: int = 0  # bytes of an upload's body on the wire
    codec: bytes = b""  # digest of codec, size and dtype, 4 bytes
    broadcast: int = 0  # numbers in a broadcast

    @property
    def gradient(self) -> Gradient:
        """The gradient of the problem."""
        return self.problem.gradient

    @property
    def stored(self) -> dict[str, Any]:
        """What a stored state holds of it, as JSON."""
        beside = {"revision": self.revision, "formerly": self.formerly, "file": self.file}
        return {"content": self.content, **beside}

    def computes_as(self, other: "RunDocument") -> bool:
        """Whether the same programs serve both revisions: only rules differ."""
        algorithms = self.content["algorithm"], other.content["algorithm"]
        return algorithms[0] == algorithms[1] and len(self.clients) == len(other.clients)

    @property
    def subjects(self) -> Subjects:
        """The NATS subjects and streams of the run."""
        return Subjects(self.rules.run)

    @property
    def clients(self) -> tuple[str, ...]:
        """The roster: the names of all clients."""
        return self.rules.clients

    @property
    def dtype(self) -> np.dtype:
        """The floating-point type of models and messages."""
        return np.dtype(self.rules.dtype)

    @property
    def lockstep(self) -> bool:
        """Whether all clients finish step t before step t + 1 begins."""
        return self.rules.pace == "lockstep"

    @property
    def alarm(self) -> float:
        """How many times larger than at the beginning losses may become; 0: no limit, as in `simulate`."""
        if self.rules.alarm is not None:
            return self.rules.alarm
        return 0.0 if self.lockstep else ALARM

    @property
    def quorum(self) -> int:
        """The fewest clients in a merge."""
        if self.rules.quorum is not None:
            return self.rules.quorum
        return min(1 if len(self.clients) < 3 else 2, self.rules.gather or len(self.clients))

    @property
    def broadcast_bytes(self) -> int:
        """The bytes of the model in a broadcast."""
        word, codec = self.dtype.itemsize, self.algorithm.downlink
        return word * self.broadcast if codec is None else codec.nbytes(self.broadcast, 8 * word)

    @property
    def most_broadcast_bytes(self) -> int:
        """An upper bound on the size of a whole broadcast."""
        return most_broadcast_bytes(len(self.clients), self.broadcast_bytes)

    def read_broadcast(self, data: bytes) -> Broadcast:
        """Decodes a broadcast of this run. Raises `Refused` for one that its hub would not send."""
        if len(data) > SMALL:
            return self._checked_broadcast(data)
        found = _recent.get((self.digest, data))
        if found is None:
            found = self._checked_broadcast(data)
            if len(_recent) >= RECENT:
                _recent.clear()
            _recent[self.digest, data] = found
        return found

    def _checked_broadcast(self, data: bytes) -> Broadcast:
        found = read_broadcast(data, len(self.clients))
        if found.run != self.digest or found.revision != self.revision:
            raise Refused(Reason.RUN)
        if len(found.params) != self.broadcast_bytes:
            raise Refused(Reason.SHAPE, f"{len(found.params)} bytes, {self.broadcast_bytes} wanted")
        try:
            model = self.decoded(found.params)
        except ValueError as error:
            raise Refused(Reason.MALFORMED, str(error)) from None
        if not np.isfinite(model).all():
            raise Refused(Reason.NOT_FINITE)
        return found

    def decoded(self, params: bytes) -> np.ndarray:
        """The model in a broadcast."""
        codec = self.algorithm.downlink
        if codec is None:
            return np.frombuffer(params, self.dtype)
        code = codec.unpack(params, self.broadcast, self.dtype)
        with self.precision():
            return np.asarray(_decode(codec, code, self.broadcast))

    def precision(self) -> Any:
        """A context in which JAX computes in the run's dtype. It is empty where it can be: that is quicker."""
        wanted = self.rules.dtype == "float64"
        now: bool = jax.config.jax_enable_x64  # type: ignore[attr-defined]
        return _NO_CHANGE if now == wanted else jax.enable_x64(wanted)


RECENT = 16
# Small broadcasts that were checked, by document and content: many clients of a process read the same.
_recent: dict[tuple[bytes, bytes], Broadcast] = {}
_decode = jax.jit(lambda codec, code, size: codec.decode(code, size), static_argnums=2)


def read(path: str | Path, changes: Iterable[str] = ()) -> RunDocument:
    """Reads the run document at `path`, with `key=value` changes applied first."""
    return parse(experiment.parsed(path, changes), str(path))


def parse(content: Mapping[str, Any], where: str = "spec") -> RunDocument:
    """Checks the content of a run document and builds its values; `where` names it in errors."""
    for name in ("problem", "algorithm", "federate"):
        if name not in content:
            raise BadSpec(f"{where}: the table [{name}] is missing")
    experiment.known(where, "table", content, ("problem", "algorithm", "federate"))
    listed = content["algorithm"]
    if isinstance(listed, list):
        if len(listed) != 1:
            raise BadSpec(f"{where}: a federation runs one [[algorithm]], got {len(listed)}")
        listed = listed[0]
    problem, algorithm = experiment.pieces(content["problem"], listed, where)
    if problem.parameters > MAX_PARAMETERS:
        raise BadSpec(
            f"{where}: the model has {problem.parameters} parameters, at most {MAX_PARAMETERS}"
        )
    rules = read_rules(f"{where}: [federate]", content["federate"])
    plain = {
        "problem": content["problem"],
        "algorithm": listed,
        "federate": {key: value for key, value in rules._asdict().items() if value is not None},
    }
    plain = json.loads(json.dumps(plain))
    digest = hashlib.sha256(json.dumps(_fixed(plain), sort_keys=True).encode()).digest()[:8]
    with jax.enable_x64(rules.dtype == "float64"):
        vectors = Flat(problem)
        _fits(where, rules, algorithm)
        for domain in (algorithm.domain, problem.domain):
            run_context.check_broadcasts(algorithm, domain)
        _named(where, rules, problem)
        late = not (rules.pace == "lockstep" and rules.deadline is None)
        setting = Setting(len(rules.clients), rules.pending if late else 1, vectors.gradient)
        bounded = guarded(algorithm) if rules.guard and not algorithm.guards else algorithm
        applied = error_feedback.applied(bounded)
        document = RunDocument(plain, rules, applied, problem, vectors, setting, digest)
        size = int(run_context.body(document).size)
        broadcast = run_context.broadcast_size(document)
    algorithm.codec.check(size)
    if algorithm.downlink is not None:
        algorithm.downlink.check(broadcast)
    word = np.dtype(rules.dtype).itemsize
    described = f"{algorithm.codec} {size} {rules.dtype}"
    return document._replace(
        file=plain,
        versions=versions.versions(plugins.packages(plain)),
        message=size,
        upload_bytes=algorithm.codec.nbytes(size, 8 * word),
        codec=hashlib.sha256(described.encode()).digest()[:4],
        broadcast=broadcast,
    )


def _fixed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content without what may change."""
    fixed = copy.deepcopy(dict(content))
    for place in CHANGEABLE:
        table, _, name = place.partition(".")
        fixed[table].pop(name, None)
    return fixed


def encode(document: RunDocument) -> bytes:
    """Encodes a run document for clients, with the hub's versions. These come first in all versions of it."""
    beside = {"revision": document.revision, "formerly": dict(document.formerly)}
    return json.dumps({**document.versions, **beside, **document.content}).encode()


def decode(data: bytes, run: str) -> RunDocument:
    """Decodes a run document. Refuses one of incompatible versions, or one that no hub would write."""
    try:
        content = json.loads(data)
        theirs = {name: content.pop(name, None) for name in versions.NAMES}
        revision, formerly = content.pop("revision", 0), content.pop("formerly", {})
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise _unreadable(run, error) from None
    if _deeper(content, MAX_DEPTH):
        raise _unreadable(run, f"its tables are more than {MAX_DEPTH} deep")
    why = versions.incompatible(theirs, versions.versions(plugins.packages(content)))
    if why is not None:
        raise versions.Incompatible(run, why)
    try:
        check.integer(run, "revision", revision, least=0, most=LAST_STEP)
        former = {str(name): str(old) for name, old in dict(formerly).items()}
        return parse(content, run)._replace(revision=revision, formerly=former)
    except MainstemError:
        raise
    except Exception as error:  # whatever it contains, the client gets a reason
        raise _unreadable(run, error) from error


def _unreadable(run: str, reason: object) -> BadSpec:
    kind = f"{type(reason).__name__}: " if isinstance(reason, Exception) else ""
    return BadSpec(f"{run}: its document cannot be read: {kind}{reason!s:.200}")


def _deeper(content: Any, depth: int) -> bool:
    """Whether tables and lists are nested more than `depth` deep."""
    level = [content]
    for _ in range(depth):
        inside = [each.values() if isinstance(each, dict) else each for each in level]
        level = [each for values in inside for each in values if isinstance(each, dict | list)]
        if not level:
            return False
    return True


def with_own_problem(document: RunDocument, problem: Problem) -> RunDocument:
    """Replaces the problem for one client. Its local part may differ, its shared part must be the run's."""
    if not document.algorithm.personal:
        asked = "the run's: only of fedres_sgd and its kin a client has a model of its own"
        raise BadSpec(f"join: problem must be {asked}")
    with document.precision():
        if not problem.personal:
            raise BadSpec("join: problem must have a shared and an own part")
        vectors = Flat(problem)
        setting = document.setting._replace(gradient=vectors.gradient)
        own = document._replace(source=problem, problem=vectors, setting=setting)
        wanted = document.broadcast, document.message
        if (run_context.broadcast_size(own), run_context.body(own).size) != wanted:
            raise BadSpec("join: problem must have the run's shared part")
    return own


def _fits(where: str, rules: Rules, algorithm: Algorithm) -> None:
    if automatic_steps(algorithm):
        raise BadSpec(
            f'{where}: step = "auto" needs data, which a hub does not have: give a number'
        )
    first = min(rules.steps or MAX_FIRST_SYNC, MAX_FIRST_SYNC)
    if not algorithm.sync.after(np.arange(1, first + 1)).any():
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
    """Refuses names of features or labels that do not match the problem."""
    shape = problem.shape
    if rules.features == HASHED:
        if not isinstance(shape, tuple) or len(shape) != 1 or not isinstance(shape[0], int):
            raise BadSpec(f"{where}: hashed features are a vector, the problem wants {shape}")
    elif rules.features is not None and shape is not None and shape != (len(rules.features),):
        raise BadSpec(f"{where}: features names {len(rules.features)}, the problem has {shape}")
    if rules.labels is not None and problem.classes not in (None, len(rules.labels)):
        raise BadSpec(f"{where}: labels names {len(rules.labels)} of {problem.classes} classes")
