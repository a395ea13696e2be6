// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "line.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct ctransport_socket {
    int number;
    // The handle for TLS; NULL without encryption.
    void *easy, *names;
    const ctransport_library *curl;
    char message[256];
};

static int64_t now_milliseconds(void) { return ctransport_now() / 1000000; }

/// Waits for `events`; returns 0, or a negative error number: ETIMEDOUT if none occurs until `end`.
static int wait_for(int socket, short events, int64_t end) {
    for (;;) {
        int64_t left = end - now_milliseconds();
        if (left <= 0) return -ETIMEDOUT;
        struct pollfd entry = {.fd = socket, .events = events, .revents = 0};
        int count = poll(&entry, 1, left > 1000000 ? 1000000 : (int)left);
        if (count > 0) return 0;
        if (count < 0 && errno != EINTR) return -errno;
    }
}

int ctransport_addresses(
    const char *host, const char *port, bool is_numeric, uint8_t *addresses, uint32_t *lengths, int most) {
    struct addrinfo hints = {0};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | (is_numeric ? AI_NUMERICHOST : AI_ADDRCONFIG);
    struct addrinfo *list = NULL;
    int code = getaddrinfo(host, port, &hints, &list);
    if (code != 0) return code < 0 ? code : -code;
    int count = 0;
    for (struct addrinfo *entry = list; entry && count < most; entry = entry->ai_next) {
        if (entry->ai_addrlen > ctransport_address_size) continue;
        memcpy(addresses + count * ctransport_address_size, entry->ai_addr, entry->ai_addrlen);
        lengths[count++] = entry->ai_addrlen;
    }
    freeaddrinfo(list);
    return count;
}

uint32_t ctransport_unix_address(const char *path, uint8_t *address) {
    struct sockaddr_un name = {0};
    size_t length = strlen(path);
    if (length >= sizeof name.sun_path) return 0;
    name.sun_family = AF_UNIX;
    memcpy(name.sun_path, path, length + 1);
    memcpy(address, &name, sizeof name);
    return sizeof name;
}

