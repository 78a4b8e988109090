"""mainstem: online federated learning. Names are imported on first use, so that `import mainstem` is cheap."""

from typing import Any

import lazy_loader

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name != "__version__":
        return _public(name)
    from importlib.metadata import version

    return version("mainstem")
