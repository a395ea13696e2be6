# SPDX-License-Identifier: Apache-2.0
"""Tests of the client, with the command in $DISKCACHE, or else the `diskcache` in $PATH:

    DISKCACHE=.build/debug/diskcache python3 Examples/python/test_diskcache_client.py
"""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from diskcache_client import DiskCache, DiskCacheError, Disconnected

COMMAND = os.environ.get("DISKCACHE", "diskcache")


class Case(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(dir=os.environ.get("DISKCACHE_TEST_DIR"))
        self.addCleanup(place.cleanup)
        self.place = place.name
        self.directory = os.path.join(self.place, "cache")
        self.cache = self.open()

    def open(self, *options):
        cache = DiskCache(self.directory, COMMAND, options)
        self.addCleanup(cache.close)
        return cache

    def command(self, *words, **more):
        return subprocess.run([COMMAND, "--dir", self.directory, *words], stdout=subprocess.PIPE, **more)


class Values(Case):
    def test_a_get_returns_the_bytes_of_the_put(self):
        for length in (0, 1, 4096, 65_535, 65_536, 1_000_003):
            value = os.urandom(length)
            self.assertTrue(self.cache.put("k", value))
            self.assertEqual(self.cache.get("k"), value)

    def test_a_miss_is_the_default(self):
        self.assertIsNone(self.cache.get("k"))
        self.assertEqual(self.cache.get("k", b"none"), b"none")
        self.assertNotIn("k", self.cache)

    def test_any_text_is_a_key(self):
        keys = ["a b", "é", "e\u0301", "\0", "\n", '"\\', "\u2028", "\U0001f600", "k" * 100_000]
        self.cache.put_many({key: key.encode() for key in keys})
        for key in keys:
            self.assertEqual(self.cache.get(key), key.encode())

    def test_a_request_that_can_not_be_encoded_changes_nothing(self):
        with self.assertRaises(UnicodeEncodeError):
            self.cache.put("\udc80", b"")
        with self.assertRaises(ValueError):
            self.cache.put("k" * 2_000_000, b"")
        with self.assertRaises(TypeError):
            self.cache.put("k", "text")
        self.assertTrue(self.cache.put("k", b"still there"))

    def test_the_client_and_other_processes_see_the_values_of_each_other(self):
        self.cache.put("k", b"from Python")
        self.assertEqual(self.command("get", "k").stdout, b"from Python")
        self.command("put", "k", input=b"from a shell")
        self.assertEqual(self.cache.get("k"), b"from a shell")

    def test_the_terms_of_a_value_are_stored(self):
        self.cache.put("k", b"v", ttl=60, staleFor="1h", tags=["a", "b"], metadata={"x": "y"}, etag='"e"')
        entry = self.cache.entry("k")
        self.assertEqual(entry["size"], 1)
        self.assertEqual(entry["tags"], ["a", "b"])
        self.assertEqual(entry["metadata"], {"x": "y"})
        self.assertEqual(entry["etag"], '"e"')
        self.assertIn("staleUntil", entry)
        self.assertIsNone(self.cache.entry("other"))

    def test_a_misspelt_term_is_an_error_and_nothing_is_stored(self):
        for call in (
            lambda: self.cache.put("k", b"v", tll=60),
            lambda: self.cache.put_many({"k": b"v"}, tag="t"),
            lambda: self.cache.put_file("k", __file__, stale=60),
            lambda: self.cache.touch("k", staleFor=60),
        ):
            with self.assertRaises(TypeError):
                call()
        self.assertNotIn("k", self.cache)

    def test_an_expired_value_is_a_miss_unless_stale_values_are_accepted(self):
        self.cache.put("k", b"v", ttl=0, staleFor=3600)
        self.assertIsNone(self.cache.get("k"))
        self.assertEqual(self.cache.get("k", stale=True), b"v")

    def test_put_if_absent(self):
        self.assertTrue(self.cache.put("k", b"1", ifAbsent=True))
        self.assertFalse(self.cache.put("k", b"2", ifAbsent=True))
        self.assertEqual(self.cache.get("k"), b"1")

    def test_touch_changes_the_expiration(self):
        self.cache.put("k", b"v")
        self.assertTrue(self.cache.touch("k", ttl="1h"))
        self.assertIn("expires", self.cache.entry("k"))
        self.assertFalse(self.cache.touch("other"))

    def test_removals(self):
        self.cache.put_many({key: b"v" for key in "abcd"}, tags=["t"])
        self.cache.put("e", b"v")
        self.assertTrue(self.cache.remove("a"))
        self.assertFalse(self.cache.remove("a"))
        self.assertEqual(self.cache.remove_many(["a", "b", "c"]), 2)
        self.cache.remove_all(tag="t")
        self.assertNotIn("d", self.cache)
        self.assertIn("e", self.cache)
        self.cache.put("other", b"v")
        self.cache.remove_all(prefix="o")
        self.assertNotIn("other", self.cache)
        with self.assertRaises(DiskCacheError):
            self.cache.remove_all(prefix="")
        with self.assertRaises(DiskCacheError):
            self.cache.remove_all(tag="t", prefix="e")
        self.assertIn("e", self.cache)
        self.cache.remove_all()
        self.assertNotIn("e", self.cache)

    def test_files(self):
        source, target = os.path.join(self.place, "in"), os.path.join(self.place, "out")
        with open(source, "wb") as file:
            file.write(b"file")
        self.cache.put_file("k", source)
        self.assertTrue(self.cache.get_to_file("k", target))
        with open(target, "rb") as file:
            self.assertEqual(file.read(), b"file")
        self.assertFalse(self.cache.get_to_file("other", target))


class Many(Case):
    def test_many_values_in_both_directions_at_once(self):
        # More than the socket's buffers hold: a client that only sent would wait forever.
        values = {f"key {number}": os.urandom(number * 37) for number in range(500)}
        self.cache.put_many(values)
        self.assertEqual(self.cache.get_many(list(values) + ["other"]), values)

    def test_more_keys_than_fit_into_a_line(self):
        keys = [f"{number:04}" + "k" * 1000 for number in range(1200)]
        self.cache.put_many({key: key[:4].encode() for key in keys[::2]})
        found = self.cache.get_many(keys)
        self.assertEqual(found, {key: key[:4].encode() for key in keys[::2]})
        self.assertEqual(self.cache.remove_many(keys), 600)

    def test_no_keys(self):
        self.assertEqual(self.cache.get_many([]), {})
        self.assertEqual(self.cache.remove_many([]), 0)

    def test_threads_share_an_object(self):
        wrong = []

        def work(number):
            for turn in range(50):
                value = f"{number} {turn}".encode()
                self.cache.put(f"key {number}", value)
                if self.cache.get(f"key {number}") != value:
                    wrong.append(value)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Failures(Case):
    def test_an_error_has_a_code_and_the_cache_stays_usable(self):
        for call in (lambda: self.cache.get(""), lambda: self.cache.put("k", b"", ttl=-1)):
            with self.assertRaises(DiskCacheError) as caught:
                call()
            self.assertEqual(caught.exception.code, "badRequest")
        with self.assertRaises(DiskCacheError):
            self.cache.get_many(["a", ""])
        self.assertTrue(self.cache.put("k", b"v"))

    def test_if_one_of_many_values_can_not_be_stored_the_others_are(self):
        small = self.open("--max-value", "10")
        with self.assertRaises(DiskCacheError):
            small.put_many({"a": b"1", "b": b"x" * 100_000, "c": b"3"})
        self.assertEqual(small.get_many("abc"), {"a": b"1", "c": b"3"})

    def test_values_are_stored_although_the_server_is_killed(self):
        self.cache.put("k", b"v")
        self.cache._process.send_signal(signal.SIGKILL)
        with self.assertRaises(Disconnected):
            while True:
                self.cache.get("k")
        with self.assertRaises(Disconnected):
            self.cache.get("k")
        self.assertEqual(self.open().get("k"), b"v")

    def test_a_file_in_place_of_the_directory_is_an_error(self):
        with open(os.path.join(self.place, "file"), "wb"):
            pass
        with self.assertRaises(Disconnected):
            DiskCache(os.path.join(self.place, "file"), COMMAND)

    def test_a_forked_child_can_not_use_the_connection_of_its_parent(self):
        child = os.fork()
        if child == 0:
            try:
                self.cache.get("k")
                os._exit(0)
            except Disconnected:
                os._exit(42)
            finally:
                os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 42)
        self.assertTrue(self.cache.put("k", b"v"))

    def test_closing_does_not_wait_for_a_forked_child(self):
        end, keep = os.pipe()
        child = os.fork()
        if child == 0:
            # Has the connection open until the parent has closed the cache, or has died.
            os.close(keep)
            os.read(end, 1)
            os._exit(0)
        # Without it, a failure would wait forever.
        signal.alarm(60)
        self.cache.close()
        signal.alarm(0)
        self.assertEqual(self.cache._process.returncode, 0)
        os.close(end)
        os.close(keep)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_an_interrupt_from_the_terminal_does_not_reach_the_server(self):
        program = """
import signal, sys
from diskcache_client import DiskCache
with DiskCache(sys.argv[1], sys.argv[2]) as cache:
    cache.put("k", b"v")
    try:
        print("ready", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        # Each of these fails if the server has received the signal.
        for turn in range(1000):
            assert cache.get("k") == b"v"
"""
        words = [sys.executable, "-c", program, self.directory, COMMAND]
        here = os.path.dirname(os.path.abspath(__file__))
        with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True, cwd=here) as process:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            # A terminal sends the signal to all processes of the group.
            os.killpg(process.pid, signal.SIGINT)
            self.assertEqual(process.wait(), 0)

    def test_a_default_timeout_of_sockets_does_not_apply(self):
        self.addCleanup(socket.setdefaulttimeout, socket.getdefaulttimeout())
        socket.setdefaulttimeout(0.001)
        cache = self.open()
        values = {f"key {number}": os.urandom(10_000) for number in range(500)}
        cache.put_many(values)
        self.assertEqual(cache.get_many(values), values)
        cache.stats(scan=True)

    def test_closing_ends_the_server(self):
        self.cache.close()
        self.assertEqual(self.cache._process.returncode, 0)
        with self.assertRaises(Disconnected):
            self.cache.get("k")
        self.cache.close()


def rates(rounds=5):
    """Returns gets of 4 KiB per second: a process for each, a request for each, many at once. Best of some rounds."""
    best = {"processes": 0.0, "requests": 0.0, "batches": 0.0}
    with tempfile.TemporaryDirectory(dir=os.environ.get("DISKCACHE_TEST_DIR")) as place:
        keys = [f"key {number}" for number in range(500)]
        with DiskCache(place + "/cache", COMMAND) as cache:
            cache.put_many({key: os.urandom(4096) for key in keys})

            def measure(name, count, body):
                start = time.perf_counter()
                body()
                best[name] = max(best[name], count / (time.perf_counter() - start))

            def processes():
                for key in keys[:10]:
                    words = [COMMAND, "--dir", place + "/cache", "get", key]
                    assert len(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout) == 4096

            def requests():
                for key in keys:
                    assert len(cache.get(key)) == 4096

            def batches():
                assert len(cache.get_many(keys)) == 500

            for _ in range(rounds):
                measure("processes", 10, processes)
                measure("requests", 500, requests)
                measure("batches", 500, batches)
    return best


if __name__ == "__main__":
    if sys.argv[1:] == ["--rates"]:
        print(json.dumps(rates()))
    else:
        unittest.main()
