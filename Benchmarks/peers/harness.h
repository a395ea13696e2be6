// SPDX-License-Identifier: Apache-2.0
//
// What the adapters in C share: the options, the timed loops and the result line of the adapter protocol
// (see ../README.md). One program is one source file that includes this one.

#ifndef HARNESS_H
#define HARNESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// ---- Time ----

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void processor_time(uint64_t *user, uint64_t *system) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    *user = r.ru_utime.tv_sec * 1000000000ull + r.ru_utime.tv_usec * 1000ull;
    *system = r.ru_stime.tv_sec * 1000000000ull + r.ru_stime.tv_usec * 1000ull;
}

// ---- Results: exact below 64 ns, then 64 buckets in each power of two ----

#define BUCKETS 2304

typedef struct {
    uint64_t counts[BUCKETS];
    uint64_t ops, errs, hits, miss, sum;
    uint64_t t0, t1, ucpu, scpu;
} Result;

static inline int bucket_of(uint64_t v) {
    if (v < 64) return (int)v;
    int e = 63 - __builtin_clzll(v);
    if (e > 40) return BUCKETS - 1;
    return (e - 5) * 64 + (int)((v >> (e - 6)) & 63);
}

static inline double middle_of(int bucket) {
    if (bucket < 64) return bucket;
    int e = bucket / 64 + 5;
    uint64_t sub = bucket % 64;
    return (double)((1ull << e) + (sub << (e - 6))) + (double)(1ull << (e - 6)) / 2.0;
}

static inline void record(Result *r, uint64_t ns) {
    r->counts[bucket_of(ns)]++;
    r->ops++;
    r->sum += ns;
}

static double percentile(const Result *r, double share) {
    uint64_t rank = (uint64_t)ceil(share * r->ops), seen = 0;
    if (rank < 1) rank = 1;
    for (int i = 0; i < BUCKETS; i++) {
        seen += r->counts[i];
        if (seen >= rank) return middle_of(i);
    }
    return 0;
}

static void merge(Result *into, const Result *r) {
    for (int i = 0; i < BUCKETS; i++) into->counts[i] += r->counts[i];
    into->ops += r->ops;
    into->errs += r->errs;
    into->hits += r->hits;
    into->miss += r->miss;
    into->sum += r->sum;
    if (!into->t0 || r->t0 < into->t0) into->t0 = r->t0;
    if (r->t1 > into->t1) into->t1 = r->t1;
    // Each thread has counted the time of the whole process.
    if (r->ucpu > into->ucpu) into->ucpu = r->ucpu;
    if (r->scpu > into->scpu) into->scpu = r->scpu;
}

// ---- Options ----

typedef struct {
    const char *op, *dir, *variant, *sync, *system, *workload;
    size_t size;
    long n, compute_ms, warm_ms;
    int procs, proc, threads, handshake;
    double secs, cap, keep;
    uint64_t seed;
} Args;

static void parse_args(Args *a, int argc, char **argv, const char *system) {
    *a = (Args){.dir = "data/x", .variant = "", .sync = "default", .system = system, .workload = "",
                .size = 4096, .n = 20000, .compute_ms = 200, .warm_ms = 300, .procs = 1, .threads = 1, .secs = 1, .cap = 30,
                .keep = 0.5, .seed = 1};
    if (argc < 2) {
        fprintf(stderr, "usage: %s OP --dir D --size S --n N ...\n", argv[0]);
        exit(2);
    }
    a->op = argv[1];
    for (int i = 2; i < argc; i++) {
        const char *k = argv[i];
        if (!strcmp(k, "--handshake")) {
            a->handshake = 1;
            continue;
        }
        const char *v = i + 1 < argc ? argv[++i] : "";
        if (!strcmp(k, "--dir")) a->dir = v;
        else if (!strcmp(k, "--size")) a->size = strtoul(v, 0, 10);
        else if (!strcmp(k, "--n")) a->n = atol(v);
        else if (!strcmp(k, "--procs")) a->procs = atoi(v);
        else if (!strcmp(k, "--proc")) a->proc = atoi(v);
        else if (!strcmp(k, "--threads")) a->threads = atoi(v);
        else if (!strcmp(k, "--secs")) a->secs = atof(v);
        else if (!strcmp(k, "--cap")) a->cap = atof(v);
        else if (!strcmp(k, "--seed")) a->seed = strtoull(v, 0, 10);
        else if (!strcmp(k, "--variant")) a->variant = v;
        else if (!strcmp(k, "--sync")) a->sync = v;
        else if (!strcmp(k, "--system")) a->system = v;
        else if (!strcmp(k, "--workload")) a->workload = v;
        else if (!strcmp(k, "--keep")) a->keep = atof(v);
        else if (!strcmp(k, "--compute-ms")) a->compute_ms = atol(v);
        else if (!strcmp(k, "--warm-ms")) a->warm_ms = atol(v);
        else {
            fprintf(stderr, "unknown option %s\n", k);
            exit(2);
        }
    }
}

