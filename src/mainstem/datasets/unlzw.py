"""Unix `compress` (.Z) decoder: UCI stores one half of Shuttle in this format, and zlib cannot read it."""

from mainstem.errors import BadData

_MAGIC = b"\x1f\x9d"
_CLEAR = 256


def decompress(body: bytes) -> bytes:
    """Decompresses LZW with codes that grow from 9 bits, as written by compress(1).

    Codes come in groups of eight. When the width grows or the table is cleared, the rest of the group is
    padding.
    """
    if len(body) < 3 or body[:2] != _MAGIC:
        raise BadData("not a .Z file: it does not begin with 1f 9d")
    widest, clears = body[2] & 0x1F, bool(body[2] & 0x80)
    if not 9 <= widest <= 16:
        raise BadData(f"a .Z file has codes of at most 9 to 16 bits, this one says {widest}")
    first = _CLEAR + 1 if clears else _CLEAR
    table = [bytes([n]) for n in range(256)] + [b""] * (first - 256)
    out: list[bytes] = []
    width, previous = 9, b""
    group = at = 3 * 8  # in bits
    while at + width <= 8 * len(body):
        code = _bits(body, at, width)
        at += width
        if clears and code == _CLEAR:
            at = group = _end_of_group(group, at, width)
            del table[first:]
            width, previous = 9, b""
            continue
        entry = _entry(table, code, previous)
        if previous and len(table) < 1 << widest:
            table.append(previous + entry[:1])
        out.append(entry)
        previous = entry
        if len(table) == 1 << width and width < widest:
            at = group = _end_of_group(group, at, width)
            width += 1
    return b"".join(out)


def _bits(body: bytes, at: int, width: int) -> int:
    three = int.from_bytes(body[at >> 3 : (at >> 3) + 3], "little")
    return (three >> (at & 7)) & ((1 << width) - 1)


def _end_of_group(group: int, at: int, width: int) -> int:
    return group + -(-(at - group) // (8 * width)) * 8 * width


def _entry(table: list[bytes], code: int, previous: bytes) -> bytes:
    """The text of a code; the one code not yet in the table is the entry that is about to be added."""
    if code < len(table) and table[code]:
        return table[code]
    if code == len(table) and previous:
        return previous + previous[:1]
    raise BadData("a .Z file holds a code that nothing before it defines")
