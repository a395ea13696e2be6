// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CTransport.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// curl/curl.h and curl/multi.h, as far as they are needed.
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
    OPT_INFILESIZE_LARGE = 30115,
    OPT_SEEKFUNCTION = 20167,
    OPT_SEEKDATA = 10168,
    OPT_PROTOCOLS = 181,
    OPT_REDIR_PROTOCOLS = 182,
    OPT_SUPPRESS_CONNECT_HEADERS = 265,
    OPT_PROTOCOLS_STR = 10318,
    OPT_REDIR_PROTOCOLS_STR = 10319,

    INFO_EFFECTIVE_URL = 0x100000 + 1,
    INFO_RESPONSE_CODE = 0x200000 + 2,
    INFO_REDIRECT_COUNT = 0x200000 + 20,
    INFO_NUM_CONNECTS = 0x200000 + 26,
    INFO_CONTENT_LENGTH_DOWNLOAD_T = 0x600000 + 15,

    MULTI_OPT_MAXCONNECTS = 6,
    MESSAGE_DONE = 1,
    WAIT_POLLIN = 1,
    READ_ABORT = 0x10000000,
    SEEK_OK = 0,
    SEEK_CANT = 2,
    GLOBAL_ALL = 3,
    PROTOCOL_HTTP = 1,
    PROTOCOL_HTTPS = 2,

    CODE_OUT_OF_MEMORY = 27,
};

// Connections that a line keeps open: one for each of the last few servers.
enum { MOST_CONNECTIONS = 4 };
// What is read at a time, and so about what a transfer takes in memory.
enum { BUFFER_SIZE = 64 * 1024 };
// What a pipe that can be written to takes without making anybody wait, pipe(7).
enum { PIPE_STEP = 4096 };

struct message {
    int kind;
    void *easy;
    union {
        void *anything;
        int result;
    } data;
};

struct wait_descriptor {
    int fd;
    short events;
    short revents;
};

struct ctransport_library {
    int (*global_init)(long);
    void *(*easy_init)(void);
    void (*easy_reset)(void *);
    void (*easy_cleanup)(void *);
    int (*easy_setopt)(void *, int, ...);
    int (*easy_getinfo)(void *, int, ...);
    const char *(*easy_strerror)(int);
    void *(*slist_append)(void *, const char *);
    void (*slist_free_all)(void *);
    void *(*multi_init)(void);
    int (*multi_setopt)(void *, int, ...);
    int (*multi_cleanup)(void *);
    int (*multi_add_handle)(void *, void *);
    int (*multi_remove_handle)(void *, void *);
    int (*multi_perform)(void *, int *);
    int (*multi_poll)(void *, struct wait_descriptor *, unsigned, int, int *);
    struct message *(*multi_info_read)(void *, int *);
};

enum kind { KIND_FILE, KIND_SOCKET, KIND_OTHER };

struct ctransport_line {
    const ctransport_library *curl;
    void *easy, *multi, *headers;
    // Readable: the transfer is to end.
    int wake;
    bool is_added;

    int output;
    enum kind output_kind;
    int64_t limit, received;
    char *body;
    size_t body_capacity;

    char *head;
    size_t head_count, head_capacity, head_total, most_head;
    bool is_head_whole;

    int source;
    enum kind source_kind;
    off_t source_start;
    char *bytes;
    int64_t length, sent;

    // Nanoseconds of the monotonic clock, or of time; -1: none.
    int64_t end, stall, last;

    int (*decide)(void *);
    void *context;
    int disposition;
    bool is_decided;

    int reason, error;
    char message[256];
};

