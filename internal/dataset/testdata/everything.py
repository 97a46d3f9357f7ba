#!/usr/bin/env python3
"""Makes rows of everything.yaml, independently of terapush: python3 everything.py > everything.golden

The lines have a seed, a row number and the columns; texts and bytes are in hex. Python's integers have any size, so that
nothing here wraps or rounds by itself.
"""
import datetime
import math

MASK = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15
PLACES = 2**18


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def start_of(seed, name):
    h = 0xCBF29CE484222325  # FNV-1a
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 & MASK
    return mix(mix(seed) ^ h)


def word(start, row, words, k):
    """Word k, from 0, of a row that takes some."""
    return mix(start + (row * words + k + 1) * GAMMA & MASK)


def take(x, n):
    """An index below n, and the word for the next one."""
    return x * n >> 64, x * n & MASK


# Logarithms have 48 bits after the point.
def log2(x):
    e = x.bit_length() - 1
    m, result = x << (63 - e), e
    for _ in range(48):
        m, result = m * m, result * 2
        if m >> 127:
            m, result = m >> 64, result + 1
        else:
            m >>= 63
    return result


ROOTS = []
root = 1 << 127
for _ in range(48):
    root = math.isqrt(root)
    ROOTS.append(root)
    root <<= 64


def weights(logs):
    result, most = [], max(logs)
    for log in logs:
        d, m = most - log, 1 << 63
        for k in range(48):
            if d >> (47 - k) & 1:
                m = m * ROOTS[k] >> 64
        result.append(m >> 16 >> (d >> 48))
    return result


