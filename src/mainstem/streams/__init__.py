"""What arrives: samples at steps and clients, from arrays, files, datasets and generators."""

from mainstem.streams.arrays import arrays
from mainstem.streams.datasets import dataset, digits
from mainstem.streams.deal import by_key, by_label, evenly, in_time
from mainstem.streams.files import csv, parquet
from mainstem.streams.generated import alternating, generated
from mainstem.streams.sea import sea_quadratic, sea_ridge

__all__ = [
    "alternating",
    "arrays",
    "by_key",
    "by_label",
    "csv",
    "dataset",
    "digits",
    "evenly",
    "generated",
    "in_time",
    "parquet",
    "sea_quadratic",
    "sea_ridge",
]
