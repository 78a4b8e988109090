"""Streams: samples by step and client, from arrays, files, datasets and generators."""

from mainstem.streams.arrays import arrays
from mainstem.streams.batches import in_batches
from mainstem.streams.datasets import dataset, digits
from mainstem.streams.deal import by_key, by_label, evenly, in_time
from mainstem.streams.files import csv, parquet
from mainstem.streams.frames import frame
from mainstem.streams.generated import alternating, generated
from mainstem.streams.hashed import hashed
from mainstem.streams.log import log
from mainstem.streams.partners import partners
from mainstem.streams.residuals import linear_bandit, residuals
from mainstem.streams.river import river
from mainstem.streams.sea import sea_quadratic, sea_ridge
from mainstem.streams.split import sometimes, split
from mainstem.streams.tasks import tasks
from mainstem.streams.walking import walking

__all__ = [
    "alternating",
    "arrays",
    "by_key",
    "by_label",
    "csv",
    "dataset",
    "digits",
    "evenly",
    "frame",
    "generated",
    "hashed",
    "in_batches",
    "in_time",
    "linear_bandit",
    "log",
    "parquet",
    "partners",
    "residuals",
    "river",
    "sea_quadratic",
    "sea_ridge",
    "sometimes",
    "split",
    "tasks",
    "walking",
]
