// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CSimulator.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

/// The identifier of the simulated process that this thread is; 0 for any other thread.
static _Thread_local int process;
/// Whether this thread runs the handler, whose own calls go to the C library.
static _Thread_local bool is_inside;
/// The accesses to mapped words since the last call.
static _Thread_local unsigned int words_in_a_row;
static simulator_handler *handler;

bool simulator_is_active(void) { return process != 0 && !is_inside; }

/// Platform's hook of accesses to mapped words.
extern void (*cplatform_word_hook)(bool is_change);

static void note_word(bool is_change);

void simulator_set_handler(simulator_handler *new_handler) {
    handler = new_handler;
    cplatform_word_hook = note_word;
}

/// The C library's own definition of a function.
#define REAL(name) \
    ({ \
        static __typeof__(&name) real; \
        if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
        real; \
    })

static long handle(int call, long a, long b, long c, long d, long e) {
    long arguments[] = {a, b, c, d, e};
    is_inside = true;
    words_in_a_row = 0;
    long result = handler(call, arguments);
    is_inside = false;
    return result;
}

/// Makes a call that reports a failure by -1 and errno.
static long make(int call, long a, long b, long c, long d, long e) {
    long result = handle(call, a, b, c, d, e);
    if (result >= 0) return result;
    errno = (int)-result;
    return -1;
}

#define CALL_5(call, a, b, c, d, e) make(call, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))
#define CALL_4(call, a, b, c, d) CALL_5(call, a, b, c, d, 0)
#define CALL_3(call, a, b, c) CALL_5(call, a, b, c, 0, 0)
#define CALL_2(call, a, b) CALL_5(call, a, b, 0, 0, 0)
#define CALL_1(call, a) CALL_5(call, a, 0, 0, 0, 0)

static int unknown(const char *name) {
    handle(SIMULATOR_UNKNOWN, (long)name, 0, 0, 0, 0);
    errno = ENOSYS;
    return -1;
}

#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
// A sanitizer replaces the same functions in the programs that it is built into, with the tests among them. Then nothing
// is simulated.
bool simulator_is_available(void) { return false; }

static void note_word(bool is_change) { (void)is_change; }

#else

bool simulator_is_available(void) { return true; }

// Opening, reading, writing.

#define MODE(flags) \
    ({ \
        unsigned int mode = 0; \
        if ((flags) & (O_CREAT | O_TMPFILE)) { \
            va_list list; \
            va_start(list, flags); \
            mode = va_arg(list, unsigned int); \
            va_end(list); \
        } \
        mode; \
    })

int open(const char *path, int flags, ...) {
    unsigned int mode = MODE(flags);
    if (!simulator_is_active()) return REAL(open)(path, flags, mode);
    return (int)CALL_4(SIMULATOR_OPEN, AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...) {
    unsigned int mode = MODE(flags);
    if (!simulator_is_active()) return REAL(openat)(directory, path, flags, mode);
    return (int)CALL_4(SIMULATOR_OPEN, directory, path, flags, mode);
}

// The numbers of calls that glibc 2.36 does not define.
#ifndef SYS_getxattrat
#define SYS_getxattrat 464
#endif

struct open_arguments {
    uint64_t flags, mode, resolve;
};
struct attribute_arguments {
    uint64_t value;
    uint32_t size, flags;
};

long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long), d = va_arg(list, long),
         e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    if (simulator_is_active()) {
        switch (number) {
        case SYS_openat2: {
            const struct open_arguments *how = (const void *)c;
            return CALL_4(SIMULATOR_OPEN, (int)a, b, how->flags, how->mode);
        }
        case SYS_read: return CALL_4(SIMULATOR_READ, (int)a, b, c, -1);
        case SYS_close: return CALL_1(SIMULATOR_CLOSE, (int)a);
        case SYS_getdents64: return CALL_3(SIMULATOR_LIST, (int)a, b, c);
        case SYS_getxattrat: {
            const struct attribute_arguments *value = (const void *)e;
            return CALL_5(SIMULATOR_GET_ATTRIBUTE, (int)a, b, d, value->value, value->size);
        }
        case SYS_getrandom: return CALL_2(SIMULATOR_RANDOM, a, b);
        case SYS_close_range: return unknown("close_range");
        default: break;
        }
    }
    return REAL(syscall)(number, a, b, c, d, e, f);
}

ssize_t pread(int file, void *buffer, size_t count, off_t offset) {
    if (!simulator_is_active()) return REAL(pread)(file, buffer, count, offset);
    return CALL_4(SIMULATOR_READ, file, buffer, count, offset);
}

