#!/usr/bin/env python3
"""Makes rows of more.yaml, as everything.py does: python3 more.py > more.golden"""
from everything import *


def number_in_uuid(high, version, x, row):
    """RFC 9562: 48 bits, the version, 12 bits, the variant 10, 62 bits, of which the last 60 are the row."""
    bits = high << 80 | version << 76 | (x >> 4 & 0xFFF) << 64 | 2 << 62 | (x >> 2 & 3) << 60 | row
    text = f"{bits:032x}"
    return "-".join([text[:8], text[8:12], text[12:16], text[16:20], text[20:]]).encode()


def v4(name):
    def draw(_, row):
        x = word(start_of(0, name), row, 1, 0)
        return number_in_uuid(x >> 16, 4, x, row)

    return draw


def v7(name, start, step):
    return lambda _, row: number_in_uuid((start + row * step) // 1000, 7, word(start_of(0, name), row, 1, 0), row)


def scatter(start, stride):
    def draw(_, row):
        block, within = divmod(row, stride * stride)
        tens, ones = divmod(within, stride)
        return start + block * stride * stride + ones * stride + tens

    return draw


def hashed(name, least, most, step=1):
    draw = uniform(least, most, step)
    return lambda _, row: draw(start_of(0, name), row)


MORE = [
    ("k", v4("k")),
    ("moment", v7("moment", day(2026, 3, 1) * DAY + 12 * HOUR, 250)),
    ("hidden", scatter(7, 1000)),
    ("wide", scatter(1, 1_000_003)),
    ("parent", hashed("parent", 1, 5000)),
    ("seen", hashed("seen", day(2026, 1, 1) * DAY, day(2026, 12, 31) * DAY, SECOND)),
]

if __name__ == "__main__":
    print_rows(MORE, list(range(6)) + [998, 999, 1000, 1001, 999_999, 1_000_000, 10**12, 10**15 - 1])
