#!/usr/bin/env python3
"""Makes rows of more.yaml, as everything.py does: python3 more.py > more.golden"""
import json
import struct

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



def stream(start, name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 & MASK
    return mix(start ^ h)


def share(percent):
    """Words below it; percent in 10^-9."""
    return (percent << 64) // 10**11


def happens(start, row, below):
    return word(start, row, 1, 0) < below


def nulls(percent, draw):
    below = share(int(percent * 10**9))
    return lambda start, row: None if happens(stream(start, "nulls"), row, below) else draw(start, row)


LN2 = 195_103_586_505_167  # times 2^48


def log2_of(x):
    beyond = max(x.bit_length() - 64, 0)
    return log2(x >> beyond) + (beyond << 48)


def lognormal(median, sigma, least, most, step=1):
    """median and sigma in millionths."""
    m, n = log2_of(median) - log2(10**6), (most - least) // step + 1
    parts, logs, first = [], [], 0
    while first < n:
        value = least + first * step
        width = (1 << (value.bit_length() - 1)) // 256
        size = min(width // step if width > step else 1, n - first)
        x = log2(2 * value + (size - 1) * step) - (1 << 48)
        d = (x - m) ** 2 * LN2 * 10**12 // (2 * sigma * sigma << 96)
        parts.append((first, size))
        logs.append(log2(size) - x - min(d, 1 << 60))
        first += size
    return Parts(least, step, parts, logs)


def bits32(draw, unit):
    return lambda start, row: int.from_bytes(struct.pack(">f", draw(start, row) / unit), "big")


def bits64(draw, unit):
    return lambda start, row: int.from_bytes(struct.pack(">d", draw(start, row) / unit), "big", signed=True)


def stepped(least, step, draw):
    return lambda start, row: least + step * draw(start, row)


def referred(rank, of):
    return lambda start, row: of(0, rank(start, row))


def distinct(n, draw):
    return lambda start, row: draw(stream(start, "distinct"), take(word(start, row, 1, 0), n)[0])


def after(other, name, least, most):
    def draw(start, row, seed):
        value = other(start_of(seed, name), row)
        return None if value is None else value + least + take(word(start, row, 1, 0), most - least + 1)[0]

    return draw


def binary(uuid):
    def draw(start, row):
        text = uuid(start, row)
        return bytes.fromhex(text.decode().replace("-", ""))

    return draw


def document(*fields):
    """Fields have a name, the share of rows without it, a generator and how its values are written."""

    def draw(start, row):
        out = []
        for name, absent, of, write in fields:
            own = stream(start, "json " + name)
            if absent and happens(stream(own, "absent"), row, share(absent * 10**9)):
                continue
            value = of(own, row)
            out.append(json.dumps(name) + ":" + ("null" if value is None else write(value)))
        return ("{" + ",".join(out) + "}").encode()

    return draw


def quote(value):
    return json.dumps(value.decode(), ensure_ascii=False)


def cents(value):
    return f"{value // 100}.{value % 100:02}"


def moment(value):
    at = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=value)
    return f'"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond:06}+00:00"'


def vector(dims, clusters, reach, normalised=False):
    """reach in 2^-14."""
    words = 1 + (dims + 3) // 4

    def draw(start, row):
        cluster = take(word(start, row, words, 0), clusters)[0]
        units = []
        for i in range(dims):
            center = take(word(stream(start, "centers"), cluster * dims + i, 1, 0), 2**15 + 1)[0] - 2**14
            part = word(start, row, words, 1 + i // 4) >> 16 * (i % 4) & 0xFFFF
            units.append(center + (part * (2 * reach + 1) >> 16) - reach)
        if normalised:
            scale = 2**53 // math.isqrt(sum(u * u for u in units) << 18)
            units = [u * scale + 2**29 >> 30 for u in units]
        return b"".join(struct.pack("<f", u / 2**14) for u in units)

    return draw


def array(least, most, of, write):
    def draw(start, row):
        length = least + take(word(start, row, 1, 0), most - least + 1)[0]
        out = b""
        for i in range(length):
            value = of(stream(start, "of"), row * most + i)
            out += struct.pack("<I", 2**32 - 1 if value is None else len(write(value)))
            out += b"" if value is None else write(value)
        return out

    return draw


CUSTOMERS = 100_000
EMAIL = nulls(10, distinct(300, symbols(ALNUM, 5, 60)))
OPENED = nulls(5, uniform(day(2025, 1, 1) * DAY, day(2025, 12, 31) * DAY, SECOND))
PUBLIC = v4("public_id")


def closed(start, row, seed):
    if happens(stream(start, "nulls"), row, share(11_600_000_000)):
        return None
    return after(OPENED, "opened", HOUR, 30 * DAY)(start, row, seed)


def archived(start, row, seed):
    value = closed(start_of(seed, "closed"), row, seed)
    return None if value is None else value + DAY


MORE = [
    ("k", binary(v4("k"))),
    ("moment", v7("moment", day(2026, 3, 1) * DAY + 12 * HOUR, 250)),
    ("hidden", scatter(7, 1000)),
    ("wide", scatter(1, 1_000_003)),
    ("parent", hashed("parent", 1, 5000)),
    ("seen", hashed("seen", day(2026, 1, 1) * DAY, day(2026, 12, 31) * DAY, SECOND)),
    ("amount", lognormal(4_800_500_000, 900_000, 50, 2_000_000)),
    ("size", lognormal(10**12, 3_250_000, 1, 2**63 - 1, 3)),
    ("small", nulls(12.5, uniform(-32768, 32767))),
    ("ok", chosen([992, 8], 1, 0)),
    ("heat", nulls(0.5, bits32(Parts(-640, 1, *normal_parts(-640, 1, 2001, 344 * 10**6, 65_600_000)), 16))),
    ("rate", bits64(uniform(-16, 16), 16)),
    ("customer", stepped(10, 3, zipf(1_070_000, 0, CUSTOMERS - 1, True))),
    ("public", nulls(25, referred(uniform(0, CUSTOMERS - 1), binary(PUBLIC)))),
    ("ticket", referred(uniform(0, 499), lambda _, i: f"TK-{1 + i:06}".encode())),
    ("scattered", referred(uniform(0, 4999), scatter(1, 100))),
    ("email", EMAIL),
    ("rare", distinct(10**12, prose(3, 90))),
    ("opened", OPENED),
    ("closed", closed),
    ("archived", archived),
    ("again", lambda start, row, seed: EMAIL(start_of(seed, "email"), row)),
    ("state", equal(b"closed", b"open", b"waiting")),
    ("code", nulls(50, symbols(ALNUM, 2, 6))),
    (
        "payload",
        document(
            ("fw", 0, chosen([80, 20], b"4.1.2", b"4.0.9"), quote),
            ("rssi", 0, uniform(-95, -40), str),
            ("on", 0, nulls(20, equal("true", "false")), str),
            ("cost", 0, uniform(50, 999), cents),
            ("at", 0, uniform(day(2026, 1, 1) * DAY, day(2026, 1, 2) * DAY, 60 * SECOND), moment),
            ("who", 0, referred(uniform(0, 8), PUBLIC), quote),
            ("said", 0, equal(b'a "b"', b"c\\d", "\x07é".encode()), quote),
            ("note", 60, prose(10, 60), quote),
            (
                "more",
                0,
                document(
                    ("n", 0, chosen(weights(zipf_parts(3, 10**6)[1]), 1, 2, 3), str),
                    ("deep", 50, document(("x", 0, lambda *_: b"y", quote)), bytes.decode),
                ),
                bytes.decode,
            ),
        ),
    ),
    ("around", nulls(10, vector(6, 3, 204))),
    ("along", vector(9, 100, 1638, True)),
    ("tags", nulls(10, array(0, 3, nulls(20, symbols(ALNUM, 2, 9)), bytes))),
    ("counts", array(2, 2, uniform(-9, 9), lambda n: struct.pack("<i", n))),
]

if __name__ == "__main__":
    print_rows(MORE, list(range(40)) + [998, 999, 1000, 1001, 999_999, 1_000_000, 10**12, 10**15 - 1])
