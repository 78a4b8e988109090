"""Compilation cache: compiled programs are stored in the user's cache folder, for later processes."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SIZE = 2**30  # bytes of programs that are kept; the oldest are deleted


def folder() -> Path | None:
    """The folder of the programs, in mainstem's folder among the user's caches; None: the user has no home."""
    caches = os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(caches) if caches else Path.home() / ".cache"
    except RuntimeError:
        return None
    return home / "mainstem" / "programs"


@contextlib.contextmanager
def used() -> Iterator[None]:
    """Inside, JAX stores what it compiles and finds what earlier processes stored. A cache that was configured by
    other means, such as `$JAX_COMPILATION_CACHE_DIR`, and a folder that cannot be written, are left alone."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    place = folder()
    config: Any = jax.config
    if config.jax_compilation_cache_dir is not None or place is None or not _writable(place):
        yield
        return
    wanted = {
        "jax_compilation_cache_dir": str(place),
        "jax_compilation_cache_max_size": SIZE,
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: getattr(config, name) for name in wanted}
    _configure(wanted)
    compilation_cache.reset_cache()
    try:
        yield
    finally:
        _configure(before)
        compilation_cache.reset_cache()


def _configure(settings: dict[str, object]) -> None:
    import jax

    for name, given in settings.items():
        jax.config.update(name, given)


def _writable(place: Path) -> bool:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(place, os.W_OK)
