"""How Databend names types, and how it writes values in the answers of /v1/query: as strings, NULL as null."""

import re

import numpy
import pyarrow as pa
import pyarrow.compute as pc

# The wheel tells a result's types in the form that Rust prints structures in for programmers.
_FIELD = re.compile(r"DataField \{ name: \".*?\", default_expr: .*?, data_type: (.*?), computed_expr: ", re.DOTALL)


class Unprintable(Exception):
    """A type that is not written here."""


def type_names(schema, count):
    """Databend's names of the types of a result's columns."""
    found = _FIELD.findall(str(schema))
    if len(found) != count:
        raise Unprintable(f"{len(found)} types are legible in {schema}, the result has {count} columns")
    return [_name(text) for text in found]


def _name(text):
    if wrapped := re.fullmatch(r"Nullable\((.*)\)", text):
        return f"Nullable({_name(wrapped[1])})"
    if number := re.fullmatch(r"Number\((\w+)\)", text):
        return number[1]
    if decimal := re.fullmatch(r"Decimal\(DecimalSize \{ precision: (\d+), scale: (\d+) \}\)", text):
        return f"Decimal({decimal[1]}, {decimal[2]})"
    if text == "Null":
        return "NULL"
    if text in ("String", "Boolean", "Date", "Timestamp", "Variant", "Binary"):
        return text
    # Arrays above all: the wheel hangs when it hands out large ones, so the statement is not run at all.
    raise Unprintable(f"this front end hands out no values of type {text}; cast them to VARCHAR")


def rows(table, types, zone):
    """The rows of a table, every value a string or None. Timestamps are written in the session's time zone."""
    columns = [_strings(table.column(i), types[i], zone) for i in range(table.num_columns)]
    return [list(row) for row in zip(*columns)]


def _strings(column, type_name, zone):
    plain = type_name.removeprefix("Nullable(").removesuffix(")")
    if plain == "Boolean":
        return [None if v is None else "1" if v else "0" for v in column.to_pylist()]
    if plain == "Binary":
        return [None if v is None else v.hex().upper() for v in column.to_pylist()]
    if plain == "Variant":
        return [None if v is None else _json(v) for v in column.to_pylist()]
    if plain in ("Float32", "Float64"):
        kind = numpy.float32 if plain == "Float32" else numpy.float64
        return [None if v is None else _float(kind(v)) for v in column.to_pylist()]
    if plain == "Timestamp":
        utc = column.cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC"))
        column = pc.local_timestamp(utc.cast(pa.timestamp("us", tz=zone)))
    return column.cast(pa.string()).to_pylist()


def _float(value):
    if not numpy.isfinite(value):
        return "NaN" if numpy.isnan(value) else "inf" if value > 0 else "-inf"
    return numpy.format_float_positional(value, trim="-")


# VARIANT comes as JSONB: https://github.com/databendlabs/jsonb. Big endian: a container's head (kind, length), an entry
# of four bytes for each key and value (kind, length), then what these stand for, one after the other.
_ARRAY, _OBJECT, _SCALAR = 0x80000000, 0x40000000, 0x20000000


def _json(data):
    return _container(data, 0)


def _container(data, at):
    head = int.from_bytes(data[at : at + 4], "big")
    kind, length = head & 0xE0000000, head & 0x1FFFFFFF
    count = {_ARRAY: length, _OBJECT: 2 * length, _SCALAR: 1}[kind]
    at += 4
    end, texts = at + 4 * count, []
    for entry in range(at, at + 4 * count, 4):
        word = int.from_bytes(data[entry : entry + 4], "big")
        size = word & 0x0FFFFFFF
        texts.append(_scalar(word >> 28, data, end, size))
        end += size
    if kind == _SCALAR:
        return texts[0]
    if kind == _ARRAY:
        return "[" + ",".join(texts) + "]"
    return "{" + ",".join(f"{k}:{v}" for k, v in zip(texts[:length], texts[length:])) + "}"


def _scalar(kind, data, at, size):
    raw = data[at : at + size]
    if kind == 0:
        return "null"
    if kind == 1:
        return _quoted(raw.decode())
    if kind == 2 and raw[0] & 0xF0 in (0x00, 0x40, 0x50):
        return str(int.from_bytes(raw[1:], "big", signed=raw[0] & 0xF0 == 0x40))
    if kind == 2 and raw[0] == 0x60:
        return _float(numpy.frombuffer(raw[1:], ">f8")[0])
    if kind in (3, 4):
        return "false" if kind == 3 else "true"
    if kind == 5:
        return _container(data, at)
    raise Unprintable(f"this front end does not know kind {kind} of JSONB; cast the value to VARCHAR")


def _quoted(text):
    escaped = re.sub(r'["\\]', r"\\\g<0>", text)
    return '"' + re.sub(r"[\x00-\x1f]", lambda m: f"\\u{ord(m[0]):04x}", escaped) + '"'
