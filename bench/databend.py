"""Databend's own client, databend-driver: databend.py DSN TABLE FOLDER WORKERS. It loads the folder's files by streaming
load and prints the seconds and the CPU seconds that this took, its start left out, and the rows."""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from databend_driver import BlockingDatabendClient

dsn, table, folder, workers = sys.argv[1:]
client = BlockingDatabendClient(dsn)


def load(files):
    connection = client.get_conn()
    insert = f"INSERT INTO {table} (document_id, payload) VALUES"
    return sum(connection.load_file(insert, os.path.join(folder, name), "streaming").write_rows for name in files)


files = sorted(os.listdir(folder))
with ThreadPoolExecutor(int(workers)) as pool:
    began, spent = time.monotonic(), time.process_time()
    rows = sum(pool.map(load, [files[i :: int(workers)] for i in range(int(workers))]))
print(json.dumps({"seconds": time.monotonic() - began, "cpu": time.process_time() - spent, "rows": rows}))
