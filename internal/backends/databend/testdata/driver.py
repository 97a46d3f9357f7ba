"""Databend's own client, databend-driver, against a server: driver.py DSN TABLE FOLDER. The table has id BIGINT, s VARCHAR."""

import os
import sys

from databend_driver import BlockingDatabendClient, Error

dsn, table, folder = sys.argv[1:]
connection = BlockingDatabendClient(dsn).get_conn()
assert "1.2.895" in connection.version(), connection.version()
assert connection.exec(f"INSERT INTO {table} (id, s) VALUES (1, 'a')") == 1

path = os.path.join(folder, "rows.csv")
with open(path, "w") as file:
    file.write('2,b\n3,"c, ""d"""\n')
loaded = connection.load_file(f"INSERT INTO {table}(id, s) VALUES", path, "streaming")
assert loaded.write_rows == 2, loaded.write_rows
loaded = connection.stream_load(f"INSERT INTO {table}(id, s) VALUES", [["4", "e"]], "streaming")
assert loaded.write_rows == 1, loaded.write_rows

rows = [row.values() for row in connection.query_iter(f"SELECT id, id, s FROM {table} WHERE id IN (3)")]
assert [tuple(map(str, row)) for row in rows] == [("3", "3", 'c, "d"')], rows
try:
    connection.exec("SELECT nope FROM nowhere")
    raise SystemExit("an error inside a 200 went unseen")
except Error as error:
    assert "nope" in str(error) or "nowhere" in str(error), error
