# SPDX-License-Identifier: Apache-2.0
"""A cache directory that many processes share, used from Python through `diskcache serve`.

    from diskcache_client import DiskCache

    with DiskCache("/var/cache/thumbs") as cache:
        thumb = cache.get("user:1/thumb")
        if thumb is None:
            thumb = render()
            cache.put("user:1/thumb", thumb, ttl="7d", tags=["user:1"])

Needs Python 3.8 and the command `diskcache`, nothing else. Keys are text, values are bytes. An object starts one
process, which it talks to over two pipes (ServeProtocol.md describes the protocol). Any number of threads may use it,
one after the other. After os.fork() the child makes an object of its own.
"""
import itertools
import json
import os
import select
import subprocess
import threading

__all__ = ["DiskCache", "DiskCacheError", "Disconnected"]

# Bytes of a line, of which the server takes no more.
LONGEST_LINE = 1 << 20
# What a pipe holds, mostly: no read gives more.
PIECE = 1 << 16
# What can be said about how long a value is valid, and about a value that is stored.
LIFETIME = frozenset(("ttl", "expiresAt", "renew"))
TERMS = LIFETIME | {"staleFor", "tags", "etag", "lastModified", "contentType", "metadata", "ifAbsent"}
# Requests that are sent before an answer is awaited: the server is never idle, and little waits in memory.
AHEAD = 64


