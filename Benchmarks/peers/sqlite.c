// SPDX-License-Identifier: Apache-2.0
//
// SQLite as a cache: one database in WAL mode, mapped up to 1 GiB, prepared statements.
// sync: default = NORMAL, off = OFF, on = FULL. The variant lru notes the access on every get.

#include "harness.h"
#include <sqlite3.h>

typedef struct {
    sqlite3 *db;
    sqlite3_stmt *get, *put, *touch;
    int notes_access;
    int64_t clock;
} Database;

static void check(sqlite3 *db, int code, const char *what) {
    if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return;
    fprintf(stderr, "sqlite: %s: %s\n", what, db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
    exit(1);
}

static void execute(Database *d, const char *sql) { check(d->db, sqlite3_exec(d->db, sql, 0, 0, 0), sql); }

// Whoever finds another one switching over is refused at once, whatever the time-out: two that waited for each other
// would do so for ever.
static void use_write_ahead_log(Database *d) {
    const char *sql = "PRAGMA journal_mode=WAL";
    int code;
    for (int attempt = 0; attempt < 6000; attempt++) {
        code = sqlite3_exec(d->db, sql, 0, 0, 0);
        if (code != SQLITE_BUSY) break;
        usleep(10000);
    }
    check(d->db, code, sql);
}

static sqlite3_stmt *prepare(Database *d, const char *sql) {
    sqlite3_stmt *statement;
    check(d->db, sqlite3_prepare_v2(d->db, sql, -1, &statement, 0), sql);
    return statement;
}

static Database *open_database(const Args *a, const char *sync) {
    Database *d = calloc(1, sizeof *d);
    char path[512];
    mkdir(a->dir, 0755);
    snprintf(path, sizeof path, "%s/cache.db", a->dir);
    check(0, sqlite3_open(path, &d->db), path);
    sqlite3_busy_timeout(d->db, 60000);
    use_write_ahead_log(d);
    execute(d, !strcmp(sync, "off")  ? "PRAGMA synchronous=OFF"
               : !strcmp(sync, "on") ? "PRAGMA synchronous=FULL"
                                     : "PRAGMA synchronous=NORMAL");
    execute(d, "PRAGMA mmap_size=1073741824; PRAGMA cache_size=-65536");
    execute(d, "CREATE TABLE IF NOT EXISTS kv(id INTEGER PRIMARY KEY, k TEXT UNIQUE NOT NULL, used INTEGER,"
               " size INTEGER, v BLOB); CREATE INDEX IF NOT EXISTS kv_used ON kv(used)");
    d->get = prepare(d, "SELECT id, v FROM kv WHERE k=?");
    d->put = prepare(d, "INSERT INTO kv(k, used, size, v) VALUES(?, ?, ?, ?) ON CONFLICT(k) DO UPDATE SET"
                        " used=excluded.used, size=excluded.size, v=excluded.v");
    d->touch = prepare(d, "UPDATE kv SET used=? WHERE id=?");
    d->notes_access = !strcmp(a->variant, "lru");
    d->clock = (int64_t)time(0) * 1000000;
    return d;
}

static void *sqlite_open(const Args *a) { return open_database(a, a->sync); }

static long sqlite_get(void *handle, long key, char *buffer) {
    Database *d = handle;
    long length = -1;
    int64_t id = 0;
    sqlite3_bind_text(d->get, 1, g_keys[key], KEY_LENGTH, SQLITE_STATIC);
    if (sqlite3_step(d->get) == SQLITE_ROW) {
        id = sqlite3_column_int64(d->get, 0);
        const void *value = sqlite3_column_blob(d->get, 1);
        length = sqlite3_column_bytes(d->get, 1);
        memcpy(buffer, value, length);
    }
    sqlite3_reset(d->get);
    if (length >= 0 && d->notes_access) {
        sqlite3_bind_int64(d->touch, 1, d->clock++);
        sqlite3_bind_int64(d->touch, 2, id);
        sqlite3_step(d->touch);
        sqlite3_reset(d->touch);
    }
    return length;
}

static int sqlite_put(void *handle, long key, const char *value, size_t size) {
    Database *d = handle;
    sqlite3_bind_text(d->put, 1, g_keys[key], KEY_LENGTH, SQLITE_STATIC);
    sqlite3_bind_int64(d->put, 2, d->clock++);
    sqlite3_bind_int64(d->put, 3, (int64_t)size);
    sqlite3_bind_blob(d->put, 4, value, (int)size, SQLITE_STATIC);
    int code = sqlite3_step(d->put);
    sqlite3_reset(d->put);
    return code != SQLITE_DONE;
}

static void sqlite_close(void *handle) {
    Database *d = handle;
    sqlite3_finalize(d->get);
    sqlite3_finalize(d->put);
    sqlite3_finalize(d->touch);
    sqlite3_close(d->db);
}

// All keys, used last in random order.
static int gc_fill(const Args *a) {
    Database *d = open_database(a, "off");
    uint32_t *ranks = permutation(a->n, 77);
    execute(d, "BEGIN");
    for (long i = 0; i < a->n; i++) {
        d->clock = 1700000000000000ll + ranks[i];
        sqlite_put(d, i, value_of(i), a->size);
    }
    execute(d, "COMMIT");
    sqlite_close(d);
    return 0;
}

// Deletes by 2,000: one transaction would block the other processes.
static int gc(const Args *a) {
    Database *d = open_database(a, a->sync);
    handshake(a);
    uint64_t t0 = now_ns();
    sqlite3_stmt *counting = prepare(d, "SELECT count(*), sum(size) FROM kv");
    sqlite3_step(counting);
    long entries = sqlite3_column_int64(counting, 0), removed = 0;
    sqlite3_finalize(counting);
    long surplus = is_op(a, "gc") ? (long)(entries * (1 - a->keep)) : 0;
    while (removed < surplus) {
        char sql[128];
        snprintf(sql, sizeof sql, "DELETE FROM kv WHERE id IN (SELECT id FROM kv ORDER BY used LIMIT %ld)",
                 surplus - removed > 2000 ? 2000 : surplus - removed);
        execute(d, sql);
        removed += sqlite3_changes(d->db);
    }
    print_gc(a, entries, removed, 0, t0, now_ns());
    sqlite_close(d);
    return 0;
}

static int other(const Args *a) {
    if (is_op(a, "gcfill")) return gc_fill(a);
    if (is_op(a, "gc_scan") || is_op(a, "gc")) return gc(a);
    return -1;
}

int main(int argc, char **argv) {
    Store store = {"sqlite", 0, sqlite_open, sqlite_get, sqlite_put, sqlite_close, other};
    return adapter_main(&store, argc, argv);
}
