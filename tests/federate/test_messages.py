"""Messages: what is packed is read again, and anything else is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem.engines.federate.protocol import state_format as bundle
from mainstem.engines.federate.protocol.chunking import Reassembler, split
from mainstem.engines.federate.protocol.messages import (
    UPLOAD_HEADER,
    Broadcast,
    Reason,
    Refused,
    Upload,
    pack_broadcast,
    pack_upload,
    read_broadcast,
    read_upload,
)
from mainstem.errors import BadData

modest = settings(max_examples=100, deadline=None, derandomize=True)
UPLOAD = Upload(b"12345678", b"abcd", 3, 17, 5, 2.5, 1.25, b"a body of some bytes")


@modest
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**63), st.floats(), st.none() | st.binary())
def test_an_upload_is_read_as_it_was_packed(client, step, loss, body):
    upload = Upload(b"12345678", b"abcd", client, step, 5, loss, 1.0, body)
    assert repr(read_upload(pack_upload(upload))) == repr(upload)
    assert len(pack_upload(upload)) == UPLOAD_HEADER + len(body or b"")


@modest
@given(st.data())
def test_a_flipped_bit_is_noticed(data):
    packed = bytearray(pack_upload(UPLOAD))
    bit = data.draw(st.integers(0, 8 * len(packed) - 1))
    packed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(Refused):
        read_upload(bytes(packed))


@modest
@given(st.binary(max_size=200))
def test_noise_is_refused(noise):
    with pytest.raises(Refused):
        read_upload(noise)
    with pytest.raises(Refused):
        read_broadcast(noise, 2)


@pytest.mark.parametrize("length", range(0, len(pack_upload(UPLOAD)), 7))
def test_an_upload_that_is_cut_short_is_refused(length):
    with pytest.raises(Refused):
        read_upload(pack_upload(UPLOAD)[:length])


@modest
@given(st.lists(st.integers(0, 100), min_size=1, max_size=300), st.binary(max_size=64))
def test_a_broadcast_is_read_as_it_was_packed(merged, params):
    broadcast = Broadcast(b"12345678", 9, 100, np.array(merged), np.array(merged) + 1, params)
    read = read_broadcast(pack_broadcast(broadcast), len(merged))
    assert (read.version, read.step, read.params) == (9, 100, params)
    assert read.merged.tolist() == merged
    assert read.received.tolist() == [step + 1 for step in merged]


def test_a_broadcast_to_clients_that_are_level_costs_little():
    broadcast = Broadcast(b"12345678", 9, 100, *np.full((2, 1000), 100), bytes(4000))
    assert len(pack_broadcast(broadcast)) < 4000 + 150


def test_a_flipped_bit_of_a_broadcast_is_noticed():
    packed = pack_broadcast(Broadcast(b"12345678", 9, 100, np.arange(20), np.arange(20), bytes(40)))
    for bit in range(8 * len(packed)):
        broken = bytearray(packed)
        broken[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Refused):
            read_broadcast(bytes(broken), 20)


@modest
@given(st.binary(max_size=500), st.integers(17, 100))
def test_pieces_are_reassembled(data, most):
    reassembler, found = Reassembler(500), []
    for piece in split(data, most, 7):
        assert len(piece) <= most
        found.append(reassembler.add(piece))
    assert found[:-1] == [None] * (len(found) - 1)
    assert found[-1] == data


def test_pieces_out_of_turn_are_refused_and_forgotten():
    first, second, *rest = split(bytes(100), 46, 7)
    reassembler = Reassembler(100)
    reassembler.add(first)
    with pytest.raises(Refused, match="out of order"):
        reassembler.add(rest[0])
    with pytest.raises(Refused):
        reassembler.add(second)
    assert not reassembler.waiting


def test_a_message_in_pieces_has_its_limit_too():
    reassembler = Reassembler(50)
    first, second, *_ = split(bytes(100), 46, 7)
    reassembler.add(first)
    with pytest.raises(Refused) as refusal:
        reassembler.add(second)
    assert refusal.value.reason is Reason.OVERSIZED


def test_a_new_message_replaces_an_unfinished_one():
    reassembler = Reassembler(100)
    reassembler.add(split(bytes(100), 46, 7)[0])
    assert reassembler.add(b"whole") == b"whole"


def test_a_bundle_is_read_as_it_was_packed():
    arrays = {"w": np.arange(6.0).reshape(2, 3), "k": np.int32(4), "none": np.zeros((0, 2))}
    found = bundle.unpack(bundle.pack({"t": 3, "names": ["a"]}, arrays))
    assert found.values == {"t": 3, "names": ["a"]}
    for name, array in arrays.items():
        assert np.array_equal(found.arrays[name], array)
        assert found.arrays[name].dtype == np.asarray(array).dtype


def test_a_broken_bundle_is_refused():
    packed = bundle.pack({"t": 3}, {"w": np.arange(6.0)})
    for length in range(len(packed)):
        with pytest.raises(BadData):
            bundle.unpack(packed[:length])
    for position in range(len(packed)):
        broken = bytearray(packed)
        broken[position] ^= 1
        with pytest.raises(BadData):
            bundle.unpack(bytes(broken))
