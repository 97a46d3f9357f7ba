"""Uploads into stages."""

import http.client
import json
import os
import re
from urllib.parse import urlsplit

from engine import Session, StatementError


def upload(engine, stage, folder, parts):
    """Stores parts in a stage and gives their names."""
    if stage != "~" and not re.fullmatch(r"\w+", stage):
        raise StatementError(1006, f"{stage!r} is no name of a stage")
    internal = _folder(engine, stage)
    stored = []
    for part in parts:
        if not part.filename:
            raise StatementError(1006, "a part has no file name")
        path = "/".join(name for name in (folder.strip("/"), part.filename) if name)
        if not re.fullmatch(r"[\w.=@:+-]+(?:/[\w.=@:+-]+)*", path) or ".." in path.split("/"):
            raise StatementError(1006, f"{path!r} is no path of a file in a stage")
        if internal:
            target = os.path.join(internal, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.rename(part.path, target)
        else:
            _put(engine, f"@{stage}/{path}", part)
        stored.append(part.filename)
    return stored


def _folder(engine, stage):
    """Where the files of a stage of the engine's own lie; None for an external one."""
    root = os.path.join(engine.path, "data", "stage")
    if stage == "~":
        return os.path.join(root, "user", engine.user)
    found = engine.run(f"SELECT stage_type FROM system.stages WHERE name = '{stage}'", Session()).page(0, 1)
    if not found:
        raise StatementError(2501, f"Unknown stage {stage}")
    return os.path.join(root, "internal", stage) if found[0][0] == "Internal" else None


def _put(engine, location, part):
    """Puts a file to an external stage, by a URL that the engine signs."""
    method, headers, url = engine.run(f"PRESIGN UPLOAD {location}", Session()).page(0, 1)[0]
    to = urlsplit(url)
    kind = http.client.HTTPSConnection if to.scheme == "https" else http.client.HTTPConnection
    connection = kind(to.netloc, timeout=600)
    try:
        with open(part.path, "rb") as file:
            connection.request(method, f"{to.path}?{to.query}", file, json.loads(headers) | {"Content-Length": str(part.size)})
            answer = connection.getresponse()
            if answer.status // 100 != 2:
                raise StatementError(3901, f"the store answered with status {answer.status}")
    finally:
        connection.close()
