// SPDX-License-Identifier: Apache-2.0
//
// HTTP transfers over libcurl, one at a time. The library is opened at run time, so that its headers are not
// required. The numbers declared here are part of its ABI, which has not changed since libcurl.so.4 was introduced.
//
// One thread may use a line at a time; only ctransport_wake may be called from any thread.

#ifndef CTRANSPORT_H
#define CTRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CSocket.h"

/// Connections and TLS sessions, and the state of the present transfer over them.
typedef struct ctransport_line ctransport_line;

/// Opens the library, which is never closed; on failure returns NULL and writes the reason to `reason` (at most
/// `capacity` bytes).
const ctransport_library *_Nullable ctransport_open(
    const char *_Nonnull name, char *_Nonnull reason, size_t capacity);

/// Returns an HTTP date (RFC 9110, section 5.6.7) in seconds since the beginning of 1970; -1 for any other text.
int64_t ctransport_date(const ctransport_library *_Nonnull library, const char *_Nonnull text);

/// Creates a line without connections; returns NULL if there is no memory or no descriptor.
ctransport_line *_Nullable ctransport_line_make(const ctransport_library *_Nonnull library);
/// Ends the present transfer, closes the line's connections and frees the line.
void ctransport_line_free(ctransport_line *_Nonnull line);

/// Options with text, with the numbers of CURLOPT_…
enum {
    ctransport_url = 10002,
    ctransport_proxy = 10004,
    ctransport_user_agent = 10018,
    ctransport_client_certificate = 10025,
    ctransport_key_password = 10026,
    ctransport_custom_method = 10036,
    ctransport_authority = 10065,
    ctransport_client_key = 10087,
    ctransport_user = 10173,
    ctransport_password = 10174,
    ctransport_no_proxy = 10177,
    ctransport_proxy_authority = 10246,
};

/// Options with a number, with the numbers of CURLOPT_…
enum {
    ctransport_no_body = 44,
    ctransport_upload = 46,
    ctransport_new_connection = 74,
    ctransport_http_version = 84,
    ctransport_connect_milliseconds = 156,
    ctransport_decodes_content = 158,
};

/// Values of ctransport_http_version.
enum {
    ctransport_version_1_1 = 2,
    ctransport_version_2_over_tls = 4,
};

/// Discards all wake-ups so far; must not be called while another thread may wake the line.
void ctransport_forget_wakes(ctransport_line *_Nonnull line);
/// Begins a transfer with a new handle of curl's, which shares only connections and TLS sessions with earlier ones.
/// Returns 0, or a CURLcode.
int ctransport_begin(ctransport_line *_Nonnull line);
/// Sets an option; the text is copied. Returns 0, or a CURLcode.
int ctransport_set_text(ctransport_line *_Nonnull line, long option, const char *_Nonnull text);
int ctransport_set_number(ctransport_line *_Nonnull line, long option, long number);
/// Adds a header line, without its line ending; returns false if there is no memory.
bool ctransport_add_header(ctransport_line *_Nonnull line, const char *_Nonnull header);
/// Sets the body to send: a copy of `count` bytes. Returns 0, or a CURLcode.
int ctransport_send_bytes(ctransport_line *_Nonnull line, const void *_Nullable bytes, size_t count);
/// The destination of the body in memory, instead of a descriptor.
enum { ctransport_to_memory = -1 };
/// Sets the destination of the body, a descriptor or ctransport_to_memory, and the maximum length of the body in bytes.
void ctransport_receive(ctransport_line *_Nonnull line, int descriptor, int64_t limit);
/// Changes the maximum length of the body; for the callback `decide`.
void ctransport_limit(ctransport_line *_Nonnull line, int64_t limit);
/// Sets the limits of the transfer. `whole` is its time limit in milliseconds from now. `stall` is the maximum time
/// in milliseconds without a byte in either direction; over twice that time, at least 5 bytes a second must be
/// transferred. -1 means no limit. `most_head_bytes` is the maximum length of all heads together.
void ctransport_set_limits(
    ctransport_line *_Nonnull line, int64_t whole, int64_t stall, size_t most_head_bytes);

/// The disposition of a body.
enum {
    ctransport_keep = 0,
    /// The body is read and dropped; after 256 KiB the transfer ends as with ctransport_stop.
    ctransport_discard = 1,
    ctransport_stop = 2,
};
/// The callbacks of a transfer, which are called on its thread; each of them may be NULL.
typedef struct ctransport_caller {
    void *_Nullable context;
    /// Called when the first byte of the body has arrived; returns the disposition of the body.
    int (*_Nullable decide)(void *_Nullable context);
    /// Called after each piece of a body that is kept was written; returns 0, or the reason why the transfer must end.
    int (*_Nullable taken)(void *_Nullable context);
    /// Called if a disk or a quota is full; returns whether there may now be space for `count` bytes.
    bool (*_Nullable make_space)(void *_Nullable context, size_t count);
} ctransport_caller;
/// Sets the callbacks of the present transfer.
void ctransport_set_caller(ctransport_line *_Nonnull line, ctransport_caller caller);

/// The reason why a transfer ended, if curl did not end it.
enum {
    ctransport_reason_none = 0,
    ctransport_reason_cancelled,
    ctransport_reason_timed_out,
    ctransport_reason_stalled,
    ctransport_reason_too_slow,
    ctransport_reason_too_large,
    ctransport_reason_head_too_large,
    ctransport_reason_output,
    ctransport_reason_stopped,
    ctransport_reason_memory,
};

/// Performs the transfer; returns a CURLcode when it has ended. Descriptors and callbacks are not used after that.
///
/// The call does not follow redirects, and does not cause SIGPIPE.
int ctransport_perform(ctransport_line *_Nonnull line);
/// Ends the present transfer, or the next one if none is in progress; may be called from any thread.
void ctransport_wake(ctransport_line *_Nonnull line);

/// Returns the reason why the transfer ended.
///
/// This function and those up to ctransport_has_sent can be called after a transfer, and in `decide`.
int ctransport_reason(const ctransport_line *_Nonnull line);
/// Returns the errno of a failed read or write.
int ctransport_errno(const ctransport_line *_Nonnull line);
/// Returns curl's message for a CURLcode.
const char *_Nonnull ctransport_message(const ctransport_line *_Nonnull line, int code);
/// Returns the head of the last response, with its status line, as received.
const char *_Nullable ctransport_head(const ctransport_line *_Nonnull line, size_t *_Nonnull count);
/// Returns the number of bytes of the body so far.
int64_t ctransport_received(const ctransport_line *_Nonnull line);
long ctransport_status(const ctransport_line *_Nonnull line);
/// Returns the proxy's status for CONNECT; 0 if there was none.
long ctransport_proxy_status(const ctransport_line *_Nonnull line);
/// Returns the number of connections that were opened for the transfer; 0 if an existing one was used.
long ctransport_connections(const ctransport_line *_Nonnull line);
/// Returns whether any of the request was sent, also over a connection that broke before the present one.
bool ctransport_has_sent(const ctransport_line *_Nonnull line);
/// Returns the body in memory, which the caller must free with free(3); NULL if there is none.
void *_Nullable ctransport_take_body(ctransport_line *_Nonnull line, size_t *_Nonnull count);

/// Releases the present transfer, whose state can't be read afterwards; may wait for the name resolver.
void ctransport_end(ctransport_line *_Nonnull line);

#endif
