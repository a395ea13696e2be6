// SPDX-License-Identifier: Apache-2.0
//
// Connections over TCP and unix sockets, with TLS or without, each call with a time limit in milliseconds.
// Failures are negative error numbers of errno(3), where nothing else is said.

#ifndef CSOCKET_H
#define CSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// Bytes of the longest address.
enum { ctransport_address_size = 128 };

/// Writes the addresses of a host and port, `ctransport_address_size` bytes each, and their lengths; how
/// many, at most `most`. May wait for servers of names unless the host must be a number. Failures are
/// negative error numbers of getaddrinfo(3), made negative if they are not.
int ctransport_addresses(const char *_Nonnull host, const char *_Nonnull port, bool is_numeric,
    uint8_t *_Nonnull addresses, uint32_t *_Nonnull lengths, int most);

/// Writes the address of a unix socket; its length, 0 where the path is too long.
uint32_t ctransport_unix_address(const char *_Nonnull path, uint8_t *_Nonnull address);

/// A connection.
typedef struct ctransport_socket ctransport_socket;
/// The functions of an opened library.
typedef struct ctransport_library ctransport_library;

/// Connects; NULL: `error` says why.
ctransport_socket *_Nullable ctransport_socket_connect(
    const uint8_t *_Nonnull address, uint32_t length, int milliseconds, int *_Nonnull error);
void ctransport_socket_free(ctransport_socket *_Nonnull socket);

/// From now on all goes over TLS, by the library's means.
///
/// `url` is https:// with the host, whose name the certificate must have, and the port; `pinned` the two once more,
/// with any address behind them, so that the name is not looked up again: NULL where the host is a number. Files that
/// are NULL are not used. 0, or a CURLcode.
int ctransport_socket_secure(ctransport_socket *_Nonnull socket, const ctransport_library *_Nonnull library,
    const char *_Nonnull url, const char *_Nullable pinned, const char *_Nullable authority,
    const char *_Nullable certificate, const char *_Nullable key, int milliseconds);
/// Curl's words for its failure.
const char *_Nonnull ctransport_socket_message(const ctransport_socket *_Nonnull socket, int code);

/// At least one byte, or 0 at the end of the stream.
int64_t ctransport_socket_read(
    ctransport_socket *_Nonnull socket, void *_Nonnull buffer, size_t count, int milliseconds);

/// At least one byte.
int64_t ctransport_socket_write(
    ctransport_socket *_Nonnull socket, const void *_Nonnull buffer, size_t count, int milliseconds);

/// Whether it is still connected and nothing has arrived that nobody has asked for.
bool ctransport_socket_is_idle(const ctransport_socket *_Nonnull socket);

#endif
