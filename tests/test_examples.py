"""The examples that the documents name do run."""

import pytest

from examples import gallery


@pytest.mark.slow
@pytest.mark.parametrize("name", gallery.GALLERY)
def test_the_gallery_draws(name):
    assert gallery.GALLERY[name]().axes
