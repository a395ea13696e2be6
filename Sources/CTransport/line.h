// SPDX-License-Identifier: Apache-2.0

#ifndef CTRANSPORT_LINE_H
#define CTRANSPORT_LINE_H

#include "CTransport.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/types.h>

// The parts of curl/curl.h and curl/multi.h that this module uses.
enum {
    OPT_WRITEDATA = 10001,
    OPT_READDATA = 10009,
    OPT_ERRORBUFFER = 10010,
    OPT_WRITEFUNCTION = 20011,
    OPT_READFUNCTION = 20012,
    OPT_HTTPHEADER = 10023,
    OPT_HEADERDATA = 10029,
    OPT_NOPROGRESS = 43,
    OPT_HEADERFUNCTION = 20079,
    OPT_BUFFERSIZE = 98,
    OPT_NOSIGNAL = 99,
    OPT_SSL_SESSIONID_CACHE = 150,
    OPT_SSLVERSION = 32,
    OPT_INFILESIZE_LARGE = 30115,
    OPT_SEEKFUNCTION = 20167,
    OPT_SEEKDATA = 10168,
    OPT_PROTOCOLS = 181,
    OPT_REDIR_PROTOCOLS = 182,
    OPT_SUPPRESS_CONNECT_HEADERS = 265,
    OPT_PROTOCOLS_STR = 10318,
    OPT_REDIR_PROTOCOLS_STR = 10319,
    OPT_URL = 10002,
    OPT_PROXY = 10004,
    OPT_CONNECT_ONLY = 141,
    OPT_SOCKOPTFUNCTION = 20148,
    OPT_CONNECTTIMEOUT_MS = 156,
    OPT_OPENSOCKETFUNCTION = 20163,
    OPT_OPENSOCKETDATA = 10164,
    OPT_RESOLVE = 10203,
    OPT_SHARE = 10100,
    OPT_CLOSESOCKETFUNCTION = 20208,
    OPT_SSL_ENABLE_ALPN = 226,

    INFO_RESPONSE_CODE = 0x200000 + 2,
    INFO_REQUEST_SIZE = 0x200000 + 12,
    INFO_HTTP_CONNECTCODE = 0x200000 + 22,
    INFO_NUM_CONNECTS = 0x200000 + 26,
    INFO_CONTENT_LENGTH_DOWNLOAD_T = 0x600000 + 15,

    MULTI_OPT_MAXCONNECTS = 6,
    SHARE_OPT_SHARE = 1,
    SHARED_TLS_SESSIONS = 4,
    MESSAGE_DONE = 1,
    WAIT_POLLIN = 1,
    READ_ABORT = 0x10000000,
    SEEK_OK = 0,
    SEEK_CANT = 2,
    GLOBAL_ALL = 3,
    PROTOCOL_HTTP = 1,
    PROTOCOL_HTTPS = 2,

    SSL_VERSION_1_2 = 6,
    CODE_OUT_OF_MEMORY = 27,
    CODE_AGAIN = 81,
    SOCKET_ALREADY_CONNECTED = 2,
};

// The maximum number of connections that a line keeps open: one for each of the last few servers.
enum { MOST_CONNECTIONS = 4 };
// The number of bytes that curl reads at a time, which is also about the memory that a transfer takes.
enum { BUFFER_SIZE = 64 * 1024 };
// The length up to which an unwanted body is read, because reading it costs less than a new connection.
enum { MOST_DISCARDED = 256 * 1024 };
// The stall limit divided by this number of nanoseconds is the minimum number of bytes in twice the stall limit: on
// average 5 bytes a second.
enum { LONGEST_BYTE = 100 * 1000 * 1000 };
// How often `make_space` may be called before a byte is written: the callback may be wrong about the space.
enum { MOST_SPACE_TRIES = 16 };

struct message {
    int kind;
    void *easy;
    union {
        void *anything;
        int result;
    } data;
};

struct socket_address {
    int family;
    int type;
    int protocol;
    unsigned length;
    struct sockaddr address;
};