ssize_t write(int file, const void *buffer, size_t count) {
    if (!simulator_is_active() || file <= 2) return REAL(write)(file, buffer, count);
    return CALL_4(SIMULATOR_WRITE, file, buffer, count, -1);
}

ssize_t pwrite(int file, const void *buffer, size_t count, off_t offset) {
    if (!simulator_is_active()) return REAL(pwrite)(file, buffer, count, offset);
    return CALL_4(SIMULATOR_WRITE, file, buffer, count, offset);
}

off_t lseek(int file, off_t offset, int whence) {
    if (!simulator_is_active()) return REAL(lseek)(file, offset, whence);
    return CALL_3(SIMULATOR_SEEK, file, offset, whence);
}

ssize_t copy_file_range(int source, off_t *from, int target, off_t *to, size_t count, unsigned int flags) {
    if (!simulator_is_active()) return REAL(copy_file_range)(source, from, target, to, count, flags);
    // As between two file systems: the caller then reads and writes.
    errno = EXDEV;
    return -1;
}

int ioctl(int file, unsigned long request, ...) {
    va_list list;
    va_start(list, request);
    long argument = va_arg(list, long);
    va_end(list);
    if (!simulator_is_active()) return REAL(ioctl)(file, request, argument);
    // No extents can be shared.
    errno = EOPNOTSUPP;
    return -1;
}

// Status.

int fstatat(int directory, const char *restrict path, struct stat *restrict status, int flags) {
    if (!simulator_is_active()) return REAL(fstatat)(directory, path, status, flags);
    return (int)CALL_4(SIMULATOR_STATUS, directory, path, status, flags);
}

int fstat(int file, struct stat *status) {
    if (!simulator_is_active()) return REAL(fstat)(file, status);
    return (int)CALL_4(SIMULATOR_STATUS, file, "", status, AT_EMPTY_PATH);
}

int stat(const char *restrict path, struct stat *restrict status) {
    if (!simulator_is_active()) return REAL(stat)(path, status);
    return (int)CALL_4(SIMULATOR_STATUS, AT_FDCWD, path, status, 0);
}

