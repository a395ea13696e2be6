// SPDX-License-Identifier: Apache-2.0
//
// The physical limit: the same work in bare system calls. One file a key, named by the SHA-256 of the key, in 256
// directories whose descriptors are kept. get: openat, fstat, read, close. put: create a temporary file, write,
// (fsync), close, rename. gc: getdents64, fstatat, unlinkat, on one thread.

#include "harness.h"
#include <dirent.h>
#include <openssl/sha.h>
#include <sys/syscall.h>

#define SHARDS 256

typedef struct {
    unsigned char shard;
    char name[2 * SHA256_DIGEST_LENGTH - 1];
} Name;

typedef struct {
    int root, shards[SHARDS], is_synced, process;
    long temporaries;
} Files;

static Name *g_names;

static void hex_digest(const char *key, char *hex) {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)key, strlen(key), digest);
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++) sprintf(hex + 2 * i, "%02x", digest[i]);
}

static void limit_prepare(const Args *a) {
    (void)a;
    g_names = malloc(sizeof *g_names * g_key_count);
    for (long i = 0; i < g_key_count; i++) {
        char hex[2 * SHA256_DIGEST_LENGTH + 1];
        hex_digest(g_keys[i], hex);
        g_names[i].shard = (unsigned char)strtoul((char[]){hex[0], hex[1], 0}, 0, 16);
        strcpy(g_names[i].name, hex + 2);
    }
}

static Files *open_files(const char *dir, int creates) {
    Files *f = calloc(1, sizeof *f);
    if (creates) mkdir(dir, 0755);
    f->root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->root < 0) {
        perror(dir);
        exit(1);
    }
    for (int i = 0; i < SHARDS; i++) {
        char name[8];
        snprintf(name, sizeof name, "%02x", i);
        if (creates) mkdirat(f->root, name, 0755);
        f->shards[i] = -1;
    }
    f->process = getpid();
    return f;
}

