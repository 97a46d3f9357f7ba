"""The engine of the wheel, used a statement at a time."""

import re
from dataclasses import dataclass, field

import databend

import values


class StatementError(Exception):
    """What the engine says instead of a result. planned: the statement was understood and had begun to run."""

    def __init__(self, code, message, planned=False):
        super().__init__(message)
        self.code, self.message, self.planned = code, message, planned


@dataclass
class Session:
    """A client's session. It lives with the client, which sends it along with every request."""

    database: str = "default"
    role: str = ""
    settings: dict = field(default_factory=dict)

    @classmethod
    def of(cls, sent):
        """Reads the session object of a request."""
        sent = sent or {}
        if sent.get("txn_state") not in (None, "", "AutoCommit"):
            raise StatementError(1006, "this front end keeps no transactions open between requests")
        settings = {str(k): str(v) for k, v in (sent.get("settings") or {}).items()}
        return cls(sent.get("database") or "default", sent.get("role") or "", settings)

    def answer(self):
        """The session object of an answer."""
        said = {"database": self.database, "settings": self.settings, "txn_state": "AutoCommit"}
        return said | {"role": self.role} if self.role else said


@dataclass
class Result:
    """What a statement gave: columns as (name, type), an Arrow table, and how many rows it wrote."""

    columns: list
    table: object
    written: int
    session: Session
    affect: dict | None = None

    @property
    def rows(self):
        return self.table.num_rows if self.table is not None else 0

    def page(self, first, count):
        if not self.columns or self.table is None:
            return []
        types = [kind for _, kind in self.columns]
        return values.rows(self.table.slice(first, count), types, self.session.settings.get("timezone", "UTC"))


class Engine:
    """The engine. Several threads may use it: it runs statements outside Python's lock."""

    def __init__(self, path):
        self.path = path
        warm = databend.SessionContext(data_path=path)  # the first starts it; the others share its catalogue
        row = warm.sql("SELECT version(), currentUser(), (SELECT value FROM system.configs WHERE `group` = 'query' AND "
                       "name = 'max_running_queries')").fetchone()
        self.version = re.search(r"v(\d+\.\d+\.\d+)", row[0])[1]
        self.user = re.match(r"'(.*)'@", row[1])[1]
        self.running = int(row[2])

    def run(self, sql, session):
        """Runs one statement in a session of its own, and reads its result whole."""
        if re.match(r"\s*(BEGIN|START\s+TRANSACTION)\b", sql, re.IGNORECASE):
            raise StatementError(1006, "this front end keeps no transactions open between requests")
        context = databend.SessionContext(data_path=self.path)
        for statement in _opening(session):
            _collect(context, statement)
        columns, table = _collect(context, sql)
        after, affect = session, None
        if changed := re.match(r"\s*(?:UN)?(SET|USE)\b", sql, re.IGNORECASE):
            after = _session(context, session)
            affect = _affect(changed[1].upper(), session, after)
        return Result(columns, table, _written(columns, table), after, affect)


def quoted(text):
    """A string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def name(text):
    """A quoted identifier."""
    return "`" + text.replace("`", "``") + "`"


def _opening(session):
    if session.role and session.role != "account_admin":
        yield f"SET ROLE {quoted(session.role)}"
    if session.database != "default":
        yield f"USE {name(session.database)}"
    for key, value in session.settings.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
            raise StatementError(2801, f"Unknown variable: {quoted(key)}")
        yield f"SET {key} = {quoted(value)}"


def _collect(context, sql):
    planned = False
    try:
        relation = context.sql(sql)
        planned = True
        described = relation.schema()
        count = str(described).count("DataField {")
        types = values.type_names(described, count)
        table = relation.to_arrow_table()
        return list(zip(table.schema.names, types)), table
    except values.Unprintable as e:
        raise StatementError(1006, str(e)) from None
    except BaseException as e:  # Rust's panics come as PanicException, which is no Exception
        raise _error(e, planned) from None


def _error(error, planned):
    text = re.split(r"\n\n(?:   0: |<Backtrace disabled)", str(error))[0]  # with and without RUST_BACKTRACE
    panic = type(error).__name__ == "PanicException"
    if panic:
        text += " (the engine panicked: the statement may have taken effect)"
    if found := re.search(r"\w+\. Code: (\d+), Text = (.*)", text, re.DOTALL):
        return StatementError(1001 if panic else int(found[1]), found[2].strip().removesuffix("."), planned)
    return StatementError(1001, text, planned)


def _written(columns, table):
    names = [column for column, _ in columns]
    for i, column in enumerate(names):
        if column.startswith("number of rows ") or column == "Rows_loaded" and names[0] == "File":
            return sum(table.column(i).to_pylist())
    return 0  # also of REPLACE and of CREATE TABLE … AS, whose rows the wheel does not tell


def _session(context, before):
    """The session after a statement that changed it."""
    _, database = _collect(context, "SELECT currentDatabase()")
    _, changed = _collect(context, "SELECT name, value FROM system.settings WHERE level = 'SESSION'")
    settings = dict(zip(*(column.to_pylist() for column in changed.columns)))
    # The engine takes the label's setting, and neither lists it nor obeys it.
    _, label = _collect(context, "SELECT value FROM system.settings WHERE name = 'deduplicate_label'")
    if label.num_rows and label.column(0)[0].as_py():
        settings["deduplicate_label"] = label.column(0)[0].as_py()
    return Session(database.column(0)[0].as_py(), before.role, settings)


def _affect(verb, before, after):
    if verb == "USE":
        return {"type": "UseDB", "name": after.database}
    keys = [k for k, v in after.settings.items() if before.settings.get(k) != v]
    return {"type": "ChangeSettings", "keys": keys, "values": [after.settings[k] for k in keys],
            "is_globals": [False] * len(keys)}
