// SPDX-License-Identifier: Apache-2.0

// Counts the calls of the allocator in the first thread of the program that it is preloaded into, and writes
// the number to the file that ALLOCATION_COUNT names when the program ends. What threads in the background
// allocate meanwhile differs from run to run.

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// What glibc's own malloc family is called inside it.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

// Of the kind that needs no allocation itself.
static __attribute__((tls_model("initial-exec"))) _Thread_local bool is_first_thread;
static unsigned long calls;

static void count(void) { calls += is_first_thread; }

__attribute__((constructor)) static void begin(void) { is_first_thread = true; }

void *malloc(size_t size) {
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count();
    return __libc_calloc(number, size);
}

void *realloc(void *block, size_t size) {
    count();
    return __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
    void *found = memalign(alignment, size);
    if (found == NULL) return ENOMEM;
    *block = found;
    return 0;
}

__attribute__((destructor)) static void report(void) {
    const char *path = getenv("ALLOCATION_COUNT");
    if (path == NULL) return;
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return;
    char text[32];
    int length = snprintf(text, sizeof text, "%lu\n", calls);
    if (write(file, text, (size_t)length) != length) abort();
    close(file);
}
