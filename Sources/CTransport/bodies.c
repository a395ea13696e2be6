// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

// MARK: Receiving

/// Asks the caller to make space if a write has failed for lack of it; returns whether to retry the write of `count`
/// bytes.
static bool make_space(ctransport_line *line, size_t count, int *tries) {
    if (errno != ENOSPC && errno != EDQUOT) return false;
    if (line->caller.make_space == NULL || ++*tries > MOST_SPACE_TRIES) return false;
    ctransport_wait_milliseconds(line, false);
    return line->reason == ctransport_reason_none && line->caller.make_space(line->caller.context, count);
}

static bool write_all(ctransport_line *line, const char *bytes, size_t count) {
    size_t written = 0;
    int tries = 0;
    while (written < count) {
        ssize_t done = write(line->output, bytes + written, count - written);
        if (done >= 0) {
            written += (size_t)done;
            if (done > 0) tries = 0;
        } else if (errno != EINTR) {
            int error = errno;
            if (make_space(line, count - written, &tries)) continue;
            ctransport_fail(line, ctransport_reason_output, error);
            return false;
        }
    }
    return true;
}

/// Makes room for `needed` bytes by doubling the capacity; returns false if there is no memory.
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
    if (line->caller.decide != NULL) line->disposition = line->caller.decide(line->caller.context);
    if (line->disposition == ctransport_stop) {
        ctransport_fail(line, ctransport_reason_stopped, 0);
        return false;
    }
    int64_t length = -1;
    line->curl->easy_getinfo(line->easy, INFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (line->disposition == ctransport_keep && length > line->limit) {
        ctransport_fail(line, ctransport_reason_too_large, 0);
        return false;
    }
    return true;
}

static bool keep(ctransport_line *line, const char *bytes, size_t count) {
    if ((int64_t)count > line->limit - line->received) {
        ctransport_fail(line, ctransport_reason_too_large, 0);
        return false;
    }
    if (line->output >= 0) {
        if (!write_all(line, bytes, count)) return false;
    } else {
        size_t filled = (size_t)line->received;
        if (!make_room(&line->body, &line->body_capacity, filled + count)) {
            ctransport_fail(line, ctransport_reason_memory, 0);
            return false;
        }
        memcpy(line->body + filled, bytes, count);
    }
    line->received += (int64_t)count;
    if (line->caller.taken == NULL) return true;
    int reason = line->caller.taken(line->caller.context);
    if (reason != ctransport_reason_none) ctransport_fail(line, reason, 0);
    return reason == ctransport_reason_none;
}

size_t ctransport_take_piece(char *bytes, size_t size, size_t number, void *data) {
    ctransport_line *line = data;
    size_t count = size * number;
    if (line->reason != ctransport_reason_none) return 0;
    if (count == 0) return 0;
    int64_t begin = ctransport_now();
    if (!line->is_decided && !decide(line)) return 0;
    if (line->disposition == ctransport_keep) {
        if (!keep(line, bytes, count)) return 0;
    } else if (line->received > MOST_DISCARDED) {
        ctransport_fail(line, ctransport_reason_stopped, 0);
        return 0;
    } else {
        line->received += (int64_t)count;
    }
    // Called after the write, because the time that a slow reader takes must not count against the server.
    ctransport_note(line, count, begin);
    return count;
}

size_t ctransport_take_head(char *bytes, size_t size, size_t number, void *data) {
    ctransport_line *line = data;
    size_t count = size * number;
    if (line->reason != ctransport_reason_none) return 0;
    ctransport_note(line, count, ctransport_now());
    // Counted over all responses, because a server may send interim responses (1xx) forever.
    line->head_total += count;
    if (line->head_total > line->most_head) {
        ctransport_fail(line, ctransport_reason_head_too_large, 0);
        return 0;
    }
    if (count >= 5 && strncasecmp(bytes, "HTTP/", 5) == 0 && (line->is_head_whole || line->head_count == 0)) {
        line->head_count = 0;
        line->is_head_whole = false;
    }
    // Field lines after the body (trailers) are ignored.
    if (line->is_head_whole) return count;
    if ((count == 2 && bytes[0] == '\r') || (count == 1 && bytes[0] == '\n')) {
        line->is_head_whole = true;
        return count;
    }
    if (!make_room(&line->head, &line->head_capacity, line->head_count + count)) {
        ctransport_fail(line, ctransport_reason_memory, 0);
        return 0;
    }
    memcpy(line->head + line->head_count, bytes, count);
    line->head_count += count;
    return count;
}

// MARK: Sending

size_t ctransport_give_piece(char *buffer, size_t size, size_t number, void *data) {
    ctransport_line *line = data;
    size_t count = size * number;
    if (line->reason != ctransport_reason_none) return READ_ABORT;
    if ((int64_t)count > line->length - line->sent) count = (size_t)(line->length - line->sent);
    if (count == 0) return 0;
    int64_t begin = ctransport_now();
    memcpy(buffer, line->bytes + line->sent, count);
    line->sent += (int64_t)count;
    ctransport_note(line, count, begin);
    return count;
}

/// Rewinds the body, so that curl can send it again if a reused connection turns out to be closed.
int ctransport_give_again(void *data, int64_t offset, int origin) {
    ctransport_line *line = data;
    if (origin != SEEK_SET || offset < 0 || offset > line->length) return SEEK_CANT;
    line->sent = offset;
    return SEEK_OK;
}
