// SPDX-License-Identifier: Apache-2.0
//
// The limit of a hit in memory: a hash map in C with 64 mutexes. A hit hashes the key, takes one mutex, compares the
// key, counts a reference, and gives the reference back outside. Random order; the clock is read once in 64 hits.

#include "harness.h"
#include <stdatomic.h>

#define CHAINS (1 << 18)
#define MUTEXES 64
#define BATCH 64

typedef struct Node {
    struct Node *next;
    uint64_t hash;
    char key[24];
    _Atomic int references;
    void *value;
} Node;

static Node *g_chains[CHAINS];
static pthread_mutex_t g_mutexes[MUTEXES];
static uint64_t g_start;
static Args g_args;

static inline uint64_t hash(const char *key) {
    uint64_t a, b, c = 0;
    memcpy(&a, key, 8);
    memcpy(&b, key + 8, 8);
    memcpy(&c, key + 16, KEY_LENGTH - 16);
    __uint128_t m = (__uint128_t)(a ^ 0xa0761d6478bd642full) * (b ^ 0xe7037ed1a0b428dbull);
    m = (__uint128_t)((uint64_t)m ^ (uint64_t)(m >> 64) ^ c) * 0x8ebc6af09c88c6e3ull;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static void insert(Node *node, const char *key) {
    memcpy(node->key, key, sizeof node->key);
    node->hash = hash(key);
    node->value = malloc(g_args.size);
    node->references = 1;
    node->next = g_chains[node->hash & (CHAINS - 1)];
    g_chains[node->hash & (CHAINS - 1)] = node;
}

static inline uintptr_t hit(const char *key) {
    uint64_t h = hash(key);
    pthread_mutex_t *mutex = &g_mutexes[(h >> 32) % MUTEXES];
    pthread_mutex_lock(mutex);
    Node *node = g_chains[h & (CHAINS - 1)];
    while (node->hash != h || memcmp(node->key, key, KEY_LENGTH)) node = node->next;
    node->references++;
    uintptr_t value = (uintptr_t)node->value;
    pthread_mutex_unlock(mutex);
    node->references--;
    return value;
}

typedef struct {
    int id;
    Result result;
    uintptr_t sink;
} Reader;

static void *read_all(void *context) {
    Reader *reader = context;
    Result *r = &reader->result;
    uint32_t *order = permutation(g_args.n, reader->id * 7 + g_args.seed);
    while (now_ns() < g_start) {}
    r->t0 = r->t1 = now_ns();
    uint64_t end = r->t0 + (uint64_t)(g_args.secs * 1e9);
    for (long j = 0; r->t1 < end;) {
        for (int i = 0; i < BATCH; i++) {
            reader->sink += hit(g_keys[order[j]]);
            if (++j == g_args.n) j = 0;
        }
        uint64_t t = now_ns();
        record(r, (t - r->t1) / BATCH);
        r->hits += BATCH;
        r->t1 = t;
    }
    free(order);
    return 0;
}

static void measure(int threads) {
    pthread_t ids[2];
    Reader *readers = calloc(threads, sizeof *readers);
    Result total = {0};
    g_start = now_ns() + 20000000;
    for (int i = 0; i < threads; i++) {
        readers[i].id = i;
        if (pthread_create(&ids[i], 0, read_all, &readers[i])) exit(1);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], 0);
        merge(&total, &readers[i].result);
    }
    double elapsed = total.t1 - total.t0;
    printf("{\"system\":\"limit\",\"workload\":\"W10\",\"op\":\"mem_hit\",\"variant\":\"mutex64\",\"size\":%zu,"
           "\"procs\":1,\"threads\":%d,\"ops\":%lu,\"errs\":0,\"p50_ns\":%.0f,\"p99_ns\":%.0f,\"mean_ns\":%.1f,"
           "\"ops_per_s\":%.0f}\n",
           g_args.size, threads, total.hits, percentile(&total, .5), percentile(&total, .99),
           elapsed * threads / total.hits, total.hits / elapsed * 1e9);
    free(readers);
}

int main(int argc, char **argv) {
    parse_args(&g_args, argc, argv, "limit");
    g_args.size = 64;
    make_keys(g_args.n);
    for (int i = 0; i < MUTEXES; i++) pthread_mutex_init(&g_mutexes[i], 0);
    Node *nodes = calloc(g_args.n, sizeof *nodes);
    uint32_t *order = permutation(g_args.n, 3);
    for (long i = 0; i < g_args.n; i++) insert(&nodes[i], g_keys[order[i]]);
    for (int threads = 1; threads <= 2; threads++) measure(threads);
    return 0;
}