const ctransport_library *ctransport_open(const char *name, char *reason, size_t capacity) {
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *words = dlerror();
        snprintf(reason, capacity, "%s", words == NULL ? name : words);
        return NULL;
    }
    ctransport_library *library = calloc(1, sizeof(*library));
    if (library == NULL) {
        snprintf(reason, capacity, "%s", strerror(ENOMEM));
        return NULL;
    }
    const struct {
        const char *name;
        void **place;
    } functions[] = {
        {"curl_global_init", (void **)&library->global_init},
        {"curl_easy_init", (void **)&library->easy_init},
        {"curl_easy_reset", (void **)&library->easy_reset},
        {"curl_easy_cleanup", (void **)&library->easy_cleanup},
        {"curl_easy_setopt", (void **)&library->easy_setopt},
        {"curl_easy_getinfo", (void **)&library->easy_getinfo},
        {"curl_easy_strerror", (void **)&library->easy_strerror},
        {"curl_slist_append", (void **)&library->slist_append},
        {"curl_slist_free_all", (void **)&library->slist_free_all},
        {"curl_multi_init", (void **)&library->multi_init},
        {"curl_multi_setopt", (void **)&library->multi_setopt},
        {"curl_multi_cleanup", (void **)&library->multi_cleanup},
        {"curl_multi_add_handle", (void **)&library->multi_add_handle},
        {"curl_multi_remove_handle", (void **)&library->multi_remove_handle},
        {"curl_multi_perform", (void **)&library->multi_perform},
        {"curl_multi_poll", (void **)&library->multi_poll},
        {"curl_multi_info_read", (void **)&library->multi_info_read},
    };
    for (size_t index = 0; index < sizeof(functions) / sizeof(functions[0]); index++) {
        *functions[index].place = dlsym(handle, functions[index].name);
        if (*functions[index].place == NULL) {
            snprintf(reason, capacity, "%s has no %s", name, functions[index].name);
            free(library);
            return NULL;
        }
    }
    int code = library->global_init(GLOBAL_ALL);
    if (code != 0) {
        snprintf(reason, capacity, "%s: %s", name, library->easy_strerror(code));
        free(library);
        return NULL;
    }
    return library;
}

ctransport_line *ctransport_line_make(const ctransport_library *library) {
    ctransport_line *line = calloc(1, sizeof(*line));
    if (line == NULL) return NULL;
    line->curl = library;
    line->output = line->source = -1;
    line->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    line->easy = library->easy_init();
    line->multi = library->multi_init();
    if (line->wake == -1 || line->easy == NULL || line->multi == NULL) {
        ctransport_line_free(line);
        return NULL;
    }
    library->multi_setopt(line->multi, MULTI_OPT_MAXCONNECTS, (long)MOST_CONNECTIONS);
    return line;
}

void ctransport_line_free(ctransport_line *line) {
    ctransport_end(line);
    if (line->easy != NULL) line->curl->easy_cleanup(line->easy);
    if (line->multi != NULL) line->curl->multi_cleanup(line->multi);
    if (line->wake != -1) close(line->wake);
    free(line->head);
    free(line);
}

void ctransport_end(ctransport_line *line) {
    if (line->is_added) line->curl->multi_remove_handle(line->multi, line->easy);
    line->is_added = false;
    // What the handle still knows of is forgotten before it goes, secrets among it.
    if (line->easy != NULL) line->curl->easy_reset(line->easy);
    if (line->headers != NULL) line->curl->slist_free_all(line->headers);
    line->headers = NULL;
    free(line->body);
    line->body = NULL;
    line->body_capacity = 0;
    free(line->bytes);
    line->bytes = NULL;
    line->output = line->source = -1;
}

// MARK: Time and waiting

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/// Notes why the transfer is to end; the first reason counts.
static void fail(ctransport_line *line, int reason, int error) {
    if (line->reason != ctransport_reason_none) return;
    line->reason = reason;
    line->error = error;
}

/// Milliseconds, rounded up, that may be waited; 0 with a reason noted where the time is over.
static int wait_milliseconds(ctransport_line *line, bool may_stall) {
    int64_t present = now();
    int64_t rest = (int64_t)INT_MAX * 1000000;
    if (line->end >= 0) {
        rest = line->end - present;
        if (rest <= 0) {
            fail(line, ctransport_reason_timed_out, 0);
            return 0;
        }
    }
    if (may_stall && line->stall >= 0) {
        int64_t left = line->last + line->stall - present;
        if (left <= 0) {
            fail(line, ctransport_reason_stalled, 0);
            return 0;
        }
        if (left < rest) rest = left;
    }
    int64_t milliseconds = (rest + 999999) / 1000000;
    return milliseconds > INT_MAX ? INT_MAX : (int)milliseconds;
}

/// Waits for a descriptor of the caller's, which takes as long as it does; false with a reason noted.
static bool await(ctransport_line *line, int descriptor, short events) {
    while (true) {
        int limit = wait_milliseconds(line, false);
        if (line->reason != ctransport_reason_none) return false;
        struct pollfd requests[2] = {
            {.fd = descriptor, .events = events},
            {.fd = line->wake, .events = POLLIN},
        };
        int count = poll(requests, 2, limit);
        if (count < 0 && errno != EINTR) {
            fail(line, events == POLLIN ? ctransport_reason_source : ctransport_reason_output, errno);
            return false;
        }
        if (count <= 0) continue;
        if (requests[1].revents != 0) {
            fail(line, ctransport_reason_cancelled, 0);
            return false;
        }
        if (requests[0].revents != 0) return true;
    }
}

