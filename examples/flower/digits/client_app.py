"""A site. It has every fifth digit; in place of the stream, give a function that yields your own rows."""

import mainstem as ms
from mainstem import flower

app = flower.client_app(ms.streams.digits(clients=5))