static int is_op(const Args *a, const char *op) { return !strcmp(a->op, op); }

// Says that all is prepared, and waits until the driver lets all workers go at once.
static void handshake(const Args *a) {
    if (!a->handshake) return;
    printf("READY\n");
    fflush(stdout);
    char b[64];
    if (!fgets(b, sizeof b, stdin)) exit(3);
}

static void print_head(const Args *a) {
    printf("{\"system\":\"%s\",\"workload\":\"%s\",\"op\":\"%s\",\"variant\":\"%s\",\"sync\":\"%s\",\"size\":%zu,"
           "\"procs\":%d,\"proc\":%d,\"threads\":%d",
           a->system, a->workload, a->op, a->variant, a->sync, a->size, a->procs, a->proc, a->threads);
}

static void print_result(const Args *a, const Result *r) {
    double elapsed = r->t1 > r->t0 ? (r->t1 - r->t0) / 1e9 : 1e-9;
    print_head(a);
    printf(",\"ops\":%lu,\"errs\":%lu,\"hits\":%lu,\"miss\":%lu,\"p50_ns\":%.0f,\"p99_ns\":%.0f,\"mean_ns\":%.1f,"
           "\"ops_per_s\":%.1f,\"t0\":%lu,\"t1\":%lu,\"ucpu\":%lu,\"scpu\":%lu",
           r->ops, r->errs, r->hits, r->miss, percentile(r, .5), percentile(r, .99),
           r->ops ? (double)r->sum / r->ops : 0.0, r->ops / elapsed, r->t0, r->t1, r->ucpu, r->scpu);
    if (a->threads > 1) printf(",\"mode\":\"threads\"");
    if (a->handshake) {
        const char *comma = "";
        printf(",\"hist\":[");
        for (int i = 0; i < BUCKETS; i++)
            if (r->counts[i]) {
                printf("%s[%d,%lu]", comma, i, r->counts[i]);
                comma = ",";
            }
        printf("]");
    }
    printf("}\n");
    fflush(stdout);
}

// The result of a collection.
static void print_gc(const Args *a, long entries, long removed, long errs, uint64_t t0, uint64_t t1) {
    double seconds = (t1 - t0) / 1e9;
    print_head(a);
    printf(",\"ops\":%ld,\"entries\":%ld,\"removed\":%ld,\"errs\":%ld,\"seconds\":%.6f,\"entries_per_s\":%.0f,"
           "\"ops_per_s\":%.0f,\"p50_ns\":%.0f,\"t0\":%lu,\"t1\":%lu}\n",
           entries, entries, removed, errs, seconds, entries / seconds, entries / seconds,
           entries ? seconds * 1e9 / entries : 0, t0, t1);
    fflush(stdout);
}

// ---- Order of keys ----

