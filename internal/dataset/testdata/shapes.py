#!/usr/bin/env python3
"""Makes rows of shapes.yaml, as everything.py does: python3 shapes.py > shapes.golden"""
from more import *

E2 = 203_041_276_517_399  # log2(e) / 2 times 2^48


def exponential(mean, least, most, step=1):
    """mean is the distance from least, in millionths."""
    n = (most - least) // step + 1
    middle = 2 * mean + step * 10**6
    n = min(n, middle * 33 // (step * 2 * 10**6) + 1)
    parts, logs, first = [], [], 0
    count = min(n, 4096)
    for i in range(count):
        after = (i + 1) * n // count
        size = after - first
        parts.append((first, size))
        logs.append(log2(size) - (2 * first + size - 1) * step * 2 * 10**6 * E2 // middle)
        first = after
    return Parts(least, step, parts, logs)


def buckets(bounds, unit=1):
    last = len(bounds) - 2
    for i, (a, b) in enumerate(zip(bounds, bounds[1:])):
        yield a, max((b - a) // unit, 1) + (i == last and b > a)


def histogram(*bounds, unit=1):
    parts = list(buckets(bounds, unit))
    table = alias([1 << 47] * len(parts))

    def draw(start, row):
        first, size = parts[pick(table, word(start, row, 2, 0))]
        return first + take(word(start, row, 2, 1), size)[0] * unit

    return draw


def lengths(*bounds):
    parts = list(buckets(bounds))

    def draw(start, row):
        k, rest = take(word(start, row, 1, 0), len(parts))
        more, rest = take(rest, parts[k][1])
        n, place = parts[k][0] + more, take(rest, PLACES)[0]
        while TEXT[place] == 32 or TEXT[place + n - 1] == 32:
            place += 1
        return TEXT[place : place + n]

    return draw


def often(seldom, *shares):
    """shares are pairs of a value and its percent."""
    parts = [int(s * 10**9) for _, s in shares]
    below = (sum(parts) << 64) // 10**11
    value = chosen(parts, *(v for v, _ in shares)) if len(shares) > 1 else lambda *_: shares[0][0]

    def draw(start, row):
        if happens(stream(start, "common"), row, below):
            return value(stream(start, "common value"), row)
        return seldom(start, row)

    return draw


# Patterns: functions of a source of choices. Choices share words of 64 bits, 32 of them used at most.
class Choices:
    def __init__(self, start, row, words):
        self.k, self.used, self.next = 0, 32, lambda k: word(start, row, words, k)

    def below(self, n):
        needs = (n - 1).bit_length()
        self.used += needs
        if self.used > 32:
            self.rest, self.used, self.k = self.next(self.k), needs, self.k + 1
        if n == 1:
            return 0
        k, self.rest = take(self.rest, n)
        return k


def one(characters):
    return lambda c: characters[c.below(len(characters))]


def lit(text):
    return lambda c: text


def seq(*parts):
    return lambda c: "".join(p(c) for p in parts)


def alt(*parts):
    return lambda c: parts[c.below(len(parts))](c)


def rep(part, least, most):
    return lambda c: "".join(part(c) for _ in range(least + c.below(most - least + 1)))


def pattern(bits, of):
    """bits is the most that one value takes."""
    words = 1 + bits // 17
    return lambda start, row: of(Choices(start, row, words)).encode()


UPPER, LOWER, DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", "0123456789"
YEAR = day(2026, 1, 1) * DAY

PLATE = pattern(2 * 5 + 8 * 4 + 3, seq(rep(one(UPPER), 2, 2), lit("-"), rep(one(DIGITS), 4, 8)))
CODE = pattern(
    2 + 6 * 4 + 3 + 3 * 5,
    seq(
        alt(lit("EUR"), lit("GBP"), seq(lit("X"), rep(one(DIGITS + "abcdef"), 2, 6)), rep(lit("é"), 0, 1)),
        rep(one(UPPER), 3, 3),
    ),
)
PATH = pattern(
    6 * (5 * 5 + 3) + 3 + 2,
    seq(rep(seq(lit("/"), rep(one(LOWER), 1, 5)), 1, 6), rep(seq(lit(".htm"), rep(lit("l"), 0, 1)), 0, 1)),
)

SHAPES = [
    ("id", lambda _, i: 1 + i),
    ("pause", exponential(300 * 10**6, 0, 300 * 32)),
    ("fee", nulls(20, exponential(1150 * 10**6, 100, 40_000, 25))),
    ("died", exponential(7 * DAY * 10**6, YEAR, YEAR + 365 * DAY)),
    ("load", bits64(exponential(11_200_000, 0, 1024), 16)),
    ("age", histogram(-3, 0, 0, 7, 8, 25, 100)),
    ("wide", histogram(-(2**63), 0, 2**63 - 1)),
    ("price", nulls(5, often(histogram(50, 100, 999, 2_000_000), (0, 10), (499, 25.5), (-700, 3)))),
    ("heat", bits32(often(histogram(-8, 4, 26), (169, 50)), 8)),
    (
        "seen",
        often(histogram(YEAR, YEAR + 12 * HOUR + SECOND // 2, YEAR + 364 * DAY, unit=1000), (day(2000, 1, 1) * DAY, 1)),
    ),
    ("born", histogram(day(1950, 1, 1), day(1980, 1, 1), day(2004, 12, 31))),
    ("note", often(lengths(1, 3, 40, 200), (b"v1", 30), (b'a, "b"', 12.5), (b"", 1))),
    ("title", nulls(9, often(distinct(700, lengths(4, 4, 60, 90)), (b"v1", 30)))),
    ("plate", PLATE),
    ("code", CODE),
    ("path", nulls(2, often(PATH, (b"/", 40)))),
    ("few", distinct(20, pattern(5, seq(one("ab"), one(DIGITS))))),
    (
        "doc",
        document(
            ("a", 0, often(histogram(1, 5, 9), (0, 30)), str),
            ("b", 0, pattern(4, seq(rep(one('"\\'), 0, 2), lit("x"))), quote),
            ("c", 0, often(prose(3, 9), (b'q"', 20)), quote),
        ),
    ),
]

if __name__ == "__main__":
    print_rows(SHAPES, list(range(30)) + [998, 999, 1000, 1001, 999_999, 1_000_000, 10**12, 10**15 - 1])
