// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "line.h"

#include <limits.h>
#include <signal.h>
#include <time.h>

// MARK: Time and waiting

int64_t ctransport_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/// Records why the transfer must end; the first reason counts.
void ctransport_fail(ctransport_line *line, int reason, int error) {
    if (line->reason != ctransport_reason_none) return;
    line->reason = reason;
    line->error = error;
}

/// Returns the maximum milliseconds to wait, rounded up; if a limit has passed, records the reason and returns 0.
int ctransport_wait_milliseconds(ctransport_line *line, bool may_stall) {
    int64_t present = ctransport_now();
    int64_t rest = (int64_t)INT_MAX * 1000000;
    if (line->end >= 0) {
        rest = line->end - present;
        if (rest <= 0) {
            ctransport_fail(line, ctransport_reason_timed_out, 0);
            return 0;
        }
    }
    if (may_stall && line->stall >= 0) {
        int64_t left = line->last + line->stall - present;
        if (left <= 0) {
            ctransport_fail(line, ctransport_reason_stalled, 0);
            return 0;
        }
        if (left < rest) rest = left;
        // Without a minimum rate, a server that sends a byte now and then could continue forever.
        int64_t window = line->counted_since + 2 * line->stall - present;
        if (window <= 0) {
            if (line->counted < line->stall / LONGEST_BYTE) {
                ctransport_fail(line, ctransport_reason_too_slow, 0);
                return 0;
            }
            line->counted_since = present;
            line->counted = 0;
            window = 2 * line->stall;
        }
        if (window < rest) rest = window;
    }
    int64_t milliseconds = (rest + 999999) / 1000000;
    return milliseconds > INT_MAX ? INT_MAX : (int)milliseconds;
}

void ctransport_note(ctransport_line *line, size_t count, int64_t begin) {
    line->last = ctransport_now();
    line->counted += (int64_t)count;
    line->counted_since += line->last - begin;
}

// MARK: The transfer

/// Returns whether curl has finished the transfer; if so, `code` is its result.
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

static int transfer(ctransport_line *line) {
    const ctransport_library *curl = line->curl;
    int code = curl->easy_setopt(line->easy, OPT_HTTPHEADER, line->headers);
    if (code != 0) return code;
    line->last = line->counted_since = ctransport_now();
    if (curl->multi_add_handle(line->multi, line->easy) != 0) return CODE_OUT_OF_MEMORY;
    line->is_added = true;
    while (true) {
        int running = 0;
        if (curl->multi_perform(line->multi, &running) != 0) return CODE_OUT_OF_MEMORY;
        if (is_done(line, &code)) return code;
        int limit = ctransport_wait_milliseconds(line, true);
        if (line->reason != ctransport_reason_none) return 0;
        struct wait_descriptor wake = {.fd = line->wake, .events = WAIT_POLLIN};
        if (curl->multi_poll(line->multi, &wake, 1, limit, NULL) != 0) return CODE_OUT_OF_MEMORY;
        if (wake.revents != 0) {
            ctransport_fail(line, ctransport_reason_cancelled, 0);
            return 0;
        }
    }
}

void ctransport_hold_broken_pipe(sigset_t *previous) {
    sigset_t broken;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken, previous);
}

void ctransport_release_broken_pipe(const sigset_t *previous) {
    if (sigismember(previous, SIGPIPE)) return;
    sigset_t broken;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    const struct timespec none = {0, 0};
    sigtimedwait(&broken, NULL, &none);
    pthread_sigmask(SIG_SETMASK, previous, NULL);
}

int ctransport_perform(ctransport_line *line) {
    if (!line->is_plain) line->has_used_tls = true;
    if (!line->has_used_tls) return transfer(line);
    sigset_t previous;
    ctransport_hold_broken_pipe(&previous);
    int code = transfer(line);
    ctransport_release_broken_pipe(&previous);
    return code;
}

// MARK: State

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
    if (line->easy != NULL) line->curl->easy_getinfo(line->easy, info, &number);
    return number;
}

long ctransport_status(const ctransport_line *line) { return number_of(line, INFO_RESPONSE_CODE); }

long ctransport_proxy_status(const ctransport_line *line) { return number_of(line, INFO_HTTP_CONNECTCODE); }

long ctransport_connections(const ctransport_line *line) { return number_of(line, INFO_NUM_CONNECTS); }

bool ctransport_has_sent(const ctransport_line *line) { return number_of(line, INFO_REQUEST_SIZE) > 0; }

void *ctransport_take_body(ctransport_line *line, size_t *count) {
    void *body = line->body;
    *count = body == NULL ? 0 : (size_t)line->received;
    line->body = NULL;
    line->body_capacity = 0;
    return body;
}
