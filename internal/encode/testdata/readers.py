"""Reads a file as other programs do: readers.py pyarrow|duckdb parquet|csv|ndjson FILE COLUMNS

COLUMNS is a JSON object of names and DuckDB's types. Every row is printed as a JSON array of texts, nulls and arrays of
them, bytes as hexadecimal digits."""
import datetime
import json
import sys

reader, form, path, columns = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
SECOND = 1_000_000


def moment(micros):
    at = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros)
    return at.strftime("%Y-%m-%d %H:%M:%S.%f")


def text(value, kind):
    if value is None:
        return None
    if kind.endswith("[]"):
        return [text(v, kind.removesuffix("[]")) for v in value]
    if kind.startswith("TIMESTAMP"):
        return moment(value)
    if kind == "TIME":
        return value.strftime("%H:%M:%S.%f")
    if kind == "BOOLEAN":
        return str(value).lower()
    if kind == "BLOB":
        return value.hex()
    if kind.startswith("DECIMAL"):
        return format(value, "f")
    return str(value)


def pyarrow_rows():
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    for i, name in enumerate(columns):
        kind = table.schema.field(i).type
        if pa.types.is_timestamp(kind):
            table = table.set_column(i, name, table.column(i).cast(pa.int64()))
        if pa.types.is_list(kind) and pa.types.is_timestamp(kind.value_type):
            table = table.set_column(i, name, table.column(i).cast(pa.list_(pa.int64())))
    return zip(*(column.to_pylist() for column in table.columns))


def duckdb_rows():
    import duckdb

    fields = "{" + ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items()) + "}"
    source = {
        "parquet": f"read_parquet('{path}')",
        "csv": f"read_csv('{path}', header=false, auto_detect=false, delim=',', quote='\"', escape='\"', nullstr='\\N', "
        f"allow_quoted_nulls=false, new_line='\\n', columns={fields})",
        "ndjson": f"read_json('{path}', format='newline_delimited', columns={fields})",
    }[form]
    shown = ", ".join(in_micros(name, kind) for name, kind in columns.items())
    return duckdb.sql(f"SELECT {shown} FROM {source}").fetchall()


def in_micros(name, kind):
    if not kind.startswith("TIMESTAMP"):
        return name
    if kind.endswith("[]"):
        return f"list_transform({name}, lambda x: epoch_us(x))"
    return f"epoch_us({name})"


for row in {"pyarrow": pyarrow_rows, "duckdb": duckdb_rows}[reader]():
    print(json.dumps([text(v, kind) for v, kind in zip(row, columns.values())]))