static inline int shard(Files *f, int i) {
    if (__builtin_expect(f->shards[i] < 0, 0)) {
        char name[8];
        snprintf(name, sizeof name, "%02x", i);
        f->shards[i] = openat(f->root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (f->shards[i] < 0) {
            perror(name);
            exit(1);
        }
    }
    return f->shards[i];
}

static void *limit_open(const Args *a) {
    Files *f = open_files(a->dir, is_op(a, "fill") || is_op(a, "put_new"));
    f->is_synced = !strcmp(a->sync, "on");
    return f;
}

static void limit_close(void *handle) {
    Files *f = handle;
    for (int i = 0; i < SHARDS; i++)
        if (f->shards[i] >= 0) close(f->shards[i]);
    close(f->root);
    free(f);
}

static long limit_get(void *handle, long key, char *buffer) {
    int fd = openat(shard(handle, g_names[key].shard), g_names[key].name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    struct stat st;
    fstat(fd, &st);
    long done = 0;
    while (done < st.st_size) {
        ssize_t r = read(fd, buffer + done, st.st_size - done);
        if (r <= 0) break;
        done += r;
    }
    close(fd);
    return done;
}

// A file under a temporary name that holds the value.
static int write_temporary(Files *f, int directory, char *name, const char *value, size_t size) {
    sprintf(name, ".t%d.%ld", f->process, f->temporaries++);
    int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    for (size_t done = 0; fd >= 0 && done < size;) {
        ssize_t r = write(fd, value + done, size - done);
        if (r <= 0) return -1;
        done += r;
    }
    return fd;
}

static int limit_put(void *handle, long key, const char *value, size_t size) {
    Files *f = handle;
    int directory = shard(f, g_names[key].shard);
    char temporary[40];
    int fd = write_temporary(f, directory, temporary, value, size);
    if (fd < 0 || (f->is_synced && fsync(fd))) return -1;
    close(fd);
    return renameat(directory, temporary, directory, g_names[key].name);
}

// ---- Collection ----

// When the entry of this rank was used last: the older half more than two hours ago.
static struct timespec access_time(time_t now, long rank, long n) {
    time_t age = rank < n / 2 ? 7200 + (n - rank) / 100 : 600 + (n - rank) / 1000;
    return (struct timespec){now - age, (rank % 100) * 10000000};
}

// The variant ccache lays the files out as ccache does, which goes by the time of modification.
static int gc_fill(const Args *a) {
    int is_ccache = !strcmp(a->variant, "ccache");
    if (is_ccache) mkdir(a->dir, 0755);
    Files *f = open_files(a->dir, !is_ccache);
    if (is_ccache)
        for (int i = 0; i < SHARDS; i++) {
            char path[8];
            snprintf(path, sizeof path, "%x", i >> 4);
            mkdirat(f->root, path, 0755);
            snprintf(path, sizeof path, "%x/%x", i >> 4, i & 15);
            mkdirat(f->root, path, 0755);
            f->shards[i] = openat(f->root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
    uint32_t *ranks = permutation(a->n, 77);
    time_t now = time(0);
    for (long i = 0; i < a->n; i++) {
        int directory = shard(f, g_names[i].shard);
        char temporary[40], name[80];
        int fd = write_temporary(f, directory, temporary, value_of(i), a->size);
        struct timespec used = access_time(now, ranks[i], a->n);
        snprintf(name, sizeof name, is_ccache ? "%.30sR" : "%s", g_names[i].name);
        if (fd < 0 || futimens(fd, (struct timespec[]){used, used}) || close(fd)
            || renameat(directory, temporary, directory, name)) {
            perror("gcfill");
            return 1;
        }
    }
    print_head(a);
    printf(",\"entries\":%ld}\n", a->n);
    return 0;
}

typedef struct {
    uint64_t used;
    size_t name;
    int shard;
} Entry;

typedef struct {
    Entry *entries;
    char *names;
    size_t count, capacity, names_length, names_capacity;
} Listing;

static void append(Listing *l, const char *name, int shard, uint64_t used) {
    size_t length = strlen(name) + 1;
    if (l->count == l->capacity) l->entries = realloc(l->entries, (l->capacity = 2 * l->capacity + 1024) * sizeof(Entry));
    if (l->names_length + length > l->names_capacity)
        l->names = realloc(l->names, l->names_capacity = 2 * l->names_capacity + 65536);
    memcpy(l->names + l->names_length, name, length);
    l->entries[l->count++] = (Entry){used, l->names_length, shard};
    l->names_length += length;
}

static void list_shard(Files *f, int i, Listing *l) {
    static char buffer[1 << 16];
    long length;
    while ((length = syscall(SYS_getdents64, shard(f, i), buffer, sizeof buffer)) > 0)
        for (long offset = 0; offset < length;) {
            struct dirent64 *entry = (void *)(buffer + offset);
            struct stat st;
            offset += entry->d_reclen;
            if (entry->d_name[0] == '.' || fstatat(shard(f, i), entry->d_name, &st, AT_SYMLINK_NOFOLLOW)) continue;
            append(l, entry->d_name, i, (uint64_t)st.st_atim.tv_sec * 1000000000ull + st.st_atim.tv_nsec);
        }
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// The access time from which on entries stay.
static uint64_t threshold(const Listing *l, double keep) {
    uint64_t *used = malloc(sizeof *used * l->count);
    for (size_t i = 0; i < l->count; i++) used[i] = l->entries[i].used;
    qsort(used, l->count, sizeof *used, ascending);
    uint64_t result = used[(size_t)(l->count * (1 - keep))];
    free(used);
    return result;
}

static int gc(const Args *a) {
    Files *f = open_files(a->dir, 0);
    Listing l = {0};
    long removed = 0, errs = 0;
    handshake(a);
    uint64_t t0 = now_ns();
    for (int i = 0; i < SHARDS; i++) list_shard(f, i, &l);
    if (is_op(a, "gc") && l.count) {
        uint64_t limit = threshold(&l, a->keep);
        for (size_t i = 0; i < l.count; i++) {
            if (l.entries[i].used >= limit) continue;
            if (unlinkat(shard(f, l.entries[i].shard), l.names + l.entries[i].name, 0)) errs++;
            else removed++;
        }
    }
    print_gc(a, (long)l.count, removed, errs, t0, now_ns());
    return errs != 0;
}

static int other(const Args *a) {
    if (is_op(a, "gcfill")) return gc_fill(a);
    if (is_op(a, "gc_scan") || is_op(a, "gc")) return gc(a);
    return -1;
}

int main(int argc, char **argv) {
    Store store = {"limit", limit_prepare, limit_open, limit_get, limit_put, limit_close, other};
    return adapter_main(&store, argc, argv);
}
