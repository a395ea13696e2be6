// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CPlatform.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

const int cplatform_O_TMPFILE = O_TMPFILE;
const int cplatform_O_PATH = O_PATH;
const int cplatform_O_NOATIME = O_NOATIME;
const int cplatform_F_OFD_SETLK = F_OFD_SETLK;
const unsigned long cplatform_ST_NOATIME = ST_NOATIME;
const unsigned long cplatform_ST_RELATIME = ST_RELATIME;
const int cplatform_SEEK_DATA = SEEK_DATA;
const long cplatform_UTIME_OMIT = UTIME_OMIT;

cplatform_injector *cplatform_present_injector;

void cplatform_inject(cplatform_injector *injector) {
    __atomic_store_n(&cplatform_present_injector, injector, __ATOMIC_RELEASE);
}

void (*cplatform_word_hook)(bool is_change);

long cplatform_granted(int call, long count) {
    // This function is called only if an injector is set, and an injector is never removed.
    cplatform_injector *injector = __atomic_load_n(&cplatform_present_injector, __ATOMIC_ACQUIRE);
    return injector(call, count);
}

int cplatform_openat_nofollow(int directory, struct cplatform_path path, int flags, unsigned int mode) {
    static atomic_int unavailable;
    if (!atomic_load_explicit(&unavailable, memory_order_relaxed)) {
        struct open_how how = {
            .flags = (uint64_t)(flags | O_NOFOLLOW),
            .mode = mode,
            .resolve = RESOLVE_NO_SYMLINKS,
        };
        int descriptor = (int)syscall(SYS_openat2, directory, path.bytes, &how, sizeof how);
        // Old seccomp profiles return EPERM for an unknown call. If EPERM is genuine, openat returns it again.
        if (descriptor >= 0 || (errno != ENOSYS && errno != EPERM)) return descriptor;
        if (errno == ENOSYS) atomic_store_explicit(&unavailable, 1, memory_order_relaxed);
    }
    return openat(directory, path.bytes, flags | O_NOFOLLOW, mode);
}

int cplatform_mkdirat(int directory, struct cplatform_path path, unsigned int mode) {
    return mkdirat(directory, path.bytes, mode);
}

int cplatform_unlinkat(int directory, struct cplatform_path path) { return unlinkat(directory, path.bytes, 0); }

int cplatform_linkat(int directory, struct cplatform_path path, int new_directory, struct cplatform_path new_path) {
    return linkat(directory, path.bytes, new_directory, new_path.bytes, 0);
}

int cplatform_renameat(int directory, struct cplatform_path path, int new_directory, struct cplatform_path new_path) {
    return renameat(directory, path.bytes, new_directory, new_path.bytes);
}

int cplatform_fstatat(int directory, struct cplatform_path path, void *status) {
    return fstatat(directory, path.bytes, status, AT_SYMLINK_NOFOLLOW);
}

int cplatform_link_descriptor(int file, int directory, struct cplatform_path path) {
    return linkat(file, "", directory, path.bytes, AT_EMPTY_PATH);
}

int cplatform_link_target(const char *link, int directory, struct cplatform_path path) {
    return linkat(AT_FDCWD, link, directory, path.bytes, AT_SYMLINK_FOLLOW);
}