static enum kind kind_of(int descriptor) {
    struct stat status;
    if (fstat(descriptor, &status) == -1) return KIND_FILE;
    if (S_ISREG(status.st_mode)) return KIND_FILE;
    return S_ISSOCK(status.st_mode) ? KIND_SOCKET : KIND_OTHER;
}

void ctransport_wake(ctransport_line *line) {
    // Fails only where the counter is full, and then it is readable.
    uint64_t one = 1;
    ssize_t count = write(line->wake, &one, sizeof(one));
    (void)count;
}

// MARK: What comes

static bool write_all(ctransport_line *line, const char *bytes, size_t count) {
    size_t written = 0;
    while (written < count) {
        size_t step = count - written;
        ssize_t done;
        if (line->output_kind != KIND_FILE && !await(line, line->output, POLLOUT)) return false;
        if (line->output_kind == KIND_SOCKET) {
            done = send(line->output, bytes + written, step, MSG_DONTWAIT | MSG_NOSIGNAL);
        } else {
            // More than that might block where nobody could wake this thread.
            if (line->output_kind == KIND_OTHER && step > PIPE_STEP) step = PIPE_STEP;
            done = write(line->output, bytes + written, step);
        }
        if (done >= 0) {
            written += (size_t)done;
        } else if (errno != EINTR && !(errno == EAGAIN && line->output_kind != KIND_FILE)) {
            fail(line, ctransport_reason_output, errno);
            return false;
        }
    }
    return true;
}

/// Room for `needed` bytes, doubled each time; false where there is no memory.
static bool make_room(char **memory, size_t *capacity, size_t needed) {
    if (needed <= *capacity) return true;
    size_t larger = *capacity < 4096 ? 4096 : *capacity;
    while (larger < needed) {
        if (larger > SIZE_MAX / 2) return false;
        larger *= 2;
    }
    char *moved = realloc(*memory, larger);
    if (moved == NULL) return false;
    *memory = moved;
    *capacity = larger;
    return true;
}

