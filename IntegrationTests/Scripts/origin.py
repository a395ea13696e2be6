#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server for the tests of `fetch`, `push` and `pull`: origin.py PORT LOG

It writes its port to the pipe PORT and a line for each request to the file LOG: method, path, If-None-Match. Below
/store/ it keeps what is put there, as the HTTP caches of build systems do.
"""
import http.server
import sys

STORE = {}
PAGES = {
    "/fresh": (200, [("Cache-Control", "max-age=3600"), ("ETag", '"1"')], b"fresh\n"),
    "/dated": (200, [("Cache-Control", "max-age=3600"), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")], b"dated\n"),
    "/other": (200, [("Cache-Control", "max-age=3600"), ("ETag", '"2"')], b"other\n"),
    "/stale": (200, [("Cache-Control", "max-age=0"), ("ETag", '"1"')], b"stale\n"),
    "/large": (200, [("Cache-Control", "max-age=3600")], b"0123456789abcdef" * 65536),
    "/missing": (404, [("Cache-Control", "no-store")], b"there is no such thing\n"),
    "/forbidden": (403, [("Cache-Control", "no-store")], b"no\n"),
    "/broken": (500, [("Cache-Control", "no-store")], b"oops\n"),
    "/busy": (503, [("Cache-Control", "no-store"), ("Retry-After", "86400")], b"later\n"),
}


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle_one(self):
        with open(sys.argv[2], "a", encoding="utf-8") as log:
            log.write(f"{self.command} {self.path} {self.headers.get('If-None-Match', '-')}\n")
        path = self.path.split("?")[0]
        if path.startswith("/store/"):
            return self.keep(path)
        if path == "/echo":
            return self.answer(200, [("Cache-Control", "max-age=60")], self.headers.get("X-Test", "").encode())
        status, fields, body = PAGES.get(path, PAGES["/missing"])
        tag = dict(fields).get("ETag")
        if tag and self.headers.get("If-None-Match") == tag:
            return self.answer(304, fields, b"")
        return self.answer(status, fields, body)

    def keep(self, path):
        if self.command == "PUT":
            STORE[path] = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            return self.answer(201, [], b"")
        if self.command == "DELETE":
            return self.answer(204 if STORE.pop(path, None) is not None else 404, [], b"")
        body = STORE.get(path)
        return self.answer(404, [], b"") if body is None else self.answer(200, [], body)

    def answer(self, status, fields, body):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_DELETE = handle_one


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
with open(sys.argv[1], "w", encoding="utf-8") as pipe:
    pipe.write(f"{server.server_address[1]}\n")
server.serve_forever()