int cplatform_set_access_time(int directory, struct cplatform_path path, int64_t seconds, long nanoseconds) {
    struct timespec times[2] = {{.tv_sec = seconds, .tv_nsec = nanoseconds}, {.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
    return utimensat(directory, path.bytes, times, AT_SYMLINK_NOFOLLOW);
}

int cplatform_touch(int directory, struct cplatform_path path) {
    return utimensat(directory, path.bytes, NULL, AT_SYMLINK_NOFOLLOW);
}

long cplatform_read(int descriptor, void *buffer, size_t count) {
    return syscall(SYS_read, descriptor, buffer, count);
}

int cplatform_close(int descriptor) { return (int)syscall(SYS_close, descriptor); }

// glibc 2.36 does not define this number. Since Linux 5.1, new calls have the same number on every architecture.
#ifndef SYS_getxattrat
#define SYS_getxattrat 464
#endif

/// struct xattr_args of linux/xattr.h, Linux 6.13.
struct extended_attribute_arguments {
    _Alignas(8) uint64_t value;
    uint32_t size;
    uint32_t flags;
};

long cplatform_getxattrat(int directory, struct cplatform_path path, const char *name, void *value, size_t size) {
    struct extended_attribute_arguments arguments = {(uint64_t)(uintptr_t)value, (uint32_t)size, 0};
    return syscall(
        SYS_getxattrat, directory, path.bytes, AT_SYMLINK_NOFOLLOW, name, &arguments, sizeof arguments);
}

long cplatform_getdents64(int directory, void *buffer, size_t size) {
    return syscall(SYS_getdents64, directory, buffer, size);
}

long cplatform_fgetxattr(int descriptor, const char *name, void *value, size_t size) {
    return fgetxattr(descriptor, name, value, size);
}

int cplatform_fsetxattr(int descriptor, const char *name, const void *value, size_t size) {
    return fsetxattr(descriptor, name, value, size, 0);
}

int cplatform_fremovexattr(int descriptor, const char *name) { return fremovexattr(descriptor, name); }

int cplatform_replace_pages(void *pages, size_t size, void *place) {
    return mremap(pages, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, place) == MAP_FAILED ? -1 : 0;
}

int cplatform_clone(int source, int destination) { return ioctl(destination, FICLONE, source); }

long cplatform_copy_file_range(int source, int destination, size_t count) {
    return copy_file_range(source, NULL, destination, NULL, count, 0);
}

int64_t cplatform_birth_time(int descriptor) {
    struct statx status;
    if (statx(descriptor, "", AT_EMPTY_PATH, STATX_BTIME, &status) != 0) return 0;
    if (!(status.stx_mask & STATX_BTIME)) return 0;
    return (int64_t)status.stx_btime.tv_sec * 1000000000 + status.stx_btime.tv_nsec;
}

int64_t cplatform_filesystem_magic(int descriptor, int64_t *block_size) {
    struct statfs status;
    if (fstatfs(descriptor, &status) != 0) return -1;
    // f_frsize is the allocation unit; f_bsize is the preferred size of a read, on ZFS a whole record.
    *block_size = (int64_t)(status.f_frsize > 0 ? status.f_frsize : status.f_bsize);
    return (int64_t)(uint32_t)status.f_type;
}

const char *cplatform_errno_name(int number) { return strerrorname_np(number); }

static int argument_count;
static char **arguments;

// glibc passes the arguments of main to constructors.
__attribute__((constructor)) static void note_arguments(int count, char **vector) {
    argument_count = count;
    arguments = vector;
}

const char *cplatform_argument(int index) { return index < argument_count ? arguments[index] : NULL; }

const char *cplatform_program(void) { return (const char *)getauxval(AT_EXECFN); }

struct cplatform_found cplatform_getopt_long(
    int count, char *const arguments[], const char *letters, const struct cplatform_option *options, bool is_first) {
    enum { capacity = 64 };
    struct option table[capacity + 1];
    memset(table, 0, sizeof table);
    for (int i = 0; i < capacity && options[i].name; i++)
        table[i] = (struct option){options[i].name, options[i].argument, NULL, options[i].value};
    opterr = 0;
    // 0 rather than 1 makes glibc forget its position inside a cluster of short options, getopt(3).
    if (is_first) optind = 0;
    int value = getopt_long(count, arguments, letters, table, NULL);
    return (struct cplatform_found){value, optarg, optind, optopt};
}

_Thread_local unsigned int cplatform_numbered_thread;

static _Thread_local bool is_waiting_thread;

bool cplatform_is_waiting_thread(void) { return is_waiting_thread; }

void cplatform_set_waiting_thread(bool is_waiting) { is_waiting_thread = is_waiting; }

unsigned int cplatform_number_thread(void) {
    static atomic_uint last;
    // Each process begins with a different number; otherwise the first threads of all processes would count in the
    // same cache line. Processes with consecutive PIDs begin 7 numbers apart, so that up to 7 threads of a process do
    // not share lines with the next process.
    unsigned int start = (unsigned int)getpid() * 7;
    unsigned int number = start + atomic_fetch_add_explicit(&last, 1, memory_order_relaxed);
    return cplatform_numbered_thread = number | 1u << 31;
}

static uint64_t no_generation;
uint64_t *cplatform_generation_place = &no_generation;
static pthread_once_t generation_once = PTHREAD_ONCE_INIT;

static void forget_generation(void) { __atomic_store_n(cplatform_generation_place, 0, __ATOMIC_RELAXED); }

// The kernel clears the page in every child that gets a copy of this process's memory, whichever call creates the
// child.
static void make_generation_place(void) {
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED && madvise(page, size, MADV_WIPEONFORK) == 0) {
        __atomic_store_n(&cplatform_generation_place, (uint64_t *)page, __ATOMIC_RELEASE);
        return;
    }
    if (page != MAP_FAILED) munmap(page, size);
    // Before Linux 4.14, or if there is no memory, a handler clears the word in children of fork(3). If the handler
    // can't be registered either, forks are not detected.
    static uint64_t word;
    (void)pthread_atfork(NULL, NULL, forget_generation);
    __atomic_store_n(&cplatform_generation_place, &word, __ATOMIC_RELEASE);
}

uint64_t cplatform_begin_generation(void) {
    // A child inherits this counter and continues it, so that its number differs from those of its ancestors.
    static uint64_t last;
    pthread_once(&generation_once, make_generation_place);
    uint64_t *place = __atomic_load_n(&cplatform_generation_place, __ATOMIC_ACQUIRE);
    uint64_t present = 0, next = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    int is_first = __atomic_compare_exchange_n(place, &present, next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return is_first ? next : present;
}

int cplatform_pipe(struct cplatform_pipe_ends *ends) { return pipe2(&ends->reading, O_CLOEXEC); }

const short cplatform_POSIX_SPAWN_SETSID = POSIX_SPAWN_SETSID;

int cplatform_signalfd(const void *signals) { return signalfd(-1, signals, SFD_CLOEXEC); }

int cplatform_close_from(unsigned int first) { return (int)syscall(SYS_close_range, first, ~0U, 0); }

void cplatform_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

static atomic_int signal_pipe = -1;
static atomic_int signal_owner;
static atomic_flag signal_arrived = ATOMIC_FLAG_INIT;

// This handler uses only functions that signal-safety(7) allows: getpid, signal, raise, write, and lock-free atomics.
static void write_signal(int signal_number) {
    int saved = errno;
    if (getpid() != atomic_load(&signal_owner) || atomic_flag_test_and_set(&signal_arrived)) {
        // The raised signal is blocked until this handler returns; then it ends the process.
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    } else {
        unsigned char byte = (unsigned char)signal_number;
        // The pipe is empty, so the write does not block.
        ssize_t written = write(atomic_load(&signal_pipe), &byte, 1);
        (void)written;
    }
    errno = saved;
}

int cplatform_signal_is_inherited(int signal_number) {
    struct sigaction action;
    return sigaction(signal_number, NULL, &action) == 0 && action.sa_handler == write_signal
        && atomic_load(&signal_owner) != (int)getpid();
}

int cplatform_signal_to_pipe(int signal_number, int descriptor) {
    // In a forked child: a signal that the parent received was not meant for this process.
    if (atomic_load(&signal_owner) != (int)getpid()) atomic_flag_clear(&signal_arrived);
    atomic_store(&signal_pipe, descriptor);
    atomic_store(&signal_owner, (int)getpid());
    struct sigaction action = {.sa_handler = write_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    return sigaction(signal_number, &action, NULL);
}
