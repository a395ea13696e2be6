// SPDX-License-Identifier: Apache-2.0
//
// LMDB. sync: default and on = a synchronous write at each commit, off = MDB_NOSYNC and MDB_WRITEMAP. The fill is
// always without.

#include "harness.h"
#include <lmdb.h>

typedef struct {
    MDB_env *environment;
    MDB_dbi database;
    MDB_txn *reader;
} Database;

static void check(int code, const char *what) {
    if (!code) return;
    fprintf(stderr, "lmdb: %s: %s\n", what, mdb_strerror(code));
    exit(1);
}

static void *lmdb_open(const Args *a) {
    Database *d = calloc(1, sizeof *d);
    MDB_txn *transaction;
    mkdir(a->dir, 0755);
    check(mdb_env_create(&d->environment), "create");
    mdb_env_set_mapsize(d->environment, 6ull << 30);
    mdb_env_set_maxreaders(d->environment, 64);
    int is_lax = !strcmp(a->sync, "off") || is_op(a, "fill");
    check(mdb_env_open(d->environment, a->dir, is_lax ? MDB_NOSYNC | MDB_WRITEMAP : 0, 0644), a->dir);
    check(mdb_txn_begin(d->environment, 0, 0, &transaction), "begin");
    check(mdb_dbi_open(transaction, 0, 0, &d->database), "open");
    check(mdb_txn_commit(transaction), "commit");
    check(mdb_txn_begin(d->environment, 0, MDB_RDONLY, &d->reader), "begin reading");
    mdb_txn_reset(d->reader);
    return d;
}

static long lmdb_get(void *handle, long key, char *buffer) {
    Database *d = handle;
    MDB_val name = {KEY_LENGTH, g_keys[key]}, value;
    long length = -1;
    mdb_txn_renew(d->reader);
    if (!mdb_get(d->reader, d->database, &name, &value)) {
        memcpy(buffer, value.mv_data, value.mv_size);
        length = (long)value.mv_size;
    }
    mdb_txn_reset(d->reader);
    return length;
}

static int lmdb_put(void *handle, long key, const char *value, size_t size) {
    Database *d = handle;
    MDB_txn *transaction;
    if (mdb_txn_begin(d->environment, 0, 0, &transaction)) return 1;
    MDB_val name = {KEY_LENGTH, g_keys[key]}, data = {size, (void *)value};
    int code = mdb_put(transaction, d->database, &name, &data, 0);
    if (!code) return mdb_txn_commit(transaction);
    mdb_txn_abort(transaction);
    return code;
}

static void lmdb_close(void *handle) {
    Database *d = handle;
    mdb_txn_abort(d->reader);
    mdb_env_close(d->environment);
}

int main(int argc, char **argv) {
    Store store = {"lmdb", 0, lmdb_open, lmdb_get, lmdb_put, lmdb_close, 0};
    return adapter_main(&store, argc, argv);
}
