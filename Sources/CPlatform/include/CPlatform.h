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
/// SEEK_DATA for lseek(2).
extern const int cplatform_SEEK_DATA;
/// UTIME_OMIT for utimensat(2).
extern const long cplatform_UTIME_OMIT;

/// openat2(2) with RESOLVE_NO_SYMLINKS: no component of the path may be a symbolic link. Where the
/// kernel lacks it (before 5.6, or a sandbox that forbids it): openat(2) with O_NOFOLLOW.
int cplatform_openat_nofollow(int directory, const char *path, int flags, unsigned int mode);

/// Opens or creates a regular file and nothing else, as cplatform_openat_nofollow does, close-on-exec and never
/// waiting (O_NONBLOCK). Looked at (fstat) unless it was made by this call: what is a directory gives EISDIR; a pipe,
/// a socket or a device ENXIO.
int cplatform_open_regular(int directory, const char *path, int flags, unsigned int mode);

/// Reads a regular file from its start and closes it again: the number of bytes, or -1 and errno. Opened as by
/// cplatform_open_regular, but looked at only where it can't be read or holds other than `size` - 1 bytes. Stops when all but the last of `size` bytes are there: who expects a file of
/// `size` - 1 bytes needs no further call to know that it ends, and sees one byte more where it does not.
long cplatform_read_file(int directory, const char *path, void *buffer, size_t size);

/// getxattrat(2), Linux 6.13, not following a symbolic link at the end. ENOSYS on older kernels.
long cplatform_getxattrat(int directory, const char *path, const char *name, void *value, size_t size);
/// setxattrat(2), Linux 6.13, not following a symbolic link at the end. ENOSYS on older kernels.
int cplatform_setxattrat(int directory, const char *path, const char *name, const void *value, size_t size);

/// getdents64(2): the number of bytes, 0 at the end.
long cplatform_getdents64(int directory, void *buffer, size_t size);

/// fgetxattr(2).
long cplatform_fgetxattr(int descriptor, const char *name, void *value, size_t size);
/// fsetxattr(2), creating or replacing.
int cplatform_fsetxattr(int descriptor, const char *name, const void *value, size_t size);

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
    /// What cplatform_getopt_long returns for it.
    int value;
};

/// Starts a scan of a new argument vector; the scanner's state is global, as getopt's is.
void cplatform_getopt_reset(void);
/// getopt_long(3): value of the option found, '?' or ':' for a bad one, -1 at the end. Prints nothing.
/// At most 64 options.
int cplatform_getopt_long(
    int count, char *const arguments[], const char *short_options, const struct cplatform_option *options);
/// The argument of the option found last, or NULL.
const char *cplatform_getopt_argument(void);
/// The index of the next argument to be scanned.
int cplatform_getopt_index(void);
/// The option character or value that was not understood.
int cplatform_getopt_offender(void);

/// Has the cache line at `address` fetched, which may be any, without waiting for it.
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

/// Nanoseconds of CLOCK_REALTIME_COARSE since 1970, clock_gettime(2): no system call. As far as 64 bits go.
int64_t cplatform_coarse_now(void);

/// What cplatform_thread_number has given the calling thread, and what gives it that.
extern _Thread_local unsigned int cplatform_numbered_thread;
unsigned int cplatform_number_thread(void);

/// A number of the calling thread's own, counted up as threads first ask, from another number in each process.
static inline unsigned int cplatform_thread_number(void) {
    unsigned int number = cplatform_numbered_thread;
    return number != 0 ? number : cplatform_number_thread();
}

/// ioctl TIOCGWINSZ: the rows and columns of a terminal, ioctl_tty(2); -1 and errno where it is none.
int cplatform_terminal_size(int descriptor, int *rows, int *columns);

/// pipe2(2) with O_CLOEXEC: reading end first.
int cplatform_pipe(int descriptors[2]);

/// POSIX_SPAWN_SETSID: the new process leads a session of its own, posix_spawnattr_setflags(3).
extern const short cplatform_POSIX_SPAWN_SETSID;
/// signalfd(2) for these signals, close-on-exec.
int cplatform_signalfd(const int *signals, size_t count);
/// close_range(2): closes all descriptors from `first` on. ENOSYS before Linux 5.9.
int cplatform_close_from(unsigned int first);
/// setrlimit(2): this process leaves no core file.
int cplatform_forbid_core(void);

/// The exit status that waitpid(2) reported, or -1 where the process did not exit by itself.
int cplatform_exited_status(int status);
/// The signal that ended the process that waitpid(2) reported, or 0.
int cplatform_terminating_signal(int status);

/// pthread_setname_np(3) for the calling thread: at most 15 bytes.
void cplatform_name_thread(const char *name);

/// Makes the handler of `signal` write its number, one byte, to `descriptor`, and start system calls that it
/// interrupts anew (SA_RESTART); sigaction(2). A second signal of those handled so, and any in a child that has
/// not called exec, does what the signal does without a handler.
int cplatform_signal_to_pipe(int signal, int descriptor);
/// Whether `signal` has that handler from a process that this one was forked from; sigaction(2), getpid(2).
int cplatform_signal_is_inherited(int signal);

#endif
