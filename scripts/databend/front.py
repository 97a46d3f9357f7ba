#!/usr/bin/env python3
"""An HTTP front end over the real Databend engine, for tests: the wheel `databend` has the engine and no HTTP handlers.

    front.py --datadir=DIR --port=PORT

DIR is the engine's own, empty at the start: its catalogue does not outlive the process. What the handlers do was read
in the server's source (src/query/service/src/servers/http/v1, 43b24ec0); the statements are the engine's. Different from
a server, because the engine cannot do it: a statement that is running cannot be stopped (a kill is answered, and
system.processes goes on showing the query until it ends); transactions do not outlive a request; deduplicate labels
are kept here. CREATE OR REPLACE and DROP free no disk: about 0.7 GB for a million rows of `people` until a restart.
"""

import argparse
import base64
import binascii
import json
import os
import re
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import forms
import loads
import stages
from engine import Engine, Result, Session, StatementError
from queries import Labels, Processes, Query, Running


class Refused(Exception):
    """An answer with another status than 200."""

    def __init__(self, status, message, code=None):
        super().__init__(message)
        self.status, self.code = status, code or status


class Front:
    """What all requests share."""

    def __init__(self, datadir):
        self.datadir = datadir
        self.engine = Engine(datadir)
        self.processes = Processes(self.engine.user)
        self.labels = Labels()
        self.slots = threading.BoundedSemaphore(self.engine.running)
        self._queries, self._lock = {}, threading.Lock()

    def run(self, sql, running, label):
        """Runs a statement. Loads and other writes take a slot and obey the label."""
        session = running.session
        if not loads.labelled(sql):
            if self.processes.kill(sql):
                return Result([], None, 0, session)
            return self.engine.run(self.processes.substitute(sql), session)
        label = loads.hinted_label(sql) or label or session.settings.get("deduplicate_label", "")
        with self.slot(running):
            return self.write(sql, running, label)

    def write(self, sql, running, label):
        """Runs a statement that writes, in a slot, unless its label is taken."""
        if self.labels.taken(label):
            return Result([], None, 0, running.session)
        if running.killed.is_set():
            raise StatementError(1043, "query is killed")
        running.in_engine = True
        result = self.engine.run(sql, running.session)
        self.labels.write(label)
        return result

    def slot(self, running):
        """Waits for one of max_running_queries, or for a kill."""
        while not self.slots.acquire(timeout=0.1):
            if running.killed.is_set():
                raise StatementError(1043, "query is killed")
        return _Held(self.slots)

    def start(self, query_id, make):
        """The query of the id, made if there is none."""
        with self._lock:
            for old in [q.id for q in self._queries.values() if q.stale()]:
                del self._queries[old]
            if query_id not in self._queries:
                self._queries[query_id] = make()
            return self._queries[query_id]

    def query(self, query_id):
        found = self._queries.get(query_id)
        if found is None:
            raise Refused(404, f"query id {query_id} not found")
        return found


