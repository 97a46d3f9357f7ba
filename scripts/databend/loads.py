"""The two loads that are no plain SQL, as the COPY INTO that the engine runs in their place: one statement, so that a
load is all or nothing."""

import re

from engine import StatementError, quoted

_NAME = r"(?:`[^`]+`|\"[^\"]+\"|[A-Za-z_][A-Za-z0-9_$]*)"
_STRING = r"'(?:[^'\\]|\\.|'')*'"
_INSERT = rf"""\s*INSERT\s+(?:/\*\+(?P<hint>.*?)\*/\s*)?(?P<overwrite>OVERWRITE\s+)?INTO\s+(?:TABLE\s+)?
    (?P<table>{_NAME}(?:\s*\.\s*{_NAME}){{0,2}})\s*
    (?:\((?P<columns>\s*{_NAME}(?:\s*,\s*{_NAME})*\s*)\))?\s*"""
_FLAGS = re.IGNORECASE | re.DOTALL | re.VERBOSE

# What /v1/streaming_load takes, and nothing else.
_STREAMED = re.compile(_INSERT + rf"""(?:VALUES\s*(?:\((?P<tuple>.*)\)\s*)?)?
    FROM\s+@_databend_load\s+FILE_FORMAT\s*=\s*\((?P<format>(?:{_STRING}|[^'()])*)\)\s*;?\s*""", _FLAGS)
# What a stage attachment goes with.
_ATTACHED = re.compile(_INSERT + r"VALUES\s*(?:\((?P<tuple>.*)\)\s*)?;?\s*", _FLAGS)

_LABEL = re.compile(r"set_var\s*\(\s*deduplicate_label\s*=\s*'([^']*)'", re.IGNORECASE)
# The statements that obey a deduplicate label. COPY INTO @stage unloads.
_LABELLED = re.compile(r"\s*(?:/\*.*?\*/\s*)*(?:(?:INSERT|REPLACE|UPDATE|DELETE|MERGE)\b|COPY\s+(?:/\*.*?\*/\s*)?INTO\s+(?![@'\s]))",
                       re.IGNORECASE | re.DOTALL)


def labelled(sql):
    """Whether a statement obeys a label."""
    return bool(_LABELLED.match(sql))


def hinted_label(sql):
    """The label in a statement's hint."""
    hint = re.match(r"\s*\w+\s+/\*\+(.*?)\*/", sql, re.DOTALL)
    found = hint and _LABEL.search(hint[1])
    return found[1] if found else ""


class Streamed:
    """The statement of a streaming load."""

    def __init__(self, sql):
        said = _STREAMED.fullmatch(sql)
        if not said:
            raise StatementError(1005, "X-Databend-SQL must be INSERT INTO <table> [(<columns>)] [VALUES [(...)]] "
                                 "FROM @_databend_load FILE_FORMAT = (...)")
        _refuse_overwrite(said)
        kind = re.search(r"\btype\s*=\s*'?(\w+)", said["format"], re.IGNORECASE)
        if kind and kind[1].upper() not in ("CSV", "TSV", "TEXT", "NDJSON", "PARQUET"):
            raise StatementError(1006, f"Unsupported file format for streaming load: {kind[1]}")
        self._said = said

    def copy(self, folder):
        """COPY INTO from all files of a folder of this machine. FORCE: their names mean nothing."""
        said = self._said
        return _copy(said, quoted(f"fs://{folder}/"), f"FILE_FORMAT = ({said['format']})") + " FORCE = TRUE"


def attached(sql, attachment):
    """The COPY INTO for an INSERT with a stage attachment. The server forces these, so no file's name is too well known."""
    said = _ATTACHED.fullmatch(sql)
    if not said:
        raise StatementError(1005, "this front end attaches files to INSERT INTO <table> [(<columns>)] VALUES [(...)] only")
    _refuse_overwrite(said)
    location = attachment.get("location") or ""
    if not location.startswith("@"):
        raise StatementError(1006, f"the location of an attachment begins with @, this is {location!r}")
    options = {k.lower(): str(v) for k, v in (attachment.get("file_format_options") or {"type": "CSV"}).items()}
    if options.get("type", "CSV").upper() == "CSV" and options.get("empty_field_as", "null").upper() == "NULL":
        options["empty_field_as"] = "FIELD_DEFAULT"
    text = _copy(said, quoted(location), f"FILE_FORMAT = ({', '.join(_option(k, v) for k, v in options.items())})")
    purge = {k.lower(): str(v).lower() for k, v in (attachment.get("copy_options") or {}).items()}.get("purge") == "true"
    return f"{text} FORCE = TRUE PURGE = {str(purge).upper()}"


def _refuse_overwrite(said):
    if said["overwrite"]:
        raise StatementError(1006, "this front end runs no INSERT OVERWRITE from files: COPY INTO cannot stand for it")


def _copy(said, source, file_format):
    hint = f"/*+ {said['hint']} */ " if said["hint"] else ""
    columns = f" ({said['columns']})" if said["columns"] else ""
    if said["tuple"] is not None:
        source = f"(SELECT {_numbered(said['tuple'])} FROM {source})"
    return f"COPY {hint}INTO {said['table']}{columns} FROM {source} {file_format}"


def _numbered(text):
    """A VALUES tuple with $1, $2 … for its question marks, which stand for a file's fields in their order."""
    count = 0

    def one(found):
        nonlocal count
        if found[0] != "?":
            return found[0]
        count += 1
        return f"${count}"

    return re.sub(_STRING + r"|\?", one, text)


def _option(key, value):
    """An option of JSON, where all are strings, as SQL, where some are words, numbers or truth values."""
    if not re.fullmatch(r"[a-z_]+", key):
        raise StatementError(1006, f"{key!r} is no file format option")
    bare = key in ("type", "empty_field_as", "quoted_empty_field_as", "binary_format", "null_field_as", "missing_field_as")
    if bare and re.fullmatch(r"\w+", value) or value.lower() in ("true", "false") or key == "skip_header" and value.isdecimal():
        return f"{key} = {value}"
    return f"{key} = {quoted(value)}"