static inline uint64_t splitmix(uint64_t *s) {
    uint64_t z = (*s += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static uint32_t *permutation(long n, uint64_t seed) {
    uint32_t *p = malloc(sizeof(uint32_t) * (n ? n : 1));
    for (long i = 0; i < n; i++) p[i] = (uint32_t)i;
    uint64_t s = seed * 7919 + 17;
    for (long i = n - 1; i > 0; i--) {
        long j = (long)(splitmix(&s) % (uint64_t)(i + 1));
        uint32_t t = p[i];
        p[i] = p[j];
        p[j] = t;
    }
    return p;
}

// m draws by Zipf's law with the exponent 0.99; which keys are popular is the same for all seeds.
static uint32_t *zipf_draws(long n, long m, uint64_t seed) {
    double *sums = malloc(sizeof(double) * n), total = 0;
    for (long i = 0; i < n; i++) sums[i] = total += 1.0 / pow(i + 1, 0.99);
    uint32_t *keys = permutation(n, 424242), *draws = malloc(sizeof(uint32_t) * m);
    for (long j = 0; j < m; j++) {
        double u = (splitmix(&seed) >> 11) * (1.0 / 9007199254740992.0) * total;
        long lo = 0, hi = n - 1;
        while (lo < hi) {
            long mid = (lo + hi) / 2;
            if (sums[mid] < u) lo = mid + 1;
            else hi = mid;
        }
        draws[j] = keys[lo];
    }
    free(sums);
    free(keys);
    return draws;
}

// ---- Keys: "user:00000042/thumb" ----

#define KEY_LENGTH 19

static char (*g_keys)[24];
static long g_key_count;

static void make_keys(long n) {
    g_keys = malloc((size_t)n * sizeof *g_keys);
    g_key_count = n;
    for (long i = 0; i < n; i++) snprintf(g_keys[i], sizeof *g_keys, "user:%08u/thumb", (unsigned)(i % 100000000));
}

// ---- Values: a window of noise that begins with the key's index ----

#define WINDOWS 65536

static char *g_noise;

static void make_noise(size_t size) {
    size_t n = size + WINDOWS + 64;
    g_noise = malloc(n);
    uint64_t s = 12345;
    for (size_t i = 0; i + 8 <= n; i += 8) {
        uint64_t v = splitmix(&s);
        memcpy(g_noise + i, &v, 8);
    }
}

static inline char *value_in(char *noise, long i) {
    char *p = noise + (((uint64_t)i * 64) & (WINDOWS - 1));
    uint64_t x = (uint64_t)i;
    memcpy(p, &x, 8);
    return p;
}

static inline char *value_of(long i) { return value_in(g_noise, i); }

static inline int is_value(const char *b, long length, size_t size, long i) {
    uint64_t x;
    if (length != (long)size) return 0;
    memcpy(&x, b, 8);
    return x == (uint64_t)i;
}

// ---- A store of keys and values, and the loops over it ----

typedef struct {
    const char *name;
    // What must be there before anything is timed; may be null.
    void (*prepare)(const Args *);
    void *(*open)(const Args *);
    // Copies the value to the buffer; its length, -1 where there is none.
    long (*get)(void *, long key, char *buffer);
    int (*put)(void *, long key, const char *value, size_t size);
    void (*close)(void *);
    // Operations that only this system has: the exit status, -1 for one that it does not know.
    int (*other)(const Args *);
} Store;

typedef struct {
    const Args *a;
    const Store *store;
    void *handle;
    int id, of;
    char *noise;
    pthread_barrier_t *gate;
    Result result;
} Worker;

#define DRAWS (1 << 18)
// So many keys put_more puts that were not there before, others for each seed.
#define MORE 2000

// Reads for a moment: what is measured is a store in use.
static void warm_up(Worker *w, const uint32_t *order, char *buffer) {
    uint64_t end = now_ns() + w->a->warm_ms * 1000000ull;
    for (long i = 0; i < w->a->n; i++) {
        w->store->get(w->handle, order[i], buffer);
        if ((i & 63) == 0 && now_ns() > end) break;
    }
}

// The variant "once" asks for each key once only.
static void get_loop(Worker *w, const uint32_t *order, char *buffer, long offset) {
    Result *r = &w->result;
    const Args *a = w->a;
    uint64_t previous = r->t0, t = r->t0, end = r->t0 + (uint64_t)(a->secs * 1e9);
    int is_once = !strcmp(a->variant, "once");
    do
        for (long i = 0; i < a->n && t < end; i++) {
            long key = order[i] + offset, length = w->store->get(w->handle, key, buffer);
            t = now_ns();
            record(r, t - previous);
            previous = t;
            if (length < 0) r->miss++;
            else if (offset || !is_value(buffer, length, a->size, key)) r->errs++;
            else r->hits++;
        }
    while (t < end && !is_once);
    r->t1 = previous;
}

static void put_loop(Worker *w, const uint32_t *order) {
    Result *r = &w->result;
    const Args *a = w->a;
    uint64_t t = r->t0, end = r->t0 + (uint64_t)(a->cap * 1e9);
    int is_more = is_op(a, "put_more");
    long n = is_more ? MORE : a->n, offset = is_more ? a->n + (long)a->seed * MORE : 0;
    for (long i = n * w->id / w->of; i < n * (w->id + 1) / w->of && t < end; i++) {
        long key = order[i] + offset;
        const char *value = value_in(w->noise, key);
        uint64_t start = now_ns();
        int failed = w->store->put(w->handle, key, value, a->size);
        t = now_ns();
        record(r, t - start);
        if (failed) r->errs++;
    }
    r->t1 = t;
}

static void mixed_loop(Worker *w, const uint32_t *draws, char *buffer) {
    Result *r = &w->result;
    const Args *a = w->a;
    uint64_t random = a->seed * 77 + w->id, previous = r->t0, t = r->t0, end = r->t0 + (uint64_t)(a->secs * 1e9);
    for (uint64_t j = 0; t < end; j++) {
        long key = draws[j & (DRAWS - 1)];
        if (splitmix(&random) % 10 == 0) {
            if (w->store->put(w->handle, key, value_in(w->noise, key), a->size)) r->errs++;
        } else {
            long length = w->store->get(w->handle, key, buffer);
            if (length < 0) r->miss++;
            else if (!is_value(buffer, length, a->size, key)) r->errs++;
            else r->hits++;
        }
        t = now_ns();
        record(r, t - previous);
        previous = t;
    }
    r->t1 = previous;
}

static void *work(void *context) {
    Worker *w = context;
    const Args *a = w->a;
    char *buffer = calloc(1, a->size + 4096);
    uint32_t *order;
    int is_mixed = is_op(a, "mixed"), is_more = is_op(a, "put_more");
    int is_put = is_op(a, "put_new") || is_op(a, "put_over") || is_more;
    if (is_mixed) order = zipf_draws(a->n, DRAWS, a->seed * 131 + w->id);
    else order = permutation(is_more ? MORE : a->n, a->seed * 131 + (is_put ? 999 : w->id));
    if (is_mixed || is_op(a, "get_hit")) warm_up(w, order, buffer);
    if (w->gate) pthread_barrier_wait(w->gate);
    if (!w->gate || w->id == 0) handshake(a);
    if (w->gate) pthread_barrier_wait(w->gate);
    uint64_t user, system;
    processor_time(&user, &system);
    w->result.t0 = now_ns();
    if (is_mixed) mixed_loop(w, order, buffer);
    else if (is_put) put_loop(w, order);
    else get_loop(w, order, buffer, is_op(a, "get_miss") ? a->n : 0);
    processor_time(&w->result.ucpu, &w->result.scpu);
    w->result.ucpu -= user;
    w->result.scpu -= system;
    free(buffer);
    free(order);
    return 0;
}

static void run_workers(const Args *a, const Store *store, void *handle) {
    static Result total;
    if (a->threads == 1) {
        static Worker w;
        w = (Worker){.a = a, .store = store, .handle = handle, .id = a->proc, .of = a->procs, .noise = g_noise};
        work(&w);
        total = w.result;
    } else {
        Worker *w = calloc(a->threads, sizeof *w);
        pthread_t *threads = calloc(a->threads, sizeof *threads);
        pthread_barrier_t gate;
        pthread_barrier_init(&gate, 0, a->threads);
        size_t length = a->size + WINDOWS + 64;
        for (int i = 0; i < a->threads; i++) {
            char *noise = memcpy(malloc(length), g_noise, length);
            w[i] = (Worker){.a = a, .store = store, .handle = handle, .id = i, .of = a->threads, .noise = noise,
                            .gate = &gate};
            if (pthread_create(&threads[i], 0, work, &w[i])) exit(1);
        }
        for (int i = 0; i < a->threads; i++) {
            pthread_join(threads[i], 0);
            merge(&total, &w[i].result);
        }
    }
    store->close(handle);
    print_result(a, &total);
}

static int fill(const Args *a, const Store *store) {
    void *handle = store->open(a);
    uint64_t t0 = now_ns();
    uint32_t *order = permutation(a->n, 5);
    long errs = 0;
    for (long i = 0; i < a->n; i++) errs += store->put(handle, order[i], value_of(order[i]), a->size) != 0;
    store->close(handle);
    print_head(a);
    printf(",\"entries\":%ld,\"errs\":%ld,\"seconds\":%.3f}\n", a->n, errs, (now_ns() - t0) / 1e9);
    return errs != 0;
}

static int open_first(const Args *a, const Store *store) {
    char *buffer = malloc(a->size + 4096);
    long key = (long)(a->seed * 7919 % a->n);
    handshake(a);
    uint64_t t0 = now_ns();
    void *handle = store->open(a);
    uint64_t t1 = now_ns();
    long length = store->get(handle, key, buffer);
    uint64_t t2 = now_ns();
    print_head(a);
    printf(",\"ops\":1,\"open_ns\":%lu,\"first_get_ns\":%lu,\"p50_ns\":%lu,\"ok\":%d}\n", t1 - t0, t2 - t1, t2 - t0,
           is_value(buffer, length, a->size, key));
    store->close(handle);
    return 0;
}

// The main function of an adapter.
static int adapter_main(const Store *store, int argc, char **argv) {
    static Args a;
    parse_args(&a, argc, argv, store->name);
    make_keys(is_op(&a, "get_miss") ? a.n * 2 : is_op(&a, "put_more") ? a.n + (long)(a.seed + 1) * MORE : a.n);
    make_noise(a.size);
    if (store->prepare) store->prepare(&a);
    int status = store->other ? store->other(&a) : -1;
    if (status >= 0) return status;
    if (is_op(&a, "fill")) return fill(&a, store);
    if (is_op(&a, "open_first")) return open_first(&a, store);
    if (!is_op(&a, "get_hit") && !is_op(&a, "get_miss") && !is_op(&a, "put_new") && !is_op(&a, "put_over")
        && !is_op(&a, "put_more") && !is_op(&a, "mixed")) {
        fprintf(stderr, "%s: no operation %s\n", store->name, a.op);
        return 2;
    }
    run_workers(&a, store, store->open(&a));
    return 0;
}

#endif
