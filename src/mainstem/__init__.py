"""mainstem: online federated learning. Names are imported on first use, so that `import mainstem` is cheap."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
