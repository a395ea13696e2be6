// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "line.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

ctransport_line *ctransport_line_make(const ctransport_library *library) {
    ctransport_line *line = calloc(1, sizeof(*line));
    if (line == NULL) return NULL;
    line->curl = library;
    line->output = -1;
    line->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    line->multi = library->multi_init();
    line->share = library->share_init();
    if (line->wake == -1 || line->multi == NULL || line->share == NULL) {
        ctransport_line_free(line);
        return NULL;
    }
    library->multi_setopt(line->multi, MULTI_OPT_MAXCONNECTS, (long)MOST_CONNECTIONS);
    // No lock functions are set, because only one thread at a time uses a line.
    library->share_setopt(line->share, SHARE_OPT_SHARE, SHARED_TLS_SESSIONS);
    return line;
}

void ctransport_line_free(ctransport_line *line) {
    ctransport_end(line);
    if (line->multi != NULL) {
        sigset_t previous;
        if (line->has_used_tls) ctransport_hold_broken_pipe(&previous);
        line->curl->multi_cleanup(line->multi);
        if (line->has_used_tls) ctransport_release_broken_pipe(&previous);
    }
    if (line->share != NULL) line->curl->share_cleanup(line->share);
    if (line->wake != -1) close(line->wake);
    free(line->head);
    free(line);
}

void ctransport_end(ctransport_line *line) {
    if (line->is_added) {
        sigset_t previous;
        if (line->has_used_tls) ctransport_hold_broken_pipe(&previous);
        line->curl->multi_remove_handle(line->multi, line->easy);
        if (line->has_used_tls) ctransport_release_broken_pipe(&previous);
    }
    line->is_added = false;
    if (line->easy != NULL) line->curl->easy_cleanup(line->easy);
    line->easy = NULL;
    if (line->headers != NULL) line->curl->slist_free_all(line->headers);
    line->headers = NULL;
    free(line->body);
    line->body = NULL;
    line->body_capacity = 0;
    free(line->bytes);
    line->bytes = NULL;
    line->output = -1;
}

// MARK: Waking

void ctransport_wake(ctransport_line *line) {
    atomic_store(&line->is_woken, true);
    // The write fails only if the counter is full; then the descriptor is readable already.
    uint64_t one = 1;
    ssize_t count = write(line->wake, &one, sizeof(one));
    (void)count;
}

// MARK: Setting up

void ctransport_forget_wakes(ctransport_line *line) {
    if (!atomic_exchange(&line->is_woken, false)) return;
    uint64_t wakes;
    ssize_t drained = read(line->wake, &wakes, sizeof(wakes));
    (void)drained;
}

/// Creates a socket that child processes do not inherit; before 8.17 libcurl's own sockets stay open across exec.
static int open_socket(void *context, int purpose, struct socket_address *address) {
    (void)context, (void)purpose;
    return socket(address->family, address->type | SOCK_CLOEXEC, address->protocol);
}

int ctransport_begin(ctransport_line *line) {
    const ctransport_library *curl = line->curl;
    ctransport_end(line);
    line->limit = INT64_MAX;
    line->received = line->sent = line->counted = 0;
    line->head_count = line->head_total = 0;
    line->most_head = SIZE_MAX;
    line->is_head_whole = line->is_decided = false;
    line->length = 0;
    line->end = line->stall = -1;
    line->is_plain = false;
    memset(&line->caller, 0, sizeof(line->caller));
    line->disposition = ctransport_keep;
    line->reason = ctransport_reason_none;
    line->error = 0;
    line->message[0] = 0;
    // Each transfer gets a new handle. A used one keeps pointers into the last response (libcurl 7.83.0 to 8.1.0),
    // and options that curl_easy_reset(3) does not reset. The connections belong to the multi handle.
    void *easy = line->easy = curl->easy_init();
    if (easy == NULL) return CODE_OUT_OF_MEMORY;

    int code = 0;
#define SET(option, value) \
    if (code == 0) code = curl->easy_setopt(easy, option, value)
    SET(OPT_ERRORBUFFER, line->message);
    SET(OPT_SHARE, line->share);
    SET(OPT_SSL_SESSIONID_CACHE, curl->is_careless_with_sessions ? 0L : 1L);
    SET(OPT_NOSIGNAL, 1L);
    SET(OPT_NOPROGRESS, 1L);
    SET(OPT_BUFFERSIZE, (long)BUFFER_SIZE);
    SET(OPT_WRITEFUNCTION, ctransport_take_piece);
    SET(OPT_WRITEDATA, line);
    SET(OPT_HEADERFUNCTION, ctransport_take_head);
    SET(OPT_HEADERDATA, line);
    SET(OPT_READFUNCTION, ctransport_give_piece);
    SET(OPT_READDATA, line);
    SET(OPT_SEEKFUNCTION, ctransport_give_again);
    SET(OPT_SEEKDATA, line);
    SET(OPT_OPENSOCKETFUNCTION, open_socket);
    SET(OPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(OPT_SSLVERSION, (long)SSL_VERSION_1_2);
    if (code != 0) return code;
    // libcurl supports the option with text since 7.85; the one with numbers is deprecated.
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
    if (option == ctransport_url) line->is_plain = strncasecmp(text, "http:", 5) == 0;
    if (option == ctransport_proxy && text[0] != 0) line->is_plain = false;
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

int ctransport_send_bytes(ctransport_line *line, const void *bytes, size_t count) {
    line->bytes = malloc(count + 1);
    if (line->bytes == NULL) return CODE_OUT_OF_MEMORY;
    if (count > 0) memcpy(line->bytes, bytes, count);
    line->length = (int64_t)count;
    int code = line->curl->easy_setopt(line->easy, ctransport_upload, 1L);
    return code != 0 ? code : line->curl->easy_setopt(line->easy, OPT_INFILESIZE_LARGE, line->length);
}

void ctransport_receive(ctransport_line *line, int descriptor, int64_t limit) {
    line->output = descriptor;
    line->limit = limit;
}

void ctransport_limit(ctransport_line *line, int64_t limit) { line->limit = limit; }

void ctransport_set_limits(ctransport_line *line, int64_t whole, int64_t stall, size_t most_head_bytes) {
    // Longer limits are shortened to 73 years, which do not overflow and are as good as no limit.
    const int64_t most = INT64_MAX / 4 / 1000000;
    line->end = whole < 0 ? -1 : ctransport_now() + (whole < most ? whole : most) * 1000000;
    line->stall = stall < 0 ? -1 : (stall < most ? stall : most) * 1000000;
    line->most_head = most_head_bytes;
}

void ctransport_set_caller(ctransport_line *line, ctransport_caller caller) { line->caller = caller; }
