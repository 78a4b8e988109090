"""Tracking: the curves of a run, written while it goes on for other programs to show.

>>> import mainstem as ms, pathlib, tempfile
>>> file = pathlib.Path(tempfile.mkdtemp()) / "digits.csv"
>>> stream, problem = ms.streams.digits(clients=10), ms.problems.softmax(features=64, classes=10)
>>> run = ms.simulate(ms.fedogd(0.5), problem, stream, steps=100, track=ms.tracking.csv(file))
>>> file.read_text().splitlines()[0]
'run,step,time,name,value'
"""

from mainstem.tracking.mlflow import mlflow
from mainstem.tracking.opening import tracker, trackers
from mainstem.tracking.tensorboard import tensorboard
from mainstem.tracking.text_files import csv, json_lines
from mainstem.tracking.tracker import Tracker

__all__ = ["Tracker", "csv", "json_lines", "mlflow", "tensorboard", "tracker", "trackers"]
