// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CSocket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int64_t now_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/// 0, or a negative error number: ETIMEDOUT where nothing happens until `end`.
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

int ctransport_connect(const uint8_t *address, uint32_t length, int milliseconds) {
    int64_t end = now_milliseconds() + milliseconds;
    struct sockaddr_storage name = {0};
    if (length > sizeof name || length < sizeof name.ss_family) return -EINVAL;
    memcpy(&name, address, length);
    int number = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (number < 0) return -errno;
    if (name.ss_family != AF_UNIX) {
        int on = 1;
        // Without it small commands wait for answers to those before: 40 ms.
        setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    int error = 0;
    while (connect(number, (const struct sockaddr *)&name, length) != 0) {
        if (errno == EISCONN) break;
        // A unix socket whose queue is full says EAGAIN, and can't be waited for.
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

int64_t ctransport_socket_read(int socket, void *buffer, size_t count, int milliseconds) {
    int64_t end = now_milliseconds() + milliseconds;
    for (;;) {
        ssize_t got = recv(socket, buffer, count, 0);
        if (got >= 0) return got;
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) return -errno;
        int error = wait_for(socket, POLLIN, end);
        if (error != 0) return error;
    }
}

int64_t ctransport_socket_write(int socket, const void *buffer, size_t count, int milliseconds) {
    int64_t end = now_milliseconds() + milliseconds;
    for (;;) {
        ssize_t sent = send(socket, buffer, count, MSG_NOSIGNAL);
        if (sent >= 0) return sent;
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) return -errno;
        int error = wait_for(socket, POLLOUT, end);
        if (error != 0) return error;
    }
}

bool ctransport_socket_is_idle(int socket) {
    struct pollfd entry = {.fd = socket, .events = POLLIN, .revents = 0};
    return poll(&entry, 1, 0) == 0;
}
