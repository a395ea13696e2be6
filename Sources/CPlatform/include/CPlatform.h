// SPDX-License-Identifier: Apache-2.0
//
// What Swift's Glibc module lacks: functions behind _GNU_SOURCE, constants that are macros with casts, system calls
// newer than the C library, and globals that Swift 6 rejects. Each has one thin wrapper, named after the call that it
// wraps, which sets errno as the call does.

#ifndef CPLATFORM_H
#define CPLATFORM_H

#include <stddef.h>
#include <stdint.h>

// No other system header is included here, because its types would appear to be defined by this module.

#include "CPlatformHash.h"

/// A hook by which tests change the result of a system call; NULL in every other process.
///
/// It gets the requested number of bytes and returns the number of bytes that the call may move. To make the call
/// fail, it sets errno and returns -1.
typedef long cplatform_injector(int call, long count);
extern cplatform_injector *cplatform_present_injector __attribute__((visibility("hidden")));

/// Sets the injector, for the rest of the process.
void cplatform_inject(cplatform_injector *injector);

/// Whether there is an injector: one load, and a branch that is never taken.
static inline bool cplatform_is_injecting(void) {
    return __builtin_expect(__atomic_load_n(&cplatform_present_injector, __ATOMIC_RELAXED) != NULL, 0);
}

/// Returns the injector's result; must be called only if there is an injector.
long cplatform_granted(int call, long count);

/// A function that the simulator calls before each access to a word of a mapped file; NULL in every other process.
///
/// Only debug builds, and those of the simulator, look at it.
extern void (*cplatform_word_hook)(bool is_change);

/// Calls the hook, if there is one.
static inline void cplatform_before_word(bool is_change) {
    if (__builtin_expect(cplatform_word_hook != NULL, 0)) cplatform_word_hook(is_change);
}

/// Returns the index of the first of `count` words that has a bit of `mask`, or `count` if none has.
///
/// Written in C because unoptimized Swift takes a hundred times as long.
static inline size_t cplatform_first_word(const uint64_t *words, size_t count, uint64_t mask) {
    for (size_t index = 0; index < count; index++) {
        if (__atomic_load_n(&words[index], __ATOMIC_ACQUIRE) & mask) return index;
    }
    return count;
}

/// Stores `value` in each word, with relaxed ordering.
///
/// Written in C for the same reason as cplatform_first_word.
static inline void cplatform_store_words(uint64_t *words, size_t count, uint64_t value) {
    for (size_t index = 0; index < count; index++) {
        __atomic_store_n(&words[index], value, __ATOMIC_RELAXED);
    }
}

/// O_TMPFILE: an unnamed file in a directory, open(2).
extern const int cplatform_O_TMPFILE;
/// O_NOATIME: reads do not update the access time, open(2).
extern const int cplatform_O_NOATIME;
/// O_PATH: a location in the file system, without access to its contents, open(2).
extern const int cplatform_O_PATH;
/// ST_NOATIME and ST_RELATIME: how a mount records reads, statvfs(3).
extern const unsigned long cplatform_ST_NOATIME, cplatform_ST_RELATIME;
/// F_OFD_SETLK: a byte-range lock owned by the open file description, fcntl(2).
extern const int cplatform_F_OFD_SETLK;
/// SEEK_DATA for lseek(2).
extern const int cplatform_SEEK_DATA;
/// UTIME_OMIT for utimensat(2).
extern const long cplatform_UTIME_OMIT;

/// A path of at most 95 bytes and the final NUL. It is passed by value, because in Swift the address of a constant is
/// available only inside a closure.
struct cplatform_path { char bytes[96]; };

/// openat2(2) with RESOLVE_NO_SYMLINKS: no component of the path may be a symbolic link. If the kernel lacks the call
/// (before 5.6) or a sandbox forbids it, openat(2) with O_NOFOLLOW, which checks only the last component.
int cplatform_openat_nofollow(int directory, struct cplatform_path path, int flags, unsigned int mode);

