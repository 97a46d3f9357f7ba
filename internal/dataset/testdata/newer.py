#!/usr/bin/env python3
"""Makes rows of newer.yaml, as everything.py does: python3 newer.py > newer.golden"""
from more import *


def wide(draw):
    """A value as 16 bytes; NULL stays."""

    def of(start, row):
        value = draw(start, row)
        return None if value is None else value.to_bytes(16, "big", signed=True)

    return of


def uniform128(least, most, step=1):
    """Of two words, the first is the higher one."""
    n = (most - least) // step + 1
    return lambda start, row: least + step * ((word(start, row, 2, 0) << 64 | word(start, row, 2, 1)) * n >> 128)


def bits(draw):
    """An unsigned number as the int64 with its bits."""
    return lambda start, row: (draw(start, row) + 2**63) % 2**64 - 2**63


def array(least, most, draw, write):
    """The items of a row are rows of their generator, of which the first ones are taken."""

    def of(start, row):
        n = least + take(word(stream(start, "items"), row, 1, 0), most - least + 1)[0]
        all = [draw(start, row * most + i) for i in range(n)]
        return ("[" + ",".join("null" if v is None else write(v) for v in all) + "]").encode()

    return of


def signed_cents(value):
    return ("-" if value < 0 else "") + cents(abs(value))


def clock(value):
    s = value // SECOND
    return f'"{s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}"'


NEWER = [
    ("k", lambda _, row: 1 + row),
    ("u8", bits(uniform(5, 2**64 - 1))),
    ("one_of", bits(chosen([75, 25], 2**64 - 1, 0))),
    ("u4", nulls(25, uniform(0, 2**32 - 1))),
    ("u2", zipf(1_000_000, 1, 40000)),
    ("tall", wide(uniform128(-(10**28 - 1) * 10**10, 10**38 - 1))),
    ("steps", wide(nulls(25, uniform128(-500, 1234567890123456789012345, 25)))),
    ("listed", wide(chosen([75, 25], -(10**20 - 1), 7))),
    ("few", wide(equal(10**18, -1, 0))),
    ("clock", uniform(0, DAY - 1)),
    ("doc", document(
        ("tags", 0, array(0, 5, equal(b"a", "ü".encode(), b'b"'), quote), bytes.decode),
        ("pair", 0, array(2, 2, nulls(25, uniform(-999, 999)), signed_cents), bytes.decode),
        ("lines", 25, array(1, 3, document(
            ("sku", 0, symbols(ALNUM, 2, 4), quote),
            ("parts", 0, array(0, 2, equal("true", "false"), str), bytes.decode),
        ), bytes.decode), bytes.decode),
        ("clock", 0, uniform(0, 86_340 * SECOND, 1_000_000), clock),
    )),
    ("second", equal(45_000 * SECOND, 86_399 * SECOND)),
]

if __name__ == "__main__":
    print_rows(NEWER, list(range(40)) + [998, 999, 1000, 1001, 999_999, 1_000_000, 10**12, 10**15 - 1])