struct wait_descriptor {
    int fd;
    short events;
    short revents;
};

struct ctransport_library {
    // Whether this version may write a TLS session that arrives late into a freed handle (CVE-2021-22901).
    bool is_careless_with_sessions;
    const char *(*version)(void);
    int (*global_init)(long);
    void *(*easy_init)(void);
    void (*easy_cleanup)(void *);
    int (*easy_perform)(void *);
    int (*easy_recv)(void *, void *, size_t, size_t *);
    int (*easy_send)(void *, const void *, size_t, size_t *);
    int (*easy_setopt)(void *, int, ...);
    int (*easy_getinfo)(void *, int, ...);
    const char *(*easy_strerror)(int);
    time_t (*getdate)(const char *, const time_t *);
    void *(*slist_append)(void *, const char *);
    void (*slist_free_all)(void *);
    void *(*share_init)(void);
    int (*share_setopt)(void *, int, ...);
    int (*share_cleanup)(void *);
    void *(*multi_init)(void);
    int (*multi_setopt)(void *, int, ...);
    int (*multi_cleanup)(void *);
    int (*multi_add_handle)(void *, void *);
    int (*multi_remove_handle)(void *, void *);
    int (*multi_perform)(void *, int *);
    int (*multi_poll)(void *, struct wait_descriptor *, unsigned, int, int *);
    struct message *(*multi_info_read)(void *, int *);
};

struct ctransport_line {
    const ctransport_library *curl;
    // `easy` is the handle of the present transfer; NULL if there is none.
    void *easy, *multi, *headers;
    // Keeps TLS sessions for later transfers: before libcurl 8.12 they would belong to the easy handle, which does
    // not outlive a transfer.
    void *share;
    // An eventfd that is readable if the transfer must end.
    int wake;
    atomic_bool is_woken;
    bool is_added;
    // Whether the present transfer uses no TLS.
    bool is_plain;
    // Whether any transfer has used TLS. Then any call of curl may close a kept connection, which sends a TLS alert and
    // can raise SIGPIPE: curl protects its own calls, but a TLS library may not.
    bool has_used_tls;

    // The descriptor of a regular file, or ctransport_to_memory.
    int output;
    int64_t limit, received;
    char *body;
    size_t body_capacity;

    char *head;
    size_t head_count, head_capacity, head_total, most_head;
    bool is_head_whole;

    char *bytes;
    int64_t length, sent;

    // `end` and `last` are times in nanoseconds of the monotonic clock, `stall` is a duration; -1 for no limit.
    int64_t end, stall, last;
    // The time since which bytes are counted, and the number of bytes in either direction since then.
    int64_t counted_since, counted;

    ctransport_caller caller;
    int disposition;
    bool is_decided;

    int reason, error;
    char message[256];
};

/// Records why the transfer must end; the first reason counts.
void ctransport_fail(ctransport_line *line, int reason, int error);
/// Returns the maximum milliseconds to wait, rounded up; if a limit has passed, records the reason and returns 0.
int ctransport_wait_milliseconds(ctransport_line *line, bool may_stall);
/// Returns the time in nanoseconds of the monotonic clock.
int64_t ctransport_now(void);
/// Records bytes in either direction. The time since `begin` was spent in the caller's code or descriptors, and does
/// not count against the server.
void ctransport_note(ctransport_line *line, size_t count, int64_t begin);
/// Blocks SIGPIPE in the calling thread until ctransport_release_broken_pipe is called with the same set, so that
/// writing to a closed connection is only an error.
void ctransport_hold_broken_pipe(sigset_t *previous);
void ctransport_release_broken_pipe(const sigset_t *previous);
/// Callbacks that curl calls.
size_t ctransport_take_piece(char *bytes, size_t size, size_t number, void *line);
size_t ctransport_take_head(char *bytes, size_t size, size_t number, void *line);
size_t ctransport_give_piece(char *buffer, size_t size, size_t number, void *line);
int ctransport_give_again(void *line, int64_t offset, int origin);

#endif