/// The calls of the same names. None follows a symbolic link at the end of the path.
int cplatform_mkdirat(int directory, struct cplatform_path path, unsigned int mode);
int cplatform_unlinkat(int directory, struct cplatform_path path);
int cplatform_linkat(int directory, struct cplatform_path path, int new_directory, struct cplatform_path new_path);
int cplatform_renameat(int directory, struct cplatform_path path, int new_directory, struct cplatform_path new_path);
/// `status` points to a struct stat.
int cplatform_fstatat(int directory, struct cplatform_path path, void *status);

/// linkat(2) with AT_EMPTY_PATH: names an unnamed file that this process has opened. ENOENT before Linux 6.10.
int cplatform_link_descriptor(int file, int directory, struct cplatform_path path);
/// linkat(2) with AT_SYMLINK_FOLLOW: names the file to which the symbolic link `link` leads.
int cplatform_link_target(const char *link, int directory, struct cplatform_path path);

/// utimensat(2): sets the access time and leaves the modification time unchanged.
int cplatform_set_access_time(int directory, struct cplatform_path path, int64_t seconds, long nanoseconds);
/// utimensat(2): sets both times to the kernel's current time.
int cplatform_touch(int directory, struct cplatform_path path);

/// read(2) and close(2) by syscall(2): glibc's functions are cancellation points, which in a process with several
/// threads costs two atomic operations per call.
long cplatform_read(int descriptor, void *buffer, size_t count);
int cplatform_close(int descriptor);

/// getxattrat(2), Linux 6.13, without following a symbolic link at the end of the path. ENOSYS on older kernels.
long cplatform_getxattrat(int directory, struct cplatform_path path, const char *name, void *value, size_t size);

/// getdents64(2): returns the number of bytes, 0 at the end.
long cplatform_getdents64(int directory, void *buffer, size_t size);

/// fgetxattr(2).
long cplatform_fgetxattr(int descriptor, const char *name, void *value, size_t size);
/// fsetxattr(2), which creates or replaces the attribute.
int cplatform_fsetxattr(int descriptor, const char *name, const void *value, size_t size);
/// fremovexattr(2).
int cplatform_fremovexattr(int descriptor, const char *name);

/// ioctl FICLONE: shares the extents of `source`, ioctl_ficlone(2).
int cplatform_clone(int source, int destination);
/// copy_file_range(2) at both descriptors' own offsets.
long cplatform_copy_file_range(int source, int destination, size_t count);

/// Returns the magic number of the file system of `descriptor`, statfs(2), and its block size; -1 on failure.
int64_t cplatform_filesystem_magic(int descriptor, int64_t *block_size);

/// Returns the creation time of an open file, in nanoseconds since 1970, statx(2); 0 if the file system does not
/// record it, or a sandbox forbids the call.
int64_t cplatform_birth_time(int descriptor);

/// strerrorname_np(3): a name such as "ENOENT", or NULL for an unknown number.
const char *cplatform_errno_name(int number);

/// Returns an argument of this program, of which 0 is the program's name; NULL after the last one. Swift reads its
/// own list from /proc, so that it is empty if /proc is not mounted.
const char *cplatform_argument(int index);
/// AT_EXECFN: the path that was executed, getauxval(3), or NULL.
const char *cplatform_program(void);

/// One row of the option table of getopt_long(3), without its pointer to a flag.
struct cplatform_option {
    /// The long name without dashes; NULL ends the table.
    const char *name;
    /// 0: takes no argument; 1: requires one; 2: optional.
    int argument;
    /// Identifies the option in the result of cplatform_getopt_long.
    int value;
};

/// The result of getopt_long(3).
struct cplatform_found {
    /// The value of the option; '?' or ':' for an invalid one; -1 at the end.
    int value;
    /// The argument of the option, or NULL.
    const char *argument;
    /// The index of the next argument to be scanned.
    int next;
    /// The option character or value that was not recognized.
    int offender;
};