def alias(w):
    n, one, total = len(w), 1 << 47, sum(w)
    left = [x * n * one // total for x in w]
    left[w.index(max(w))] += n * one - sum(left)
    small = [i for i in range(n) if left[i] < one]
    large = [i for i in range(n) if left[i] >= one]
    table = [(0, i, i) for i in range(n)]
    while small and large:
        s, l = small.pop(), large[-1]
        table[s] = (left[s] << 17, s, l)
        left[l] -= one - left[s]
        if left[l] < one:
            small.append(large.pop())
    return table


def pick(table, x):
    at, fraction = take(x, len(table))
    below, first, second = table[at]
    return first if fraction < below else second


def zipf_parts(n, s):
    """s in millionths."""
    parts, logs, first, size = [], [], 0, 1
    while first < n:
        rank = first + 1
        if n > 1 << 16 and rank >= 1 << 15:
            size = (1 << (rank.bit_length() - 1)) // 512
        size = min(size, n - first)
        middle = log2(2 * rank + size - 1) - (1 << 48)
        parts.append((first, size))
        logs.append(log2(size) - middle * s // 1_000_000)
        first += size
    return parts, logs


def normal_parts(least, step, n, mean, deviation):
    """mean and deviation in millionths."""
    parts, logs, first = [], [], 0
    count = min(n, 4096)
    for i in range(count):
        after = (i + 1) * n // count
        size = after - first
        d = (2 * least + (2 * first + size - 1) * step) * 1_000_000 - 2 * mean
        distance = d * d * 203_041_276_517_399 // (4 * deviation * deviation)
        parts.append((first, size))
        logs.append(log2(size) - min(distance, 1 << 61))
        first = after
    return parts, logs


class Parts:
    def __init__(self, least, step, parts, logs, n=0, scatter=False):
        self.least, self.step, self.parts, self.n, self.scatter = least, step, parts, n, scatter
        self.table = alias(weights(logs))
        self.words = 2 if any(size > 1 for _, size in parts) else 1

    def __call__(self, start, row):
        first, size = self.parts[pick(self.table, word(start, row, self.words, 0))]
        k = first
        if self.words == 2:
            k += take(word(start, row, 2, 1), size)[0]
        if self.scatter:
            times = max(GAMMA * self.n >> 64, 1)
            while math.gcd(times, self.n) != 1:
                times += 1
            k = (k * times + (start * self.n >> 64)) % self.n
        return self.least + k * self.step


def uniform(least, most, step=1):
    n = (most - least) // step + 1
    return lambda start, row: least + step * take(word(start, row, 1, 0), n)[0]


def zipf(s, least, most, scatter=False):
    n = most - least + 1
    return Parts(least, 1, *zipf_parts(n, s), n, scatter)


def normal(mean, deviation, least, most):
    return Parts(least, 1, *normal_parts(least, 1, most - least + 1, mean, deviation))


def equal(*values):
    return lambda start, row: values[take(word(start, row, 1, 0), len(values))[0]]


def chosen(shares, *values):
    table = alias(shares)
    return lambda start, row: values[pick(table, word(start, row, 1, 0))]


PLAIN = [c for c in range(256) if chr(c) not in "\x00\t\n\r\x01\x02\x1a\"',\\"]
ALNUM = [c for c in PLAIN if c < 128 and chr(c).isalnum()]
HEX = [ord(c) for c in "0123456789abcdef"]
ASCII = [c for c in PLAIN if 0x21 <= c <= 0x7E]


def symbols(alphabet, shortest, longest):
    def draw(start, row):
        differ = shortest < longest
        words = (longest + 7) // 8 + differ
        length = longest
        if differ:
            length = shortest + take(word(start, row, words, 0), longest - shortest + 1)[0]
        out = []
        for k in range((length + 7) // 8):
            x = word(start, row, words, k + differ)
            for _ in range(min(8, length - 8 * k)):
                index, x = take(x, len(alphabet))
                out.append(alphabet[index])
        return bytes(out)

    return draw


# The grammar and vocabulary of TPC-H's texts (specification 4.2.2.14).
GRAMMAR = {
    "N": "foxes|ideas|theodolites|pinto beans|instructions|dependencies|excuses|platelets|asymptotes|courts|dolphins|multipliers|"
    "sauternes|warthogs|frets|dinos|attainments|somas|Tiresias|patterns|forges|braids|hockey players|frays|warhorses|dugouts|notornis|"
    "epitaphs|pearls|tithes|waters|orbits|gifts|sheaves|depths|sentiments|decoys|realms|pains|grouches|escapades|packages|requests|"
    "accounts|deposits",
    "V": "sleep|wake|are|cajole|haggle|nag|use|boost|affix|detect|integrate|maintain|nod|was|lose|sublate|solve|thrash|promise|engage|"
    "hinder|print|x-ray|breach|eat|grow|impress|mold|poach|serve|run|dazzle|snooze|doze|unwind|kindle|play|hang|believe|doubt",
    "J": "furious|sly|careful|blithe|quick|fluffy|slow|quiet|ruthless|thin|close|dogged|daring|brave|stealthy|permanent|enticing|idle|"
    "busy|regular|final|ironic|even|bold|silent|special|pending|express|unusual",
    "D": "sometimes|always|never|furiously|slyly|carefully|blithely|quickly|fluffily|slowly|quietly|ruthlessly|thinly|closely|doggedly|"
    "daringly|bravely|stealthily|permanently|enticingly|idly|busily|regularly|finally|ironically|evenly|boldly|silently",
    "P": "about|above|according to|across|after|against|along|alongside of|among|around|at|atop|before|behind|beneath|beside|besides|"
    "between|beyond|by|despite|during|except|for|from|in place of|inside|instead of|into|near|of|on|outside|over|past|since|through|"
    "throughout|to|toward|under|until|up|upon|without|with|within",
    "X": "do|may|might|shall|will|would|can|could|should|ought to|must|will have to|shall have to|could have to|should have to|"
    "must have to|need to|try to",
    "T": ".|;|:|?|!|--",
    "noun": "N|J N|J J N|D J N",
    "verb": "V|X V|V D|X V D",
    "place": "P the noun",
    "sentence": "noun verb T|noun verb place T|noun verb noun T|noun place verb noun T|noun place verb place T",
}


def prose_text(n):
    out, state = [], [0]

    def write(symbol):
        if symbol not in GRAMMAR:
            out.append(" " + symbol)
            return
        choices = GRAMMAR[symbol].split("|")
        state[0] = state[0] + GAMMA & MASK
        choice = choices[take(mix(state[0]), len(choices))[0]]
        if symbol == "T":
            out.append(choice)
        elif symbol in ("noun", "verb", "place", "sentence"):
            for part in choice.split(" "):
                write(part)
        else:
            out.append(" " + choice)

    for _ in range(n // 8):  # a sentence has more than 8 letters
        write("sentence")
    return "".join(out)[:n].encode()


TEXT = prose_text(PLACES + 1000)


def prose(shortest, longest):
    def draw(start, row):
        more, x = take(word(start, row, 1, 0), longest - shortest + 1)
        place, n = take(x, PLACES)[0], shortest + more
        while TEXT[place] == 32 or TEXT[place + n - 1] == 32:
            place += 1
        return TEXT[place : place + n]

    return draw


def day(y, m, d):
    return datetime.date(y, m, d).toordinal() - datetime.date(1970, 1, 1).toordinal()


DAY = 86_400_000_000
SECOND = 1_000_000
HOUR = 3600 * SECOND
NOON = day(2026, 1, 1) * DAY + 12 * HOUR

COLUMNS = [
    ("hour", lambda _, i: day(2026, 1, 1) * DAY + i // 8),
    ("site", lambda _, i: 1 + i % 8),
    ("id", lambda _, i: 10 + 3 * i),
    ("ticket", lambda _, i: f"TK-{7 + 13 * i:016}/é".encode()),
    ("code", lambda _, i: f"{i // 2 % 1000:03}".encode()),
    ("day", lambda _, i: day(2020, 2, 28) + i // 86400 % 3653 * 2),
    ("items", uniform(-5, 12)),
    ("wide", uniform(-(2**63), 2**63 - 1)),
    ("total", uniform(-150, 2_000_000, 25)),
    ("born", uniform(day(1950, 1, 1), day(2004, 12, 31))),
    ("seen", uniform(day(2025, 1, 1) * DAY, day(2026, 1, 1) * DAY - 1, SECOND // 2)),
    ("customer", zipf(1_070_000, 1, 10_000_000, True)),
    ("product", zipf(990_000, 100, 599)),
    ("hidden", zipf(2_000_000, 1, 100, True)),
    ("price", zipf(1, 0, 10**18 - 1)),
    ("region", chosen(weights(zipf_parts(4, 900_000)[1]), b"fra-1", b"fra-2", b"dub-1", b"iad-1")),
    ("delay", normal(3_250_000, 1_500_000, 0, 30)),
    ("weight", normal(72_500 * 10**6, 11_062_500_000, 30_000, 250_000)),
    ("noon", normal(NOON * 10**6, HOUR * 10**6, NOON - 6 * HOUR, NOON + 6 * HOUR)),
    ("status", chosen([70_000, 20_000, 8_500, 1_500], b"paid", b"shipped", b"open", b"cancelled")),
    ("grade", equal(1, 2, 3, 5, 8)),
    ("fee", chosen([25, 75], 50, 125)),
    ("flag", equal(b"\x00", b"\xff,")),
    ("quote", equal(b'say "no"', b"a, b", b"")),
    ("novel", equal(b"a value that is longer than forty-eight bytes, which are copied at once", b"short")),
    ("token", symbols(HEX, 32, 32)),
    ("name", symbols(ALNUM, 3, 21)),
    ("secret", symbols(ASCII, 9, 9)),
    ("note", prose(20, 300)),
    ("remark", prose(1, 40)),
    ("raw", symbols(PLAIN, 0, 24)),
    ("currency", lambda *_: b"EUR"),
    ("one", lambda *_: day(2026, 11, 27)),
]

def made(draw, name, seed, row):
    """A column that depends on others needs the seed."""
    if getattr(draw, "__code__", None) and draw.__code__.co_argcount == 3:
        return draw(start_of(seed, name), row, seed)
    return draw(start_of(seed, name), row)


def print_rows(columns, rows):
    """A column that is derived takes its name's stream, whatever the seed."""
    for seed in (0, 1, 42, MASK):
        for row in rows:
            values = [made(draw, name, seed, row) for name, draw in columns]
            print(seed, row, *("<nil>" if v is None else v.hex() if isinstance(v, bytes) else v for v in values), sep="\t")


if __name__ == "__main__":
    print_rows(
        COLUMNS, list(range(12)) + [86_399, 86_400, 1_999, 2_000, 3_652 * 86_400, 3_653 * 86_400, 10**12, 700_000_000_000_000]
    )
