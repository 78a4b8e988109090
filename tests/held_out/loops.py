"""Entry point of the oracle: runs one instance with the loop of its algorithm."""

from .best_response import best_response
from .fedres_sgd import fedres_sgd
from .one_model import send_gradients, send_models

LOOPS = {
    "send_gradients": send_gradients,
    "send_models": send_models,
    "dynamic_fedavg": send_models,
    "fedres_sgd": fedres_sgd,
    "fedres_erm": best_response,
    "fictitious_play": best_response,
}


def run(instance: dict) -> dict:
    """Runs an instance and gives models (or shared and own), server, loss and uploads."""
    name = instance["algorithm"]["name"]
    if name not in LOOPS:
        raise ValueError(f"algorithm: name must be one of {sorted(LOOPS)}, got {name!r}")
    return LOOPS[name](instance)