/// getopt_long(3), which keeps the state of a scan in globals; `is_first` begins a new scan. Prints nothing. Takes at
/// most 64 options.
struct cplatform_found cplatform_getopt_long(
    int count, char *const arguments[], const char *letters, const struct cplatform_option *options, bool is_first);

/// Replaces the pages at `place` by those at `pages`, mremap(2); both are `size` bytes. Returns 0, or -1 and sets
/// errno.
int cplatform_replace_pages(void *pages, size_t size, void *place);

/// Prefetches the cache line at `address` without waiting for it. Any address is allowed.
static inline void cplatform_prefetch(const void *address) { __builtin_prefetch(address); }

/// Prefetches like cplatform_prefetch, for memory that is about to be changed: this processor gets the line
/// exclusively at once, whereas a load would share it with other processors that have it.
static inline void cplatform_prefetch_to_change(const void *address) {
#if defined(__x86_64__)
    // The compiler emits this instruction only for a processor that is known to have it; processors without it treat
    // it as a no-op.
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
    __builtin_prefetch(address, 1);
#endif
}

/// The location of this process's generation, which is 0 until cplatform_begin_generation assigns one.
extern uint64_t *cplatform_generation_place;
uint64_t cplatform_begin_generation(void);

/// Returns a number that distinguishes this process from all processes that it was forked from; never 0. A child of
/// vfork(2) or posix_spawn(3) has the same number, because it uses the parent's memory until it executes a program.
static inline uint64_t cplatform_process_generation(void) {
    uint64_t *place = __atomic_load_n(&cplatform_generation_place, __ATOMIC_ACQUIRE);
    uint64_t generation = __atomic_load_n(place, __ATOMIC_RELAXED);
    return generation != 0 ? generation : cplatform_begin_generation();
}

/// The number of the calling thread; 0 until cplatform_number_thread assigns one.
extern _Thread_local unsigned int cplatform_numbered_thread;

/// Whether the calling thread runs an asynchronous function that it waits for.
bool cplatform_is_waiting_thread(void);
void cplatform_set_waiting_thread(bool is_waiting);
/// Assigns a number to the calling thread, which must have none, and returns it.
unsigned int cplatform_number_thread(void);

/// Returns the number of the calling thread, which is unique in the process. Threads get consecutive numbers on their
/// first call, beginning with a different number in each process.
static inline unsigned int cplatform_thread_number(void) {
    unsigned int number = cplatform_numbered_thread;
    return number != 0 ? number : cplatform_number_thread();
}

struct cplatform_pipe_ends { int reading, writing; };
/// pipe2(2) with O_CLOEXEC.
int cplatform_pipe(struct cplatform_pipe_ends *ends);

/// POSIX_SPAWN_SETSID: the new process leads a new session, posix_spawnattr_setflags(3).
extern const short cplatform_POSIX_SPAWN_SETSID;
/// signalfd(2) with SFD_CLOEXEC for the signals in a sigset_t.
int cplatform_signalfd(const void *signals);
/// close_range(2): closes all descriptors from `first` on. ENOSYS before Linux 5.9.
int cplatform_close_from(unsigned int first);

/// pthread_setname_np(3) for the calling thread: at most 15 bytes.
void cplatform_name_thread(const char *name);

/// Sets a handler that writes the number of `signal`, one byte, to `descriptor`; system calls that it interrupts are
/// restarted (SA_RESTART); sigaction(2). A second signal with this handler, and any signal in a forked child that has
/// not called exec, has its default effect.
int cplatform_signal_to_pipe(int signal, int descriptor);
/// Whether `signal` has that handler from a process that this one was forked from; sigaction(2), getpid(2).
int cplatform_signal_is_inherited(int signal);

#endif
