"""The server: all steps of the run in run.toml. The model that it writes is read by `ms.load_model`."""

from pathlib import Path

from mainstem import flower

app = flower.server_app(Path(__file__).with_name("run.toml"), folder="model")
