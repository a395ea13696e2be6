# SPDX-License-Identifier: Apache-2.0
"""A cache directory that many processes share, used from Python through `diskcache serve`.

    from diskcache_client import DiskCache

    with DiskCache("/var/cache/thumbs") as cache:
        thumb = cache.get("user:1/thumb")
        if thumb is None:
            thumb = render()
            cache.put("user:1/thumb", thumb, ttl="7d", tags=["user:1"])

Needs only Python 3.8 and the command `diskcache`. Keys are text, values are bytes. Each object starts one process and
talks to it over a socket (ServeProtocol.md describes the protocol). Several threads may share an object; their calls
take turns. After os.fork(), the child must create its own object.
"""
import itertools
import json
import os
import select
import socket
import subprocess
import threading

__all__ = ["DiskCache", "DiskCacheError", "Disconnected"]

# The longest line that the server accepts, in bytes.
LONGEST_LINE = 1 << 20
# The most bytes that one read returns. Shorter values are sent together with their request.
PIECE = 1 << 16
# The terms that `touch` accepts, and those that `put` accepts.
LIFETIME = frozenset(("ttl", "expiresAt", "renew"))
TERMS = LIFETIME | {"staleFor", "tags", "etag", "lastModified", "contentType", "metadata", "ifAbsent"}
# The number of requests that are sent before the first answer is read, so that the server is never idle.
AHEAD = 64


