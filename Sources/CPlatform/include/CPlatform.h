// SPDX-License-Identifier: Apache-2.0
//
// What the Glibc module of Swift hides: functions behind _GNU_SOURCE, constants that are macros with
// casts, system calls younger than the C library, and globals that Swift 6 refuses. One thin wrapper
// each, named after the call it wraps; all of them set errno as the call does.

#ifndef CPLATFORM_H
#define CPLATFORM_H

#include <stddef.h>
#include <stdint.h>

// Nothing of the system is included here: its types would seem to be defined by this module.

#include "CPlatformHash.h"

/// What tests put between a system call and its caller; NULL in every other process.
///
/// It is asked for `count` bytes and says how many the call may move, or -1, with errno set, to have it fail.
typedef long cplatform_injector(int call, long count);
extern cplatform_injector *cplatform_present_injector __attribute__((visibility("hidden")));

/// Sets the injector, for the rest of the process.
void cplatform_inject(cplatform_injector *injector);

/// Whether there is an injector: one load, and a branch that is never taken.
static inline bool cplatform_is_injecting(void) {
    return __builtin_expect(__atomic_load_n(&cplatform_present_injector, __ATOMIC_RELAXED) != NULL, 0);
}

/// What the injector says.
long cplatform_granted(int call, long count);

/// The number of the first of `count` words that has a bit of `mask`; `count` if none has.
///
/// In C, as Swift takes a hundred times as long for it where nothing is optimized.
static inline size_t cplatform_first_word(const uint64_t *words, size_t count, uint64_t mask) {
    for (size_t index = 0; index < count; index++) {
        if (__atomic_load_n(&words[index], __ATOMIC_ACQUIRE) & mask) return index;
    }
    return count;
}

/// O_TMPFILE: an unnamed file in a directory, open(2).
extern const int cplatform_O_TMPFILE;
/// O_NOATIME: reading leaves the access time alone, open(2).
extern const int cplatform_O_NOATIME;
/// O_PATH: a place in the file system, without a look into it, open(2).
extern const int cplatform_O_PATH;
/// ST_NOATIME and ST_RELATIME: how a mount notes reads, statvfs(3).
extern const unsigned long cplatform_ST_NOATIME, cplatform_ST_RELATIME;
/// AT_EMPTY_PATH for linkat(2).
extern const int cplatform_AT_EMPTY_PATH;
/// F_OFD_SETLK: a lock on bytes that is the open file description's, fcntl(2).
extern const int cplatform_F_OFD_SETLK;
/// SEEK_DATA for lseek(2).
extern const int cplatform_SEEK_DATA;
/// UTIME_OMIT for utimensat(2).
extern const long cplatform_UTIME_OMIT;

/// openat2(2) with RESOLVE_NO_SYMLINKS: no component of the path may be a symbolic link. Where the
/// kernel lacks it (before 5.6, or a sandbox that forbids it): openat(2) with O_NOFOLLOW.
int cplatform_openat_nofollow(int directory, const char *path, int flags, unsigned int mode);

/// read(2) and close(2) by number: glibc's are points of cancellation, which in a process with several threads costs two
/// atomic steps a call.
long cplatform_read(int descriptor, void *buffer, size_t count);
int cplatform_close(int descriptor);

/// getxattrat(2), Linux 6.13, not following a symbolic link at the end. ENOSYS on older kernels.
long cplatform_getxattrat(int directory, const char *path, const char *name, void *value, size_t size);

/// getdents64(2): the number of bytes, 0 at the end.
long cplatform_getdents64(int directory, void *buffer, size_t size);

/// fgetxattr(2).
long cplatform_fgetxattr(int descriptor, const char *name, void *value, size_t size);
/// fsetxattr(2), creating or replacing.
int cplatform_fsetxattr(int descriptor, const char *name, const void *value, size_t size);
/// fremovexattr(2).
int cplatform_fremovexattr(int descriptor, const char *name);

/// ioctl FICLONE: shares the extents of `source`, ioctl_ficlone(2).
int cplatform_clone(int source, int destination);
/// copy_file_range(2) at both descriptors' own offsets.
long cplatform_copy_file_range(int source, int destination, size_t count);

/// The magic number of the file system behind `descriptor`, statfs(2), and its block size; -1 on failure.
int64_t cplatform_filesystem_magic(int descriptor, int64_t *block_size);

