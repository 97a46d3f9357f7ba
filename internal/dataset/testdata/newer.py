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
    ("second", equal(45_000 * SECOND, 86_399 * SECOND)),
]

if __name__ == "__main__":
    print_rows(NEWER, list(range(40)) + [998, 999, 1000, 1001, 999_999, 1_000_000, 10**12, 10**15 - 1])