static bool decide(ctransport_line *line) {
    line->is_decided = true;
    if (line->decide != NULL) line->disposition = line->decide(line->context);
    if (line->disposition == ctransport_stop) {
        fail(line, ctransport_reason_stopped, 0);
        return false;
    }
    int64_t length = -1;
    line->curl->easy_getinfo(line->easy, INFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (line->disposition == ctransport_keep && length > line->limit) {
        fail(line, ctransport_reason_too_large, 0);
        return false;
    }
    return true;
}

static size_t on_body(char *bytes, size_t size, size_t number, void *data) {
    ctransport_line *line = data;
    size_t count = size * number;
    if (line->reason != ctransport_reason_none) return 0;
    if (count == 0) return 0;
    if (!line->is_decided && !decide(line)) return 0;
    if ((int64_t)count > line->limit - line->received) {
        fail(line, ctransport_reason_too_large, 0);
        return 0;
    }
    if (line->disposition == ctransport_keep) {
        if (line->output >= 0) {
            if (!write_all(line, bytes, count)) return 0;
        } else {
            size_t filled = (size_t)line->received;
            if (!make_room(&line->body, &line->body_capacity, filled + count)) {
                fail(line, ctransport_reason_memory, 0);
                return 0;
            }
            memcpy(line->body + filled, bytes, count);
        }
    }
    line->received += (int64_t)count;
    // After the writing: a slow reader is not the server's fault.
    line->last = now();
    return count;
}

static size_t on_head(char *bytes, size_t size, size_t number, void *data) {
    ctransport_line *line = data;
    size_t count = size * number;
    if (line->reason != ctransport_reason_none) return 0;
    line->last = now();
    // Over all responses: redirects and 1xx may go on for ever.
    line->head_total += count;
    if (line->head_total > line->most_head) {
        fail(line, ctransport_reason_head_too_large, 0);
        return 0;
    }
    if (count >= 5 && strncasecmp(bytes, "HTTP/", 5) == 0 && (line->is_head_whole || line->head_count == 0)) {
        line->head_count = 0;
        line->is_head_whole = false;
    }
    // What comes after the body belongs to nobody.
    if (line->is_head_whole) return count;
    if ((count == 2 && bytes[0] == '\r') || (count == 1 && bytes[0] == '\n')) {
        line->is_head_whole = true;
        return count;
    }
    if (!make_room(&line->head, &line->head_capacity, line->head_count + count)) {
        fail(line, ctransport_reason_memory, 0);
        return 0;
    }
    memcpy(line->head + line->head_count, bytes, count);
    line->head_count += count;
    return count;
}

// MARK: What goes

static size_t on_source(char *buffer, size_t size, size_t number, void *data) {
    ctransport_line *line = data;
    size_t count = size * number;
    if (line->reason != ctransport_reason_none) return READ_ABORT;
    if (line->length >= 0 && (int64_t)count > line->length - line->sent) {
        count = (size_t)(line->length - line->sent);
    }
    if (count == 0) return 0;
    if (line->source < 0) {
        memcpy(buffer, line->bytes + line->sent, count);
    } else {
        ssize_t done;
        do {
            if (line->source_kind != KIND_FILE && !await(line, line->source, POLLIN)) return READ_ABORT;
            done = read(line->source, buffer, count);
        } while (done < 0 && (errno == EINTR || (errno == EAGAIN && line->source_kind != KIND_FILE)));
        if (done < 0) {
            fail(line, ctransport_reason_source, errno);
            return READ_ABORT;
        }
        // The server would wait for the rest.
        if (done == 0 && line->length >= 0) {
            fail(line, ctransport_reason_source_too_short, 0);
            return READ_ABORT;
        }
        count = (size_t)done;
    }
    line->sent += (int64_t)count;
    line->last = now();
    return count;
}

/// Sends it again, where a connection turned out to be closed.
static int on_seek(void *data, int64_t offset, int origin) {
    ctransport_line *line = data;
    if (origin != SEEK_SET || offset < 0) return SEEK_CANT;
    if (line->source >= 0) {
        if (line->source_kind != KIND_FILE) return SEEK_CANT;
        if (lseek(line->source, line->source_start + offset, SEEK_SET) == -1) return SEEK_CANT;
    } else if (offset > line->length) {
        return SEEK_CANT;
    }
    line->sent = offset;
    return SEEK_OK;
}

// MARK: Setting up

int ctransport_begin(ctransport_line *line) {
    const ctransport_library *curl = line->curl;
    void *easy = line->easy;
    ctransport_end(line);
    uint64_t wakes;
    ssize_t drained = read(line->wake, &wakes, sizeof(wakes));
    (void)drained;
    line->limit = INT64_MAX;
    line->received = line->sent = 0;
    line->head_count = line->head_total = 0;
    line->most_head = SIZE_MAX;
    line->is_head_whole = line->is_decided = false;
    line->length = 0;
    line->end = line->stall = -1;
    line->decide = NULL;
    line->context = NULL;
    line->disposition = ctransport_keep;
    line->reason = ctransport_reason_none;
    line->error = 0;
    line->message[0] = 0;

    int code = 0;
#define SET(option, value) \
    if (code == 0) code = curl->easy_setopt(easy, option, value)
    SET(OPT_ERRORBUFFER, line->message);
    SET(OPT_NOSIGNAL, 1L);
    SET(OPT_NOPROGRESS, 1L);
    SET(OPT_BUFFERSIZE, (long)BUFFER_SIZE);
    SET(OPT_WRITEFUNCTION, on_body);
    SET(OPT_WRITEDATA, line);
    SET(OPT_HEADERFUNCTION, on_head);
    SET(OPT_HEADERDATA, line);
    SET(OPT_READFUNCTION, on_source);
    SET(OPT_READDATA, line);
    SET(OPT_SEEKFUNCTION, on_seek);
    SET(OPT_SEEKDATA, line);
    SET(OPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (code != 0) return code;
    // The text is known since 7.85, the numbers are on their way out.
    if (curl->easy_setopt(easy, OPT_PROTOCOLS_STR, "http,https") != 0) {
        SET(OPT_PROTOCOLS, (long)(PROTOCOL_HTTP | PROTOCOL_HTTPS));
    }
    if (curl->easy_setopt(easy, OPT_REDIR_PROTOCOLS_STR, "http,https") != 0) {
        SET(OPT_REDIR_PROTOCOLS, (long)(PROTOCOL_HTTP | PROTOCOL_HTTPS));
    }
#undef SET
    return code;
}

int ctransport_set_text(ctransport_line *line, long option, const char *text) {
    return line->curl->easy_setopt(line->easy, (int)option, text);
}

int ctransport_set_number(ctransport_line *line, long option, long number) {
    return line->curl->easy_setopt(line->easy, (int)option, number);
}

bool ctransport_add_header(ctransport_line *line, const char *header) {
    void *longer = line->curl->slist_append(line->headers, header);
    if (longer == NULL) return false;
    line->headers = longer;
    return true;
}

static int send_length(ctransport_line *line, int64_t length) {
    line->length = length;
    int code = line->curl->easy_setopt(line->easy, ctransport_upload, 1L);
    return code != 0 ? code : line->curl->easy_setopt(line->easy, OPT_INFILESIZE_LARGE, length);
}

int ctransport_send_descriptor(ctransport_line *line, int descriptor, int64_t length) {
    line->source = descriptor;
    line->source_kind = kind_of(descriptor);
    line->source_start = line->source_kind == KIND_FILE ? lseek(descriptor, 0, SEEK_CUR) : 0;
    return send_length(line, length);
}

int ctransport_send_bytes(ctransport_line *line, const void *bytes, size_t count) {
    line->bytes = malloc(count + 1);
    if (line->bytes == NULL) return CODE_OUT_OF_MEMORY;
    if (count > 0) memcpy(line->bytes, bytes, count);
    return send_length(line, (int64_t)count);
}

void ctransport_receive(ctransport_line *line, int descriptor, int64_t limit) {
    line->output = descriptor;
    line->output_kind = descriptor < 0 ? KIND_FILE : kind_of(descriptor);
    line->limit = limit;
}

void ctransport_set_limits(ctransport_line *line, int64_t whole, int64_t stall, size_t most_head_bytes) {
    // A thousand years are as good as for ever, and fit.
    const int64_t most = INT64_MAX / 4 / 1000000;
    line->end = whole < 0 ? -1 : now() + (whole < most ? whole : most) * 1000000;
    line->stall = stall < 0 ? -1 : (stall < most ? stall : most) * 1000000;
    line->most_head = most_head_bytes;
}

void ctransport_on_body(ctransport_line *line, int (*decide)(void *), void *context) {
    line->decide = decide;
    line->context = context;
}

// MARK: The transfer

/// Whether curl is done with it; `code` is how it ended.
static bool is_done(ctransport_line *line, int *code) {
    int left;
    struct message *message;
    while ((message = line->curl->multi_info_read(line->multi, &left)) != NULL) {
        if (message->kind != MESSAGE_DONE || message->easy != line->easy) continue;
        *code = message->data.result;
        return true;
    }
    return false;
}

int ctransport_perform(ctransport_line *line) {
    const ctransport_library *curl = line->curl;
    int code = curl->easy_setopt(line->easy, OPT_HTTPHEADER, line->headers);
    if (code != 0) return code;
    line->last = now();
    if (curl->multi_add_handle(line->multi, line->easy) != 0) return CODE_OUT_OF_MEMORY;
    line->is_added = true;
    while (true) {
        int running = 0;
        if (curl->multi_perform(line->multi, &running) != 0) return CODE_OUT_OF_MEMORY;
        if (is_done(line, &code)) return code;
        int limit = wait_milliseconds(line, true);
        if (line->reason != ctransport_reason_none) return 0;
        struct wait_descriptor wake = {.fd = line->wake, .events = WAIT_POLLIN};
        if (curl->multi_poll(line->multi, &wake, 1, limit, NULL) != 0) return CODE_OUT_OF_MEMORY;
        if (wake.revents != 0) {
            fail(line, ctransport_reason_cancelled, 0);
            return 0;
        }
    }
}

// MARK: What is known of it

int ctransport_reason(const ctransport_line *line) { return line->reason; }

int ctransport_errno(const ctransport_line *line) { return line->error; }

const char *ctransport_message(const ctransport_line *line, int code) {
    return line->message[0] != 0 ? line->message : line->curl->easy_strerror(code);
}

const char *ctransport_head(const ctransport_line *line, size_t *count) {
    *count = line->head_count;
    return line->head;
}

int64_t ctransport_received(const ctransport_line *line) { return line->received; }

static long number_of(const ctransport_line *line, int info) {
    long number = 0;
    line->curl->easy_getinfo(line->easy, info, &number);
    return number;
}

long ctransport_status(const ctransport_line *line) { return number_of(line, INFO_RESPONSE_CODE); }

long ctransport_redirects(const ctransport_line *line) { return number_of(line, INFO_REDIRECT_COUNT); }

long ctransport_connections(const ctransport_line *line) { return number_of(line, INFO_NUM_CONNECTS); }

const char *ctransport_effective_url(const ctransport_line *line) {
    char *url = NULL;
    line->curl->easy_getinfo(line->easy, INFO_EFFECTIVE_URL, &url);
    return url;
}

void *ctransport_take_body(ctransport_line *line, size_t *count) {
    void *body = line->body;
    *count = body == NULL ? 0 : (size_t)line->received;
    line->body = NULL;
    line->body_capacity = 0;
    return body;
}