int lstat(const char *restrict path, struct stat *restrict status) {
    if (!simulator_is_active()) return REAL(lstat)(path, status);
    return (int)CALL_4(SIMULATOR_STATUS, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

int statx(int directory, const char *restrict path, int flags, unsigned int mask, struct statx *restrict status) {
    if (!simulator_is_active()) return REAL(statx)(directory, path, flags, mask, status);
    int64_t time = 0;
    if (CALL_2(SIMULATOR_BIRTH_TIME, directory, &time) < 0) return -1;
    memset(status, 0, sizeof *status);
    status->stx_mask = STATX_BTIME;
    status->stx_btime.tv_sec = time / 1000000000;
    status->stx_btime.tv_nsec = (unsigned int)(time % 1000000000);
    return 0;
}

int access(const char *path, int mode) {
    struct stat status;
    if (!simulator_is_active()) return REAL(access)(path, mode);
    return stat(path, &status);
}

int fstatfs(int file, struct statfs *status) {
    if (!simulator_is_active()) return REAL(fstatfs)(file, status);
    int64_t values[2] = {0};
    if (CALL_2(SIMULATOR_FILE_SYSTEM_KIND, file, values) < 0) return -1;
    memset(status, 0, sizeof *status);
    status->f_type = values[0];
    status->f_bsize = status->f_frsize = values[1];
    return 0;
}

int fstatvfs(int file, struct statvfs *status) {
    if (!simulator_is_active()) return REAL(fstatvfs)(file, status);
    int64_t values[3] = {0};
    if (CALL_2(SIMULATOR_FILE_SYSTEM_SPACE, file, values) < 0) return -1;
    memset(status, 0, sizeof *status);
    status->f_bsize = status->f_frsize = (unsigned long)values[0];
    status->f_blocks = (unsigned long)values[1];
    status->f_bfree = status->f_bavail = (unsigned long)values[2];
    status->f_files = 1 << 20;
    status->f_ffree = status->f_favail = 1 << 19;
    status->f_flag = ST_RELATIME;
    return 0;
}

// Changes of files and names.

int fsync(int file) {
    if (!simulator_is_active()) return REAL(fsync)(file);
    return (int)CALL_1(SIMULATOR_SYNCHRONIZE, file);
}

int fdatasync(int file) {
    if (!simulator_is_active()) return REAL(fdatasync)(file);
    return (int)CALL_1(SIMULATOR_SYNCHRONIZE, file);
}

int ftruncate(int file, off_t length) {
    if (!simulator_is_active()) return REAL(ftruncate)(file, length);
    return (int)CALL_2(SIMULATOR_TRUNCATE, file, length);
}

int posix_fallocate(int file, off_t offset, off_t length) {
    if (!simulator_is_active()) return REAL(posix_fallocate)(file, offset, length);
    // Returns the error itself.
    return CALL_3(SIMULATOR_ALLOCATE, file, offset, length) < 0 ? errno : 0;
}

int fchmod(int file, mode_t mode) {
    if (!simulator_is_active()) return REAL(fchmod)(file, mode);
    return (int)CALL_2(SIMULATOR_CHANGE_MODE, file, mode);
}

int fchown(int file, uid_t owner, gid_t group) {
    if (!simulator_is_active()) return REAL(fchown)(file, owner, group);
    return (int)CALL_3(SIMULATOR_CHANGE_OWNER, file, owner, group);
}

int futimens(int file, const struct timespec times[2]) {
    if (!simulator_is_active()) return REAL(futimens)(file, times);
    return (int)CALL_3(SIMULATOR_SET_TIMES, file, "", times);
}

int utimensat(int directory, const char *path, const struct timespec times[2], int flags) {
    if (!simulator_is_active()) return REAL(utimensat)(directory, path, times, flags);
    return (int)CALL_3(SIMULATOR_SET_TIMES, directory, path, times);
}

int mkdirat(int directory, const char *path, mode_t mode) {
    if (!simulator_is_active()) return REAL(mkdirat)(directory, path, mode);
    return (int)CALL_3(SIMULATOR_MAKE_DIRECTORY, directory, path, mode);
}

int mkdir(const char *path, mode_t mode) {
    if (!simulator_is_active()) return REAL(mkdir)(path, mode);
    return (int)CALL_3(SIMULATOR_MAKE_DIRECTORY, AT_FDCWD, path, mode);
}

int linkat(int directory, const char *path, int new_directory, const char *new_path, int flags) {
    if (!simulator_is_active()) return REAL(linkat)(directory, path, new_directory, new_path, flags);
    return (int)CALL_5(SIMULATOR_LINK, directory, path, new_directory, new_path, flags);
}

int renameat(int directory, const char *path, int new_directory, const char *new_path) {
    if (!simulator_is_active()) return REAL(renameat)(directory, path, new_directory, new_path);
    return (int)CALL_4(SIMULATOR_RENAME, directory, path, new_directory, new_path);
}

int unlinkat(int directory, const char *path, int flags) {
    if (!simulator_is_active()) return REAL(unlinkat)(directory, path, flags);
    return (int)CALL_3(SIMULATOR_UNLINK, directory, path, flags);
}

ssize_t readlinkat(int directory, const char *restrict path, char *restrict buffer, size_t size) {
    if (!simulator_is_active()) return REAL(readlinkat)(directory, path, buffer, size);
    // There are no symbolic links.
    errno = EINVAL;
    return -1;
}

ssize_t fgetxattr(int file, const char *name, void *value, size_t size) {
    if (!simulator_is_active()) return REAL(fgetxattr)(file, name, value, size);
    return CALL_5(SIMULATOR_GET_ATTRIBUTE, file, "", name, value, size);
}

int fsetxattr(int file, const char *name, const void *value, size_t size, int flags) {
    if (!simulator_is_active()) return REAL(fsetxattr)(file, name, value, size, flags);
    return (int)CALL_4(SIMULATOR_SET_ATTRIBUTE, file, name, value, size);
}

int fremovexattr(int file, const char *name) {
    if (!simulator_is_active()) return REAL(fremovexattr)(file, name);
    return (int)CALL_2(SIMULATOR_REMOVE_ATTRIBUTE, file, name);
}

// Locks and descriptors.

int flock(int file, int operation) {
    if (!simulator_is_active()) return REAL(flock)(file, operation);
    return (int)CALL_2(SIMULATOR_LOCK, file, operation);
}

int fcntl(int file, int command, ...) {
    va_list list;
    va_start(list, command);
    long argument = va_arg(list, long);
    va_end(list);
    if (!simulator_is_active()) return REAL(fcntl)(file, command, argument);
    switch (command) {
    case F_OFD_SETLK: {
        const struct flock *range = (const void *)argument;
        return (int)CALL_3(SIMULATOR_LOCK_RANGE, file, range->l_start, range->l_type == F_UNLCK);
    }
    case F_DUPFD_CLOEXEC: return (int)CALL_1(SIMULATOR_DUPLICATE, file);
    case F_GETFL:
    case F_GETFD: return (int)CALL_1(SIMULATOR_DESCRIPTOR_FLAGS, file);
    case F_SETFD: return 0;
    default: return unknown("fcntl");
    }
}

// Memory.

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset) {
    if (!simulator_is_active() || file < 0) return REAL(mmap)(address, length, protection, flags, file, offset);
    return (void *)CALL_3(SIMULATOR_MAP, file, length, protection);
}

int munmap(void *address, size_t length) {
    if (!simulator_is_active() || handle(SIMULATOR_UNMAP, (long)address, (long)length, 0, 0, 0) < 0)
        return REAL(munmap)(address, length);
    return 0;
}

// Not every access in a walk over a whole table is a step: after a hundred accesses without a call in between, only one
// in 512 is.
static void note_word(bool is_change) {
    if (!simulator_is_active()) return;
    unsigned int number = words_in_a_row++;
    if (number < 100 || number % 512 == 0) {
        handle(is_change ? SIMULATOR_STORE : SIMULATOR_WORD, 0, 0, 0, 0, 0);
        words_in_a_row = number + 1;
    }
}

// Time, chance, identity.

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!simulator_is_active()) return REAL(clock_gettime)(clock, time);
    long nanoseconds = handle(SIMULATOR_CLOCK, clock, 0, 0, 0, 0);
    time->tv_sec = nanoseconds / 1000000000;
    time->tv_nsec = nanoseconds % 1000000000;
    return 0;
}

