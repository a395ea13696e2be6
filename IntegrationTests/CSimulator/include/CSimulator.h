// SPDX-License-Identifier: Apache-2.0
//
// The simulator's own definitions of the C library functions that Platform calls. In a simulated process each call goes
// to a handler; on every other thread it goes to the C library.
//
// The linker binds Platform's calls to these definitions, as it does for the interceptors of the sanitizers, so the
// product's code needs no change.

#ifndef CSIMULATOR_H
#define CSIMULATOR_H

#include <stdbool.h>
#include <stdint.h>

/// The calls that reach the handler. Variants of a call are one call, as in Platform's `SystemCall`.
enum simulator_call {
    SIMULATOR_OPEN,
    SIMULATOR_CLOSE,
    SIMULATOR_READ,
    SIMULATOR_WRITE,
    SIMULATOR_SEEK,
    SIMULATOR_STATUS,
    SIMULATOR_BIRTH_TIME,
    SIMULATOR_FILE_SYSTEM_KIND,
    SIMULATOR_FILE_SYSTEM_SPACE,
    SIMULATOR_SYNCHRONIZE,
    SIMULATOR_TRUNCATE,
    SIMULATOR_ALLOCATE,
    SIMULATOR_MAKE_DIRECTORY,
    SIMULATOR_LINK,
    SIMULATOR_RENAME,
    SIMULATOR_UNLINK,
    SIMULATOR_LIST,
    SIMULATOR_GET_ATTRIBUTE,
    SIMULATOR_SET_ATTRIBUTE,
    SIMULATOR_REMOVE_ATTRIBUTE,
    SIMULATOR_SET_TIMES,
    SIMULATOR_CHANGE_MODE,
    SIMULATOR_CHANGE_OWNER,
    SIMULATOR_DESCRIPTOR_FLAGS,
    SIMULATOR_DUPLICATE,
    SIMULATOR_LOCK,
    SIMULATOR_LOCK_RANGE,
    SIMULATOR_MAP,
    SIMULATOR_UNMAP,
    /// A load of a word of a mapped file, by Platform's `MappedWords`.
    SIMULATOR_WORD,
    /// A change of such a word.
    SIMULATOR_STORE,
    SIMULATOR_CLOCK,
    SIMULATOR_SLEEP,
    SIMULATOR_RANDOM,
    /// A call that the simulator does not have; its name is the argument.
    SIMULATOR_UNKNOWN,
    SIMULATOR_CALLS,
};

/// Makes a call of a simulated process; returns its result, or an errno as a negative number.
typedef long simulator_handler(int call, const long *arguments);

/// Sets the handler of all calls, and of all accesses to mapped words, once.
void simulator_set_handler(simulator_handler *handler);

/// Starts a thread that is a simulated process, and runs `body` on it. Returns 0 or an errno.
int simulator_start(int identifier, void (*body)(void *), void *context);

/// Whether calls can be simulated: not in programs that are built with a sanitizer.
bool simulator_is_available(void);

/// Whether the calling thread is a simulated process whose calls go to the handler.
bool simulator_is_active(void);

/// Maps anonymous memory that can be mapped at several addresses, memfd_create(2); returns a descriptor or -1.
int simulator_make_memory(long size);

/// mmap(2) and munmap(2) of the machine itself; NULL on failure.
void *simulator_map_memory(int descriptor, long size);
void simulator_unmap_memory(void *address, long size);
void simulator_close_memory(int descriptor);

#endif
