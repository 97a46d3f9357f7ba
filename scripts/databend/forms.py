"""Bodies and multipart forms, read in pieces."""

import os
import uuid
from dataclasses import dataclass

import multipart

PIECE = 1 << 20


class Broken(Exception):
    """The connection ended before the body did."""


class Body:
    """The body of a request, of a known length or in chunks. ask is called before the first read."""

    def __init__(self, source, headers, ask):
        self._source = source
        self._ask = ask
        self._chunked = "chunked" in headers.get("Transfer-Encoding", "").lower()
        self._left = 0 if self._chunked else int(headers.get("Content-Length") or 0)
        self._ended = not self._chunked and self._left == 0

    def done(self):
        """Whether all of it was read, so that the connection can serve another request."""
        return self._ended

    def read(self):
        """The next piece; b"" at the end."""
        if self._ended:
            return b""
        if self._ask:
            self._ask()
            self._ask = None
        if self._chunked and self._left == 0:
            self._left = self._size()
            if self._left == 0:
                while self._line():  # trailers
                    pass
                self._ended = True
                return b""
        piece = self._source.read(min(self._left, PIECE))
        if not piece:
            raise Broken
        self._left -= len(piece)
        if self._left == 0 and self._chunked:
            self._line()
        self._ended = self._left == 0 and not self._chunked
        return piece

    def _size(self):
        try:
            return int(self._line().split(b";")[0], 16)
        except ValueError:
            raise Broken from None

    def _line(self):
        line = self._source.readline(1024)
        if not line.endswith(b"\n"):
            raise Broken
        return line.strip()

    def all(self):
        """The whole body, for what is short."""
        pieces = []
        while piece := self.read():
            pieces.append(piece)
        return b"".join(pieces)


@dataclass
class Part:
    """One file of a form, spooled."""

    name: str
    filename: str
    path: str
    size: int


def spool(body, content_type, datadir):
    """Yields the parts of a form one after the other, each in a file that the caller moves away; left ones are removed.

    A form or a connection that breaks off is one that is over, as the server takes it: its source hands what comes from
    the connection to the statement until there is no more, and does not ask why (43b24ec0, streaming_load.rs).
    """
    _, options = multipart.parse_options_header(content_type)
    parser = multipart.PushMultipartParser(options.get("boundary") or "none")
    folder = os.path.join(datadir, "spool")
    os.makedirs(folder, exist_ok=True)
    part = file = None
    try:
        for event in _events(parser, body):
            if isinstance(event, multipart.MultipartSegment):
                part = Part(event.name, event.filename or "", os.path.join(folder, uuid.uuid4().hex), 0)
                file = open(part.path, "wb", buffering=0)
            elif event:
                file.write(event)
                part.size += len(event)
            else:
                file.close()
                yield part
                part = _remove(part)
        if part:
            file.close()
            yield part
    finally:
        if file:
            file.close()
        _remove(part)


def _events(parser, body):
    try:
        while piece := body.read():
            yield from parser.parse(piece)
    except (multipart.MultipartError, Broken):
        return


def _remove(part):
    if part and os.path.exists(part.path):
        os.remove(part.path)
