"""What an upload of a run must be, whatever the state of the run: its origin, its sizes and its numbers."""

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from mainstem.engines.federate.protocol.messages import (
    MAX_LOSS,
    Reason,
    Refused,
    Upload,
    client_id,
)
from mainstem.engines.federate.protocol.run_document import RunDocument

ROUNDING = 1e-4  # of a weight: a client computes it in the run's precision


class UploadFormat:
    """Checks and decodes uploads of a run. Raises `Refused`."""

    def __init__(self, document: RunDocument):
        self._document = document
        self._ids = [client_id(name) for name in document.clients]
        self._finite = float(np.finfo(document.dtype).max)
        with document.precision():
            self._decode = _decoder(document)
            most = document.algorithm.most_weight(np.arange(len(document.clients)))
            most = np.broadcast_to(np.asarray(most, np.float64), len(document.clients))
            self._most_weight = most * (1 + ROUNDING)

    def check(self, upload: Upload, k: int) -> None:
        """Refuses an upload that client k of this run would not send."""
        document = self._document
        if upload.run != document.digest:
            raise Refused(Reason.RUN)
        if upload.client != self._ids[k]:
            raise Refused(Reason.CLIENT, f"claims to be client {upload.client:x}")
        if upload.codec != document.codec:
            raise Refused(Reason.CODEC)
        fine = abs(upload.loss) <= MAX_LOSS and math.isfinite(upload.weight)
        if not fine or upload.weight < 0 or (upload.weight > 0) != (upload.body is not None):
            raise Refused(Reason.NOT_FINITE if not fine else Reason.MALFORMED, "loss or weight")
        if upload.weight > self._most_weight[k]:
            raise Refused(Reason.WEIGHT, f"{upload.weight:g}, at most {self._most_weight[k]:g}")
        if upload.body is not None and len(upload.body) != document.upload_bytes:
            wanted = f"{len(upload.body)} bytes, {document.upload_bytes} wanted"
            raise Refused(Reason.SHAPE, wanted)

    def decoded(self, upload: Upload) -> np.ndarray | None:
        """The numbers of an upload; None if it has no body."""
        document = self._document
        if upload.body is None:
            return None
        try:
            code = document.algorithm.codec.unpack(upload.body, document.message, document.dtype)
        except ValueError as error:
            raise Refused(Reason.MALFORMED, str(error)) from None
        body = self._decode(code)
        largest = float(np.abs(body).max(initial=0)) * upload.weight
        if not (largest <= self._finite and upload.weight <= self._finite):
            raise Refused(Reason.NOT_FINITE)
        return body


def _decoder(document: RunDocument) -> Callable[[Any], np.ndarray]:
    codec, size = document.algorithm.codec, document.message
    if codec.linear:
        return lambda code: code  # a call of JAX would cost more than all checks
    decode = jax.jit(lambda code: codec.decode(code, size))

    def decoded(code: Any) -> np.ndarray:
        with document.precision():
            return np.asarray(decode(code))

    return decoded