/// Returns a connected nonblocking socket, or a negative error number.
static int connect_to(const uint8_t *address, uint32_t length, int milliseconds) {
    int64_t end = now_milliseconds() + milliseconds;
    struct sockaddr_storage name = {0};
    if (length > sizeof name || length < sizeof name.ss_family) return -EINVAL;
    memcpy(&name, address, length);
    int number = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (number < 0) return -errno;
    if (name.ss_family != AF_UNIX) {
        int on = 1;
        // By default, a small command waits up to 40 ms until an earlier one is acknowledged.
        setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    int error = 0;
    while (connect(number, (const struct sockaddr *)&name, length) != 0) {
        if (errno == EISCONN) break;
        // A Unix socket whose queue is full returns EAGAIN, which is an error here: poll(2) can't wait for it.
        if (errno != EINPROGRESS && errno != EALREADY && errno != EINTR) {
            error = -errno;
            break;
        }
        error = wait_for(number, POLLOUT, end);
        if (error != 0) break;
        socklen_t size = sizeof error;
        if (getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
        error = -error;
        break;
    }
    if (error == 0) return number;
    close(number);
    return error;
}

ctransport_socket *ctransport_socket_connect(
    const uint8_t *address, uint32_t length, int milliseconds, int *error) {
    int number = connect_to(address, length, milliseconds);
    *error = number < 0 ? -number : 0;
    if (number < 0) return NULL;
    ctransport_socket *socket = calloc(1, sizeof(*socket));
    if (socket == NULL) {
        close(number);
        *error = ENOMEM;
        return NULL;
    }
    socket->number = number;
    return socket;
}

void ctransport_socket_free(ctransport_socket *socket) {
    if (socket->easy != NULL) {
        // The cleanup sends a TLS alert, which can raise SIGPIPE.
        sigset_t previous;
        ctransport_hold_broken_pipe(&previous);
        socket->curl->easy_cleanup(socket->easy);
        ctransport_release_broken_pipe(&previous);
    }
    if (socket->names != NULL) socket->curl->slist_free_all(socket->names);
    close(socket->number);
    free(socket);
}

// MARK: TLS

/// Callbacks that replace curl's functions for connecting and closing, because this file does both.
static int give_socket(void *socket, int purpose, void *address) {
    (void)purpose, (void)address;
    return ((ctransport_socket *)socket)->number;
}

static int is_connected(void *context, int number, int purpose) {
    (void)context, (void)number, (void)purpose;
    return SOCKET_ALREADY_CONNECTED;
}

static int leave_open(void *context, int number) {
    (void)context, (void)number;
    return 0;
}

int ctransport_socket_secure(ctransport_socket *socket, const ctransport_library *library, const char *url,
    const char *pinned, const char *authority, const char *certificate, const char *key, int milliseconds) {
    socket->curl = library;
    socket->easy = library->easy_init();
    if (socket->easy == NULL) return CODE_OUT_OF_MEMORY;
    if (pinned != NULL) {
        socket->names = library->slist_append(NULL, pinned);
        if (socket->names == NULL) return CODE_OUT_OF_MEMORY;
    }
    int code = 0;
#define SET(option, value) \
    if (code == 0) code = library->easy_setopt(socket->easy, option, value)
    SET(OPT_ERRORBUFFER, socket->message);
    SET(OPT_NOSIGNAL, 1L);
    SET(OPT_CONNECT_ONLY, 1L);
    SET(OPT_SSLVERSION, (long)SSL_VERSION_1_2);
    // The protocol over TLS is not HTTP.
    SET(OPT_SSL_ENABLE_ALPN, 0L);
    SET(OPT_PROXY, "");
    SET(OPT_URL, url);
    if (pinned != NULL) SET(OPT_RESOLVE, socket->names);
    if (authority != NULL) SET((int)ctransport_authority, authority);
    if (certificate != NULL) {
        SET((int)ctransport_client_certificate, certificate);
        // If no password is set, the TLS library asks for one at the terminal.
        SET((int)ctransport_key_password, "");
    }
    if (key != NULL) SET((int)ctransport_client_key, key);
    SET(OPT_CONNECTTIMEOUT_MS, (long)milliseconds);
    SET(OPT_OPENSOCKETFUNCTION, give_socket);
    SET(OPT_OPENSOCKETDATA, socket);
    SET(OPT_SOCKOPTFUNCTION, is_connected);
    SET(OPT_CLOSESOCKETFUNCTION, leave_open);
#undef SET
    if (code != 0) return code;
    sigset_t previous;
    ctransport_hold_broken_pipe(&previous);
    code = library->easy_perform(socket->easy);
    ctransport_release_broken_pipe(&previous);
    return code;
}

const char *ctransport_socket_message(const ctransport_socket *socket, int code) {
    return socket->message[0] != 0 ? socket->message : socket->curl->easy_strerror(code);
}

// MARK: Bytes

/// Receives without waiting; returns the number of bytes, or a negative error number.
static int64_t receive_now(ctransport_socket *socket, void *buffer, size_t count) {
    if (socket->easy == NULL) {
        ssize_t got;
        do got = recv(socket->number, buffer, count, 0);
        while (got < 0 && errno == EINTR);
        return got < 0 ? -errno : got;
    }
    size_t got = 0;
    sigset_t previous;
    ctransport_hold_broken_pipe(&previous);
    int code = socket->curl->easy_recv(socket->easy, buffer, count, &got);
    ctransport_release_broken_pipe(&previous);
    if (code == CODE_AGAIN) return -EAGAIN;
    return code == 0 ? (int64_t)got : -ECONNRESET;
}

static int64_t send_now(ctransport_socket *socket, const void *buffer, size_t count) {
    if (socket->easy == NULL) {
        ssize_t sent;
        do sent = send(socket->number, buffer, count, MSG_NOSIGNAL);
        while (sent < 0 && errno == EINTR);
        return sent < 0 ? -errno : sent;
    }
    size_t sent = 0;
    sigset_t previous;
    ctransport_hold_broken_pipe(&previous);
    int code = socket->curl->easy_send(socket->easy, buffer, count, &sent);
    ctransport_release_broken_pipe(&previous);
    if (code == CODE_AGAIN || (code == 0 && sent == 0)) return -EAGAIN;
    return code == 0 ? (int64_t)sent : -ECONNRESET;
}

int64_t ctransport_socket_read(ctransport_socket *socket, void *buffer, size_t count, int milliseconds) {
    int64_t end = now_milliseconds() + milliseconds;
    for (;;) {
        int64_t got = receive_now(socket, buffer, count);
        if (got != -EAGAIN && got != -EWOULDBLOCK) return got;
        int error = wait_for(socket->number, POLLIN, end);
        if (error != 0) return error;
    }
}

int64_t ctransport_socket_write(
    ctransport_socket *socket, const void *buffer, size_t count, int milliseconds) {
    int64_t end = now_milliseconds() + milliseconds;
    for (;;) {
        int64_t sent = send_now(socket, buffer, count);
        if (sent != -EAGAIN && sent != -EWOULDBLOCK) return sent;
        int error = wait_for(socket->number, POLLOUT, end);
        if (error != 0) return error;
    }
}

bool ctransport_socket_is_idle(const ctransport_socket *socket) {
    struct pollfd entry = {.fd = socket->number, .events = POLLIN, .revents = 0};
    return poll(&entry, 1, 0) == 0;
}
