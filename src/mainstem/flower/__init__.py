"""mainstem in Flower: the server and the sites of a federated run as Flower apps.

What they compute is what the hub and its clients compute over NATS; Flower carries the messages.
"""

try:
    import flwr as _flwr  # noqa: F401
except ImportError:
    raise ImportError("Flower is not installed: pip install 'mainstem[flower]'") from None

from mainstem.flower.client import client_app
from mainstem.flower.server import Strategy, server_app

__all__ = ["Strategy", "client_app", "server_app"]
