"""Fetching: reads the first source that gives the right arrays, and writes them to the cache."""

from mainstem.datasets import cache
from mainstem.datasets.dataset import Dataset
from mainstem.datasets.named_arrays import Arrays
from mainstem.datasets.source import Source
from mainstem.errors import BadData, DataUnavailable


def fetch(dataset: Dataset) -> Arrays:
    """Tries the sources in order, verifies the arrays, and caches them. If all fail, the cache is unchanged."""
    failures = []
    with cache.staging(dataset) as staged:
        for source in dataset.sources:
            try:
                arrays = _proven(dataset, source)
            except (DataUnavailable, BadData) as error:
                failures.append(f"{source.where}: {error}")
                continue
            cache.publish(dataset, arrays, _provenance(dataset, source.where), staged)
            return arrays
    raise DataUnavailable(
        f"{dataset.name} is not available. {'. '.join(failures)}. Try again, or set MAINSTEM_DATA "
        f"to a folder that holds {_wanted(dataset)}"
    )


def _wanted(dataset: Dataset) -> str:
    place = cache.folder(dataset).name
    return " and ".join(f"{place}/{file}" for file in (dataset.file, *dataset.beside.values()))


def _proven(dataset: Dataset, source: Source) -> Arrays:
    """The verified arrays of a source; if its format has changed, any error of a converter counts as bad data."""
    try:
        arrays = source.read()
    except BadData:
        raise
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        raise BadData(f"another format than expected ({error!r})") from error
    fault = dataset.proof(arrays)
    if fault:
        raise BadData(f"other data than expected ({fault})")
    return arrays


def _provenance(dataset: Dataset, where: str) -> str:
    return f"{dataset.about}. From {where}, converted by mainstem. Licence: {dataset.licence}."