class _Held:
    def __init__(self, slots):
        self._slots = slots

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._slots.release()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    front: Front

    def do_GET(self):
        self._serve()

    do_POST = do_PUT = do_GET

    def _serve(self):
        self.body = forms.Body(self.rfile, self.headers, self._ask)
        try:
            path = self.path.split("?")[0]
            if path == "/health":
                return self._answer(200, f"{self.front.datadir}\t{self.front.engine.version}", "text/plain")
            self._login()
            for method, pattern, serve in ROUTES:
                if (found := re.fullmatch(pattern, path)) and self.command in method:
                    return self._answer(200, serve(self, *found.groups()))
            raise Refused(404, f"no route {self.command} {path}")
        except Refused as e:
            self._refuse(e.status, e.code, str(e))
        except StatementError as e:
            self._refuse(400, 400, e.message)
        except (forms.Broken, ConnectionError):  # nobody is there to hear
            self.close_connection = True
        except Exception as e:
            traceback.print_exc()
            self._refuse(500, 500, f"front end: {type(e).__name__}: {e}")

    def handle_expect_100(self):
        """Nothing yet: the server's HTTP library asks for a body when the handler first reads it."""
        return True

    def _ask(self):
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()

    def _login(self):
        kind, _, text = self.headers.get("Authorization", "").partition(" ")
        try:
            user, _, password = base64.b64decode(text).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            user, password = "", ""
        if kind.lower() != "basic" or user != self.front.engine.user or password:
            raise Refused(401, f"AuthenticateFailure: the user is {self.front.engine.user}, without a password", 5100)

    def _refuse(self, status, code, message):
        self._answer(status, {"error": {"code": code, "message": message}})

    def _answer(self, status, said, content_type="application/json"):
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        data = text.encode()
        early = not self.body.done()
        try:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("X-DATABEND-VERSION", self.front.engine.version)
            if early:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:  # nobody is there to hear it
            self.close_connection = True
            return
        if early:
            self._linger()

    def _linger(self, patience=2.0):
        """The client may still be sending; closing at once would reset the connection under the answer it has not read."""
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_WR)
            end = time.monotonic() + patience
            while (left := end - time.monotonic()) > 0:
                self.connection.settimeout(left)
                if not self.connection.recv(1 << 16):
                    return
        except OSError:
            pass

    def log_message(self, *_):
        """Statements may hold secrets, and nobody reads a log of successes."""

    def _json(self):
        try:
            sent = json.loads(self.body.all() or b"{}")
        except ValueError as e:
            raise Refused(400, f"the body is no JSON: {e}") from None
        if not isinstance(sent, dict):
            raise Refused(400, "the body is no JSON object")
        return sent

    def _query_id(self):
        sent = self.headers.get("X-DATABEND-QUERY-ID", "")
        if not re.fullmatch(r"[\w.-]*", sent):
            raise Refused(400, "invalid query id")
        return sent or str(uuid.uuid4())

    # The routes.

    def login(self):
        self._json()
        return {"version": self.front.engine.version, "session_id": str(uuid.uuid4())}

    def logout(self):
        self._json()
        return {}

    def heartbeat(self):
        self._json()
        return {"queries_to_remove": []}

    def post_query(self):
        sent = self._json()
        sql = sent.get("sql")
        if not isinstance(sql, str) or not sql.strip():
            raise Refused(400, "sql is missing")
        session = Session.of(sent.get("session"))
        pagination = sent.get("pagination") or {}
        query_id = self._query_id()
        query = self.front.start(query_id, lambda: Query(
            self.front, query_id, sql, session, sent.get("stage_attachment"),
            self.headers.get("X-DATABEND-DEDUPLICATE-LABEL", ""), pagination.get("max_rows_per_page") or 10_000))
        return query.page(0, pagination.get("wait_time_secs") or 10)

    def page(self, query_id, number):
        found = self.front.query(query_id).page(int(number), 10)
        if found is None:
            raise Refused(404, f"page {number} of query {query_id} is gone or has not come yet")
        return found

    def final(self, query_id):
        self.body.all()
        return self.front.query(query_id).final()

    def kill(self, query_id):
        self.body.all()
        query = self.front.query(query_id)
        query.running.killed.set()
        going_on = query.running.in_engine and not query.done.is_set()
        return {"id": query_id, "killed": not going_on, "still_running": going_on}

    def upload_to_stage(self):
        stage = self.headers.get("x-databend-stage-name") or self.headers.get("stage_name") or ""
        folder = self.headers.get("x-databend-relative-path") or self.headers.get("relative_path") or ""
        return {"id": str(uuid.uuid4()), "stage_name": stage, "state": "SUCCESS",
                "files": stages.upload(self.front.engine, stage, folder, self._parts())}

    def _parts(self):
        """The files of the form, spooled one by one. The server reads a form that breaks off as one that is over."""
        return forms.spool(self.body, self.headers.get("Content-Type", ""), self.front.datadir)

    def streaming_load(self):
        sql = self.headers.get("X-Databend-SQL", "")
        if not sql or not sql.isascii() or not sql.isprintable():
            raise Refused(400, "Missing or unreadable header X-Databend-SQL")
        try:
            session = Session.of(json.loads(self.headers.get("X-Databend-Query-Context") or "{}"))
        except ValueError:
            raise Refused(400, "X-Databend-Query-Context is no JSON") from None
        statement = loads.Streamed(sql)
        label = (loads.hinted_label(sql) or self.headers.get("X-DATABEND-DEDUPLICATE-LABEL", "")
                 or session.settings.get("deduplicate_label", ""))
        running = Running(self._query_id(), session, sql)
        self.front.processes.add(running)
        try:
            with self.front.slot(running):  # before the body is read
                return self._load(statement, running, label)
        except StatementError as e:
            message = f"Query execution failed: {e.message}" if e.planned else e.message
            raise Refused(500 if e.code == 1001 else 400, message) from None
        finally:
            self.front.processes.remove(running)

    def _load(self, statement, running, label):
        answer = {"id": running.query_id, "stats": {"rows": 0, "bytes": 0}}
        if self.front.labels.taken(label):
            return answer  # the body is not read
        folder = os.path.join(self.front.datadir, "spool", uuid.uuid4().hex)
        os.makedirs(folder)
        try:
            for number, part in enumerate(self._parts()):
                if part.name != "upload" or not part.filename:
                    raise Refused(400, "a streaming load takes parts that are named 'upload' and have a file name")
                os.rename(part.path, os.path.join(folder, f"{number:04}"))
                answer["stats"]["bytes"] += part.size
                if running.killed.is_set():
                    raise StatementError(1043, "query is killed", planned=True)
            if not os.listdir(folder):
                raise Refused(400, "the form has no part 'upload'")
            answer["stats"]["rows"] = self.front.write(statement.copy(folder), running, label).written
            return answer
        finally:
            shutil.rmtree(folder, ignore_errors=True)


ROUTES = [
    (("POST",), r"/v1/session/login", Handler.login),
    (("POST",), r"/v1/session/logout", Handler.logout),
    (("POST",), r"/v1/session/heartbeat", Handler.heartbeat),
    (("POST",), r"/v1/query", Handler.post_query),
    (("GET",), r"/v1/query/([\w.-]+)/page/(\d+)", Handler.page),
    (("GET", "POST"), r"/v1/query/([\w.-]+)/final", Handler.final),
    (("GET", "POST"), r"/v1/query/([\w.-]+)/kill", Handler.kill),
    (("PUT",), r"/v1/upload_to_stage", Handler.upload_to_stage),
    (("PUT",), r"/v1/streaming_load", Handler.streaming_load),
]


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--datadir", required=True)
    arguments.add_argument("--port", type=int, required=True)
    said = arguments.parse_args()
    datadir = os.path.realpath(said.datadir)
    os.chdir(datadir)
    Handler.front = Front(datadir)
    server = Server(("127.0.0.1", said.port), Handler)
    for number in (signal.SIGINT, signal.SIGTERM):
        # The engine's threads know no end of the interpreter; nothing of theirs outlives the process anyway.
        signal.signal(number, lambda *_: os._exit(0))
    print(f"front: engine {Handler.front.engine.version} on 127.0.0.1:{said.port}", file=sys.stderr)
    server.serve_forever()


if __name__ == "__main__":
    main()