class DiskCacheError(Exception):
    """What the cache could not do. `code` is a word for programs, such as "noSpace"."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Disconnected(DiskCacheError):
    """The server has ended, or can't be understood: this object is of no use any more.

    Requests without an answer may have been done or not.
    """

    def __init__(self, message):
        super().__init__("disconnected", message)


class DiskCache:
    """A cache directory. Calls raise DiskCacheError; what is not there, or not any more, is no error."""

    def __init__(self, directory=None, command="diskcache", options=()):
        """Starts the server.

        directory: None for the command's own choice, $DISKCACHE_DIR for instance; made where it is missing.
        command: the path of `diskcache`, or its name in $PATH.
        options: of `diskcache serve`, such as ["--memory", "256M"].
        """
        place = [] if directory is None else ["--dir", os.fspath(directory)]
        self._process = subprocess.Popen(
            [command, *place, "serve", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._to = self._process.stdin.fileno()
        self._from = self._process.stdout.fileno()
        # So that it can read answers where the server takes no more requests before somebody does.
        os.set_blocking(self._to, False)
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
        """The value of a key, or `default` where there is none.

        stale: whether one that has expired will do, if it was stored with a stale period.
        """
        answer, value = self._request({"op": "get", "key": key, **_given(stale=stale or None)})
        return value if answer["found"] else default

    def put(self, key, value, **terms):
        """Stores a value. Once this returns, every process gets it; it stays if this one or the server is killed.

        terms: ttl and staleFor (seconds, or text like "15m"), expiresAt, renew, etag, lastModified, contentType, tags,
        metadata; ifAbsent=True stores only where there is no value yet.

        Returns whether it was stored.
        """
        return self._request({"op": "put", "key": key, **_terms(terms, TERMS)}, value)[0]["stored"]

    def remove(self, key):
        """Removes a value; returns whether there was one."""
        return self._request({"op": "remove", "key": key})[0]["removed"] > 0

    def __contains__(self, key):
        return self._request({"op": "has", "key": key})[0]["found"]

    def entry(self, key):
        """What is known about a key, as a dictionary; None where it has no value."""
        return self._request({"op": "entry", "key": key})[0].get("entry")

    def touch(self, key, **terms):
        """Counts as an access, or changes the expiration with ttl, expiresAt, renew; returns whether there is a value."""
        return self._request({"op": "touch", "key": key, **_terms(terms, LIFETIME)})[0]["found"]

    # Files, for values that are too long for memory

    def get_to_file(self, key, path):
        """Copies a value to a file, which is replaced in one step; returns whether there was one."""
        return self._request({"op": "get", "key": key, "file": os.path.abspath(path)})[0]["found"]

    def put_file(self, key, path, **terms):
        """Stores the contents of a file."""
        self._request({"op": "put", "key": key, "file": os.path.abspath(path), **_terms(terms, TERMS)})

    # Many keys: the server works on one while the next is on its way

    def get_many(self, keys):
        """The values of those of the keys that have one, in a dictionary."""
        batches = list(_batches(keys))
        found = {}
        for batch, answers in zip(batches, self._exchange({"op": "get", "keys": batch} for batch in batches)):
            # One for each key, and one that sums up.
            for key, (answer, value) in zip(batch, answers):
                if answer["found"]:
                    found[key] = value
        return found

    def put_many(self, values, **terms):
        """Stores the values of a dictionary, with the same terms for all.

        Where one of them can't be stored, the others are all the same.
        """
        terms = _terms(terms, TERMS)
        requests = ({"op": "put", "key": key, **terms} for key in values)
        self._exchange(requests, values.values())

    def remove_many(self, keys):
        """Removes the values of keys; returns how many there were."""
        answers = self._exchange({"op": "remove", "keys": batch} for batch in _batches(keys))
        return sum(answer["removed"] for [(answer, _)] in answers)

    # All of it

    def remove_all(self, tag=None, prefix=None):
        """Removes what has a tag, or the keys that begin with a prefix; without either everything."""
        self._request({"op": "removeAll", **(_given(tag=tag, prefix=prefix) or {"all": True})})

    def stats(self, scan=False):
        """What all processes have counted, as `diskcache stats --json`; with `scan` also what is there."""
        return self._request({"op": "stats", **_given(scan=scan or None)})[0]

    def close(self):
        """Ends the server. What was put is stored already."""
        if self._owner != os.getpid():
            return
        with self._lock:
            self._failure = self._failure or Disconnected("the cache was closed")
            # Both, so that it does not wait for somebody to read its answers.
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # The protocol

    def _request(self, fields, value=None):
        """The answer to one request, and the bytes that came with it."""
        values = () if value is None else (value,)
        [[result]] = self._exchange([fields], values)
        return result

    def _exchange(self, requests, values=()):
        """Sends requests, the first of them with these values; returns a list of answers for each.

        Raises the first error that was an answer, once all answers have come.
        """
        # All of them before the first is sent: what can't be sent does not leave the others halfway.
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
                # An interrupt, too, may have left half a request or half an answer.
                self._failure = self._failure or Disconnected(f"a call was cut short ({error!r}): open the cache again")
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
                rest = rest[os.write(self._to, rest) :]
            except BlockingIOError:
                # The server reads on once its answers are read.
                poll = select.poll()
                poll.register(self._to, select.POLLOUT)
                poll.register(self._from, select.POLLIN)
                if any(number == self._from for number, _ in poll.poll()):
                    self._receive()
            except OSError as error:
                raise self._lost(f"the server takes no requests any more: {error}") from error

    def _answers(self, errors):
        """The answers to one request."""
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
        piece = os.read(self._from, PIECE)
        if not piece:
            raise self._lost("the server has ended; it may have said why on standard error")
        self._received += piece

    def _lost(self, reason):
        self._failure = Disconnected(reason)
        return self._failure


def _encoded(fields, value):
    """The line of a request, and its value as bytes."""
    if value is not None:
        value = memoryview(value).cast("B")
        fields = {**fields, "length": len(value)}
    # A text that is no UTF-8, as of some file names, is refused here.
    line = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    if len(line) > LONGEST_LINE:
        raise ValueError(f"the request takes {len(line)} bytes, more than {LONGEST_LINE}")
    return line, value


def _given(**fields):
    return {name: value for name, value in fields.items() if value is not None}


def _terms(terms, names):
    """The fields for these terms. The server ignores a field that it does not know, so a wrong name is refused here."""
    for name in terms:
        if name not in names:
            raise TypeError(f"there is no term '{name}': the terms are {', '.join(sorted(names))}")
    return _given(**terms)


def _batches(keys):
    """Lists of keys, each of which fits into a line with room to spare."""
    batch, size = [], 0
    for key in keys:
        # No character takes more than six bytes in JSON; quotes and a comma.
        length = len(key) * 6 + 3
        if batch and size + length > LONGEST_LINE // 2:
            yield batch
            batch, size = [], 0
        batch.append(key)
        size += length
    if batch:
        yield batch