int nanosleep(const struct timespec *duration, struct timespec *rest) {
    if (!simulator_is_active()) return REAL(nanosleep)(duration, rest);
    return (int)CALL_1(SIMULATOR_SLEEP, duration->tv_sec * 1000000000 + duration->tv_nsec);
}

int pthread_create(
    pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*body)(void *), void *restrict context) {
    // As at the limit of threads: a simulated process has one.
    if (simulator_is_active()) return EAGAIN;
    return REAL(pthread_create)(thread, attributes, body, context);
}

ssize_t getrandom(void *buffer, size_t count, unsigned int flags) {
    if (!simulator_is_active()) return REAL(getrandom)(buffer, count, flags);
    return CALL_2(SIMULATOR_RANDOM, buffer, count);
}

void arc4random_buf(void *buffer, size_t count) {
    if (simulator_is_active()) {
        handle(SIMULATOR_RANDOM, (long)buffer, (long)count, 0, 0, 0);
    } else {
        while (count > 0) {
            ssize_t got = REAL(getrandom)(buffer, count, 0);
            if (got < 0) continue;
            buffer = (char *)buffer + got;
            count -= (size_t)got;
        }
    }
}

pid_t getpid(void) { return process ? process : REAL(getpid)(); }

// The same user, whoever runs the simulator.
uid_t geteuid(void) { return process ? 1000 : REAL(geteuid)(); }

int uname(struct utsname *name) {
    int result = REAL(uname)(name);
    // linkat(AT_EMPTY_PATH) works since 6.10.
    if (result == 0 && process) strcpy(name->release, "6.12.0");
    return result;
}

char *getcwd(char *buffer, size_t size) {
    if (!simulator_is_active()) return REAL(getcwd)(buffer, size);
    return strdup("/");
}

#endif

// Threads.

struct beginning {
    int identifier;
    void (*body)(void *);
    void *context;
};

static void *begin(void *argument) {
    struct beginning beginning = *(struct beginning *)argument;
    free(argument);
    process = beginning.identifier;
    beginning.body(beginning.context);
    process = 0;
    return NULL;
}

int simulator_start(int identifier, void (*body)(void *), void *context) {
    struct beginning *beginning = malloc(sizeof *beginning);
    if (!beginning) return ENOMEM;
    *beginning = (struct beginning){identifier, body, context};
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 20);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int error = REAL(pthread_create)(&thread, &attributes, begin, beginning);
    pthread_attr_destroy(&attributes);
    if (error) free(beginning);
    return error;
}

int simulator_make_memory(long size) {
    int descriptor = memfd_create("simulated", MFD_CLOEXEC);
    if (descriptor >= 0 && REAL(ftruncate)(descriptor, size) != 0) {
        REAL(syscall)(SYS_close, descriptor);
        return -1;
    }
    return descriptor;
}

void *simulator_map_memory(int descriptor, long size) {
    void *address = REAL(mmap)(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
    return address == MAP_FAILED ? NULL : address;
}

void simulator_unmap_memory(void *address, long size) { REAL(munmap)(address, (size_t)size); }

void simulator_close_memory(int descriptor) { REAL(syscall)(SYS_close, descriptor); }