class DiskCacheError(Exception):
    """A request failed. `code` is a word for programs, such as "noSpace"."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Disconnected(DiskCacheError):
    """The server has exited, or its answers can't be parsed. The object can't be used any more.

    Requests without an answer may or may not have been carried out.
    """

    def __init__(self, message):
        super().__init__("disconnected", message)


class DiskCache:
    """A cache directory. Calls raise DiskCacheError; a missing or expired value is not an error."""

    def __init__(self, directory=None, command="diskcache", options=()):
        """Starts the server.

        directory: created if it is missing; None for the command's default, such as $DISKCACHE_DIR.
        command: the path of `diskcache`, or its name in $PATH.
        options: options of `diskcache serve`, such as ["--memory", "256M"].
        """
        place = [] if directory is None else ["--dir", os.fspath(directory)]
        # A socket, because `shutdown` also ends the connection in forked children that still have it open. With pipes,
        # the server would run until the last of them has exited.
        self._socket, theirs = socket.socketpair()
        # Whatever socket.setdefaulttimeout says.
        self._socket.settimeout(None)
        theirs.settimeout(None)
        with theirs:
            # In a session of its own, so that Ctrl-C in a terminal does not reach the server.
            self._process = subprocess.Popen(
                [command, *place, "serve", *options], stdin=theirs, stdout=theirs, start_new_session=True
            )
        self._received = bytearray()
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._failure = None
        try:
            hello, _ = self._request({"op": "hello"})
        except DiskCacheError:
            self.close()
            raise
        self.path = hello["path"]
        self.protocol = hello["protocol"]

    # One key

    def get(self, key, default=None, *, stale=False):
        """Returns the value of a key, or `default` if there is none.

        stale: whether to return an expired value within its stale period, too.
        """
        answer, value = self._request({"op": "get", "key": key, **_given(stale=stale or None)})
        return value if answer["found"] else default

    def put(self, key, value, **terms):
        """Stores a value. When this returns, all processes see the value, even if the server is killed afterward.

        terms: ttl and staleFor (seconds, or text like "15m"), expiresAt, renew, etag, lastModified, contentType, tags,
        metadata; ifAbsent=True stores the value only if the key has none yet.

        Returns whether the value was stored.
        """
        return self._request({"op": "put", "key": key, **_terms(terms, TERMS)}, value)[0]["stored"]

    def remove(self, key):
        """Removes a value; returns whether there was one."""
        return self._request({"op": "remove", "key": key})[0]["removed"] > 0

    def __contains__(self, key):
        return self._request({"op": "has", "key": key})[0]["found"]

    def entry(self, key):
        """Returns the metadata of a key's value as a dictionary, or None if there is no value."""
        return self._request({"op": "entry", "key": key})[0].get("entry")

    def touch(self, key, **terms):
        """Counts as an access, or changes the expiration (ttl, expiresAt, renew). Returns whether there is a value."""
        return self._request({"op": "touch", "key": key, **_terms(terms, LIFETIME)})[0]["found"]

    # Files, for values that are too large for memory

    def get_to_file(self, key, path):
        """Copies a value to a file, which is replaced atomically. Returns whether there was a value."""
        return self._request({"op": "get", "key": key, "file": os.path.abspath(path)})[0]["found"]

    def put_file(self, key, path, **terms):
        """Stores the contents of a file."""
        self._request({"op": "put", "key": key, "file": os.path.abspath(path), **_terms(terms, TERMS)})

    # Many keys: the server works on one request while the next is being sent

    def get_many(self, keys):
        """Returns a dictionary of the keys that have values, with their values."""
        batches = list(_batches(keys))
        found = {}
        for batch, answers in zip(batches, self._exchange({"op": "get", "keys": batch} for batch in batches)):
            # One answer for each key, and a summary, which `zip` leaves out.
            for key, (answer, value) in zip(batch, answers):
                if answer["found"]:
                    found[key] = value
        return found

    def put_many(self, values, **terms):
        """Stores the values of a dictionary, all with the same terms.

        If one of them can't be stored, the others are stored anyway, and then the error is raised.
        """
        terms = _terms(terms, TERMS)
        requests = ({"op": "put", "key": key, **terms} for key in values)
        self._exchange(requests, values.values())

    def remove_many(self, keys):
        """Removes the values of keys. Returns the number of removed values."""
        answers = self._exchange({"op": "remove", "keys": batch} for batch in _batches(keys))
        return sum(answer["removed"] for [(answer, _)] in answers)

    # The whole cache

    def remove_all(self, tag=None, prefix=None):
        """Removes the values with a tag, or of the keys with a prefix. Without either, removes all values."""
        self._request({"op": "removeAll", **(_given(tag=tag, prefix=prefix) or {"all": True})})

    def stats(self, scan=False):
        """Returns the counters of all processes, as `diskcache stats --json` does; with `scan`, also the contents."""
        return self._request({"op": "stats", **_given(scan=scan or None)})[0]

    def close(self):
        """Ends the server. Everything that was put is already stored. Does nothing in a forked child."""
        if self._owner != os.getpid():
            return
        with self._lock:
            self._failure = self._failure or Disconnected("the cache was closed")
            if self._socket.fileno() >= 0:
                # In both directions, so that the server does not wait for its answers to be read.
                self._socket.shutdown(socket.SHUT_RDWR)
                self._socket.close()
            self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # The protocol

    def _request(self, fields, value=None):
        """Returns the answer to one request, and the bytes that follow it."""
        values = () if value is None else (value,)
        [[result]] = self._exchange([fields], values)
        return result

    def _exchange(self, requests, values=()):
        """Sends the requests, the first of them with these values. Returns a list of answers for each request.

        If some answers are errors, raises the first of these after all answers have arrived.
        """
        # All are encoded before the first is sent, so that one that can't be encoded sends nothing.
        waiting = [_encoded(fields, value) for fields, value in itertools.zip_longest(requests, values)]
        if self._owner != os.getpid():
            raise Disconnected("the cache was opened before this process was forked: open it again")
        results, errors = [], []
        with self._lock:
            if self._failure is not None:
                raise self._failure
            try:
                for number, (line, value) in enumerate(waiting):
                    self._send(line, value)
                    if number + 1 >= AHEAD:
                        results.append(self._answers(errors))
                while len(results) < len(waiting):
                    results.append(self._answers(errors))
            except BaseException as error:
                # After an interrupt, half a request may have been sent, or half an answer read.
                self._failure = self._failure or Disconnected(f"interrupted ({error!r}): open the cache again")
                raise
        if errors:
            raise errors[0]
        return results

    def _send(self, line, value):
        if value is not None and len(value) < PIECE:
            line, value = line + value, None
        self._write(memoryview(line))
        if value is not None:
            self._write(value)

    def _write(self, rest):
        while rest:
            try:
                rest = rest[self._socket.send(rest, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                # The server reads no more requests until its answers are read.
                poll = select.poll()
                poll.register(self._socket, select.POLLIN | select.POLLOUT)
                if any(events & select.POLLIN for _, events in poll.poll()):
                    self._receive()
            except OSError as error:
                raise self._lost(f"the server accepts no more requests: {error}") from error

    def _answers(self, errors):
        """Returns the answers to one request."""
        answers = []
        while True:
            answer = json.loads(self._line())
            error = answer.get("error")
            if error is not None:
                if error.get("fatal"):
                    raise self._lost(error["message"])
                errors.append(DiskCacheError(error["code"], error["message"]))
            answers.append((answer, self._take(answer.get("length", 0))))
            if not answer.get("more"):
                return answers

    def _line(self):
        searched = 0
        while True:
            end = self._received.find(b"\n", searched)
            if end >= 0:
                return self._take(end + 1)
            searched = len(self._received)
            self._receive()

    def _take(self, count):
        while len(self._received) < count:
            self._receive()
        with memoryview(self._received) as received:
            taken = bytes(received[:count])
        del self._received[:count]
        return taken

    def _receive(self):
        try:
            piece = self._socket.recv(PIECE)
        except ConnectionError:
            # The server was killed before it had read all requests.
            piece = b""
        if not piece:
            raise self._lost("the server has exited; see its standard error for the reason")
        self._received += piece

    def _lost(self, reason):
        self._failure = Disconnected(reason)
        return self._failure


def _encoded(fields, value):
    """Returns the line of a request, and its value as bytes."""
    if value is not None:
        value = memoryview(value).cast("B")
        fields = {**fields, "length": len(value)}
    # A string that is not valid Unicode, as from some file names, raises an error here.
    line = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    if len(line) > LONGEST_LINE:
        raise ValueError(f"the request is too long: {len(line)} bytes, the limit is {LONGEST_LINE}")
    return line, value


def _given(**fields):
    return {name: value for name, value in fields.items() if value is not None}


def _terms(terms, names):
    """Returns the fields for these terms. A wrong name is an error here, because the server ignores unknown fields."""
    for name in terms:
        if name not in names:
            raise TypeError(f"unknown term '{name}': the terms are {', '.join(sorted(names))}")
    return _given(**terms)


def _batches(keys):
    """Yields lists of keys. The request for a list is at most about half as long as a line can be."""
    batch, size = [], 0
    for key in keys:
        # A character takes at most six bytes in JSON, quotes and comma three.
        length = len(key) * 6 + 3
        if batch and size + length > LONGEST_LINE // 2:
            yield batch
            batch, size = [], 0
        batch.append(key)
        size += length
    if batch:
        yield batch
