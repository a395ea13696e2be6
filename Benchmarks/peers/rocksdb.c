// SPDX-License-Identifier: Apache-2.0
//
// RocksDB with Bloom filters, uncompressed. Only one process can have it open: several are measured as threads of one.
// sync: default = log without fsync, off = no log, on = log with fsync.

#include "harness.h"
#include <rocksdb/c.h>

typedef struct {
    rocksdb_t *db;
    rocksdb_readoptions_t *reading;
    rocksdb_writeoptions_t *writing;
} Database;

static void *rocks_open(const Args *a) {
    Database *d = calloc(1, sizeof *d);
    char *error = 0;
    mkdir(a->dir, 0755);
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_compression(options, 0);
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom(10));
    rocksdb_options_set_block_based_table_factory(options, table);
    d->db = rocksdb_open(options, a->dir, &error);
    if (error) {
        fprintf(stderr, "rocksdb: %s\n", error);
        exit(1);
    }
    d->reading = rocksdb_readoptions_create();
    d->writing = rocksdb_writeoptions_create();
    if (!strcmp(a->sync, "off")) rocksdb_writeoptions_disable_WAL(d->writing, 1);
    if (!strcmp(a->sync, "on")) rocksdb_writeoptions_set_sync(d->writing, 1);
    return d;
}

static long rocks_get(void *handle, long key, char *buffer) {
    Database *d = handle;
    char *error = 0;
    size_t length;
    rocksdb_pinnableslice_t *slice = rocksdb_get_pinned(d->db, d->reading, g_keys[key], KEY_LENGTH, &error);
    if (!slice) return -1;
    const char *value = rocksdb_pinnableslice_value(slice, &length);
    memcpy(buffer, value, length);
    rocksdb_pinnableslice_destroy(slice);
    return (long)length;
}

static int rocks_put(void *handle, long key, const char *value, size_t size) {
    Database *d = handle;
    char *error = 0;
    rocksdb_put(d->db, d->writing, g_keys[key], KEY_LENGTH, value, size, &error);
    return error != 0;
}

static void rocks_close(void *handle) {
    Database *d = handle;
    char *error = 0;
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(options, 1);
    rocksdb_flush(d->db, options, &error);
    rocksdb_close(d->db);
}

int main(int argc, char **argv) {
    Store store = {"rocksdb", 0, rocks_open, rocks_get, rocks_put, rocks_close, 0};
    return adapter_main(&store, argc, argv);
}
