// SPDX-License-Identifier: Apache-2.0
//
// Connections over TCP and Unix sockets, with or without TLS. Calls that may wait for the network have a time limit
// in milliseconds, unless stated otherwise. Failures are negative error numbers of errno(3), unless stated otherwise.

#ifndef CSOCKET_H
#define CSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The maximum length of an address in bytes.
enum { ctransport_address_size = 128 };

/// Writes the addresses of a host and port, `ctransport_address_size` bytes each, and their lengths; returns their
/// number, at most `most`. If `is_numeric` is false, the call may wait for name servers, without a time limit.
/// Failures are error numbers of getaddrinfo(3), negated if they are positive.
int ctransport_addresses(const char *_Nonnull host, const char *_Nonnull port, bool is_numeric,
    uint8_t *_Nonnull addresses, uint32_t *_Nonnull lengths, int most);

/// Writes the address of a Unix socket; returns its length, or 0 if the path is too long.
uint32_t ctransport_unix_address(const char *_Nonnull path, uint8_t *_Nonnull address);

/// A connection.
typedef struct ctransport_socket ctransport_socket;
/// The functions of an opened library.
typedef struct ctransport_library ctransport_library;

/// Connects to an address; on failure returns NULL and sets `error` to a positive error number.
ctransport_socket *_Nullable ctransport_socket_connect(
    const uint8_t *_Nonnull address, uint32_t length, int milliseconds, int *_Nonnull error);
void ctransport_socket_free(ctransport_socket *_Nonnull socket);

/// Switches the connection to TLS, which the library implements.
///
/// `url` is https:// with the host, which the certificate must name, and the port. `pinned` is `host:port:` with any
/// address, so that the name is not resolved again; NULL if the host is a number. `authority`, `certificate` and
/// `key` are PEM files; NULL for none. Returns 0, or a CURLcode.
int ctransport_socket_secure(ctransport_socket *_Nonnull socket, const ctransport_library *_Nonnull library,
    const char *_Nonnull url, const char *_Nullable pinned, const char *_Nullable authority,
    const char *_Nullable certificate, const char *_Nullable key, int milliseconds);
/// Returns curl's message for a CURLcode that ctransport_socket_secure has returned.
const char *_Nonnull ctransport_socket_message(const ctransport_socket *_Nonnull socket, int code);

/// Reads at least one byte and returns the number of bytes; 0 at the end of the stream.
int64_t ctransport_socket_read(
    ctransport_socket *_Nonnull socket, void *_Nonnull buffer, size_t count, int milliseconds);

/// Writes at least one byte and returns the number of bytes written.
int64_t ctransport_socket_write(
    ctransport_socket *_Nonnull socket, const void *_Nonnull buffer, size_t count, int milliseconds);

/// Returns whether the connection is still open and no unrequested bytes have arrived.
bool ctransport_socket_is_idle(const ctransport_socket *_Nonnull socket);

#endif
