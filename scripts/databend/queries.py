"""What is running, what has run lately, and the labels of what was committed."""

import re
import threading
import time
import uuid

from engine import StatementError, quoted
import loads

KEPT = 60  # seconds that a result is kept after somebody last asked for it, as the server does
LABEL_KEPT = 24 * 3600


class Labels:
    """Deduplicate labels, which the engine ignores. As on the server they are looked up before a statement runs and
    written when it commits, and nothing is held in between: of two that overlap, both commit."""

    def __init__(self):
        self._until = {}

    def taken(self, label):
        return bool(label) and self._until.get(label, 0) > time.time()

    def write(self, label):
        if label:
            self._until[label] = time.time() + LABEL_KEPT


class Running:
    """A statement at work, as a row of system.processes."""

    def __init__(self, query_id, session, sql):
        self.query_id, self.session_id, self.session, self.sql = query_id, str(uuid.uuid4()), session, sql
        self.began, self.killed = time.time(), threading.Event()
        self.in_engine = False  # the engine cannot be stopped

    def row(self, user):
        text = [self.session_id, "HTTPQuery", "127.0.0.1", user, "Query", self.session.database, self.sql]
        numbers = ["0::Int64"] + ["0::UInt64"] * 4 + ["NULL::UInt32 NULL", f"{int(time.time() - self.began)}::UInt64",
                                                      f"to_timestamp({int(self.began * 1e6)})"]
        return ", ".join(["'front'"] + [quoted(t) for t in text] + numbers + ["'running'", quoted(self.query_id)])


class Processes:
    """All statements at work, loads that still receive their rows among them."""

    columns = ("node, id, type, host, user, command, database, extra_info, memory_usage, data_read_bytes, "
               "data_write_bytes, scan_progress_read_rows, scan_progress_read_bytes, mysql_connection_id, time, "
               "created_time, status, current_query_id")
    # The engine has the table, and answers that its only node is offline (1035). So its content is put in its place,
    # and the engine runs the statement all the same.
    _asked = re.compile(r"(\s*SELECT\s[^;]*?\sFROM\s+)system\s*\.\s*processes\b((?:\s+WHERE\s.*)?\s*;?\s*)", re.IGNORECASE | re.DOTALL)
    _kill = re.compile(r"\s*KILL\s+(?:QUERY|CONNECTION)\s+'([^']*)'\s*;?\s*", re.IGNORECASE)

    def __init__(self, user):
        self._user, self._lock, self._all = user, threading.Lock(), {}

    def add(self, running):
        with self._lock:
            self._all[running.session_id] = running

    def remove(self, running):
        with self._lock:
            self._all.pop(running.session_id, None)

    def substitute(self, sql):
        """The statement with what is running in the place of system.processes."""
        asked = self._asked.fullmatch(sql)
        if not asked:
            return sql
        with self._lock:
            rows = ", ".join(f"({r.row(self._user)})" for r in self._all.values())
        return f"{asked[1]}(SELECT * FROM (VALUES {rows}) AS processes ({self.columns})){asked[2]}"

    def kill(self, sql):
        """Ends what KILL QUERY names, if the engine does not have it yet; else the engine may answer."""
        named = self._kill.fullmatch(sql)
        with self._lock:
            running = self._all.get(named[1]) if named else None
        if running is None or running.in_engine:
            return False
        running.killed.set()
        return True


class Query:
    """A statement of /v1/query, its result and its pages. The same id always means the same query."""

    def __init__(self, front, query_id, sql, session, attachment, label, page_rows):
        self.id, self.session, self.page_rows = query_id, session, max(page_rows, 1)
        self.running = Running(query_id, session, sql)
        self.result = self.error = None
        self.done, self.polled, self.finished = threading.Event(), time.time(), 0.0
        self._lock, self._pages, self._given = threading.Lock(), [], 0
        front.processes.add(self.running)
        threading.Thread(target=self._run, args=(front, sql, attachment, label), daemon=True).start()

    def _run(self, front, sql, attachment, label):
        try:
            text = loads.attached(sql, attachment) if attachment else sql
            self.result = front.run(text, self.running, label)
        except StatementError as e:
            self.error = e
        except Exception as e:  # ours, not the engine's: the client has to hear of it
            self.error = StatementError(1001, f"front end: {type(e).__name__}: {e}")
        finally:
            front.processes.remove(self.running)
            self.finished = time.time()
            self.done.set()

    def page(self, number, wait):
        """The answer with page number, or None: pages come one after the other, and the last can be had again, as can
        the first, which is what a request with the same id gets."""
        self.polled = time.time()
        with self._lock:
            if number == len(self._pages):
                self._pages.append(self._make(number, wait))
                if number > 1:
                    self._pages[number - 1] = None  # its rows are no longer needed
            return self._pages[number] if number < len(self._pages) else None

    def _make(self, number, wait):
        self.done.wait(wait)
        data, last = [], False
        if self.result is not None and self.error is None:
            try:
                data = self.result.page(self._given, self.page_rows)
            except Exception as e:
                self.error = StatementError(1006, f"front end: cannot write the result: {e}")
            self._given += len(data)
            last = self._given >= self.result.rows
        return self._answer(number, data, last)

    def _answer(self, number, data, last):
        killed = self.running.killed.is_set() and not self.done.is_set()
        error = self.error or (StatementError(1043, "query is killed; the engine cannot be stopped, and goes on as long "
                                              "as system.processes shows it") if killed else None)
        uri = f"/v1/query/{self.id}"
        done = self.result is not None or error is not None
        finished = self.finished or time.time()
        return {
            "id": self.id, "session_id": self.running.session_id, "node_id": "front",
            "state": "Failed" if error else "Succeeded" if done else "Running",
            "session": (self.result.session if self.result else self.session).answer(),
            "error": {"code": error.code, "message": error.message, "detail": ""} if error else None,
            "warnings": [], "settings": None, "result_timeout_secs": KEPT,
            "schema": [{"name": n, "type": t} for n, t in self.result.columns] if self.result and not error else [],
            "data": [] if error else data, "affect": self.result.affect if self.result else None,
            "stats": {
                "scan_progress": {"rows": 0, "bytes": 0},
                "write_progress": {"rows": self.result.written if self.result else 0, "bytes": 0},
                "result_progress": {"rows": self.result.rows if self.result else 0, "bytes": 0},
                "running_time_ms": (finished - self.running.began) * 1000,
            },
            "stats_uri": uri, "final_uri": f"{uri}/final", "kill_uri": f"{uri}/kill",
            "next_uri": f"{uri}/final" if error or done and last else f"{uri}/page/{number + 1}",
        }

    def final(self):
        """The answer to /final. What is kept is the first page, for a request with the same id."""
        with self._lock:
            answer = self._answer(0, [], True) | {"next_uri": None}
            self._pages = self._pages[:1]
            if self.result is not None:
                self.result.table = None
            return answer

    def stale(self):
        return self.done.is_set() and time.time() - self.polled > KEPT