/// When an open file came to be, in nanoseconds since 1970, statx(2); 0 where the file system does not tell, or a
/// sandbox forbids the call.
int64_t cplatform_birth_time(int descriptor);

/// strerrorname_np(3): "ENOENT", or NULL.
const char *cplatform_errno_name(int number);

/// The words that this program was started with, its name first; NULL from the last on. Swift's own list is read from
/// /proc, and empty where that is not mounted.
const char *cplatform_argument(int index);
/// AT_EXECFN: the path that this program was executed by, getauxval(3), or NULL.
const char *cplatform_program(void);

/// One row of the option table of getopt_long(3), without its pointer to a flag.
struct cplatform_option {
    /// The long name without dashes; NULL ends the table.
    const char *name;
    /// 0: takes no argument; 1: requires one; 2: optional.
    int argument;
    /// What cplatform_getopt_long finds it by.
    int value;
};

/// What getopt_long(3) has found.
struct cplatform_found {
    /// The value of the option, '?' or ':' for a bad one, -1 at the end.
    int value;
    /// The argument of the option, or NULL.
    const char *argument;
    /// The index of the next argument to be scanned.
    int next;
    /// The option character or value that was not understood.
    int offender;
};

/// getopt_long(3), which keeps the state of a scan in globals. Prints nothing. At most 64 options.
struct cplatform_found cplatform_getopt_long(
    int count, char *const arguments[], const char *letters, const struct cplatform_option *options, bool is_first);

/// Has the cache line at `address` fetched, which may be any, without waiting for it.
/// Puts the pages at `pages` in the place of those at `place`, mremap(2); both are `size` bytes. 0, or -1 and errno.
int cplatform_replace_pages(void *pages, size_t size, void *place);

static inline void cplatform_prefetch(const void *address) { __builtin_prefetch(address); }

/// The same for memory that is about to be changed: this processor takes the line for itself at once, where a
/// load would get it shared with others that have it.
static inline void cplatform_prefetch_to_change(const void *address) {
#if defined(__x86_64__)
    // The compiler takes this instruction only where it is told of the processor; to those without it, it is a no-op.
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
    __builtin_prefetch(address, 1);
#endif
}

/// Where this process's generation is, 0 as long as it has none; and what gives it one.
extern uint64_t *cplatform_generation_place;
uint64_t cplatform_begin_generation(void);

/// A number that tells this process from all that it was forked from, never 0. Not from what it starts by vfork(2) or
/// posix_spawn(3), which has its memory until it executes something.
static inline uint64_t cplatform_process_generation(void) {
    uint64_t *place = __atomic_load_n(&cplatform_generation_place, __ATOMIC_ACQUIRE);
    uint64_t generation = __atomic_load_n(place, __ATOMIC_RELAXED);
    return generation != 0 ? generation : cplatform_begin_generation();
}

/// What cplatform_thread_number has given the calling thread, and what gives it that.
extern _Thread_local unsigned int cplatform_numbered_thread;
unsigned int cplatform_number_thread(void);

/// A number of the calling thread's own, counted up as threads first ask, from another number in each process.
static inline unsigned int cplatform_thread_number(void) {
    unsigned int number = cplatform_numbered_thread;
    return number != 0 ? number : cplatform_number_thread();
}

struct cplatform_pipe_ends { int reading, writing; };
/// pipe2(2) with O_CLOEXEC.
int cplatform_pipe(struct cplatform_pipe_ends *ends);

/// POSIX_SPAWN_SETSID: the new process leads a session of its own, posix_spawnattr_setflags(3).
extern const short cplatform_POSIX_SPAWN_SETSID;
/// signalfd(2) for the signals of this sigset_t, close-on-exec.
int cplatform_signalfd(const void *signals);
/// close_range(2): closes all descriptors from `first` on. ENOSYS before Linux 5.9.
int cplatform_close_from(unsigned int first);

/// pthread_setname_np(3) for the calling thread: at most 15 bytes.
void cplatform_name_thread(const char *name);

/// Makes the handler of `signal` write its number, one byte, to `descriptor`, and start system calls that it
/// interrupts anew (SA_RESTART); sigaction(2). A second signal of those handled so, and any in a child that has
/// not called exec, does what the signal does without a handler.
int cplatform_signal_to_pipe(int signal, int descriptor);
/// Whether `signal` has that handler from a process that this one was forked from; sigaction(2), getpid(2).
int cplatform_signal_is_inherited(int signal);

#endif
