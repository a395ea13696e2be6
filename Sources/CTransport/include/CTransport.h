// SPDX-License-Identifier: Apache-2.0
//
// One HTTP transfer at a time over libcurl, which is opened when it is first needed, so that its headers are not
// required. The numbers of curl declared here are part of its ABI, which has not changed since libcurl.so.4 was
// introduced.
//
// One thread may use a line at a time; only ctransport_wake may be called from any thread.

#ifndef CTRANSPORT_H
#define CTRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CSocket.h"

/// Connections, and the input and output of their present transfer.
typedef struct ctransport_line ctransport_line;

/// Opens the library, permanently; returns NULL on failure, with the reason in `reason` (at most `capacity` bytes).
const ctransport_library *_Nullable ctransport_open(
    const char *_Nonnull name, char *_Nonnull reason, size_t capacity);

/// Returns NULL if there is no memory or no descriptor.
ctransport_line *_Nullable ctransport_line_make(const ctransport_library *_Nonnull library);
/// Closes its connections.
void ctransport_line_free(ctransport_line *_Nonnull line);

/// Options with text, numbered as CURLOPT_…
enum {
    ctransport_url = 10002,
    ctransport_proxy = 10004,
    ctransport_user_agent = 10018,
    ctransport_client_certificate = 10025,
    ctransport_key_password = 10026,
    ctransport_custom_method = 10036,
    ctransport_authority = 10065,
    ctransport_client_key = 10087,
    ctransport_accept_encoding = 10102,
    ctransport_user = 10173,
    ctransport_password = 10174,
    ctransport_no_proxy = 10177,
    ctransport_proxy_authority = 10246,
};

/// Options with a number.
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

/// Discards the wake-ups so far; not while others may wake it.
void ctransport_forget_wakes(ctransport_line *_Nonnull line);
/// Begins a transfer with a new handle of curl's, which takes over only connections. Returns 0, or a CURLcode.
int ctransport_begin(ctransport_line *_Nonnull line);
/// Returns 0, or a CURLcode; the text is copied.
int ctransport_set_text(ctransport_line *_Nonnull line, long option, const char *_Nonnull text);
int ctransport_set_number(ctransport_line *_Nonnull line, long option, long number);
/// Adds a header line, without its line ending; returns false if there is no memory.
bool ctransport_add_header(ctransport_line *_Nonnull line, const char *_Nonnull header);
/// Sets the body to send: `length` bytes (-1: up to the end) of a descriptor, from its offset.
int ctransport_send_descriptor(ctransport_line *_Nonnull line, int descriptor, int64_t length);
/// Sets the body to send: a copy of these bytes.
int ctransport_send_bytes(ctransport_line *_Nonnull line, const void *_Nullable bytes, size_t count);
/// Values for the body instead of a descriptor.
enum {
    ctransport_to_memory = -1,
    /// Only to the callback `take`.
    ctransport_to_caller = -2,
};
/// Sets the destination of the body, a descriptor or one of those above, and its maximum length in bytes.
void ctransport_receive(ctransport_line *_Nonnull line, int descriptor, int64_t limit);
/// Sets another limit for the body that begins, from within `decide`.
void ctransport_limit(ctransport_line *_Nonnull line, int64_t limit);
/// Sets the milliseconds from now for the whole transfer, the maximum without a byte in either direction, -1 for no
/// limit, and the maximum bytes of all heads. In twice the second time, at least 5 bytes a second must be
/// transferred.
void ctransport_set_limits(
    ctransport_line *_Nonnull line, int64_t whole, int64_t stall, size_t most_head_bytes);

/// The disposition of a body.
enum {
    ctransport_keep = 0,
    /// Read and dropped, up to 256 KiB, and then stopped.
    ctransport_discard = 1,
    ctransport_stop = 2,
};
/// The callbacks of a transfer, in its thread; each of them may be NULL.
typedef struct ctransport_caller {
    void *_Nullable context;
    /// Called when the first byte of the body has arrived.
    int (*_Nullable decide)(void *_Nullable context);
    /// Called with each piece of a body that is kept, after it was written; returns 0, or why the transfer must end.
    int (*_Nullable take)(void *_Nullable context, const void *_Nonnull bytes, size_t count);
    /// Called if a disk or a quota is full; returns whether there may be space for `count` bytes again.
    bool (*_Nullable make_space)(void *_Nullable context, size_t count);
} ctransport_caller;
/// Sets the callbacks, from the beginning of a transfer to its end.
void ctransport_set_caller(ctransport_line *_Nonnull line, ctransport_caller caller);

/// Why a transfer ended, if curl did not end it.
enum {
    ctransport_reason_none = 0,
    ctransport_reason_cancelled,
    ctransport_reason_timed_out,
    ctransport_reason_stalled,
    ctransport_reason_too_slow,
    ctransport_reason_too_large,
    ctransport_reason_head_too_large,
    ctransport_reason_output,
    ctransport_reason_source,
    ctransport_reason_source_too_short,
    ctransport_reason_stopped,
    ctransport_reason_memory,
};

/// Performs the transfer; returns a CURLcode when it has ended. Descriptors and callbacks are not used after that.
///
/// Does not follow redirects. Does not raise SIGPIPE in any thread.
int ctransport_perform(ctransport_line *_Nonnull line);
/// Ends the present or next transfer; may be called from any thread.
void ctransport_wake(ctransport_line *_Nonnull line);

/// The state after a transfer, or when the body begins.
int ctransport_reason(const ctransport_line *_Nonnull line);
/// The errno of a failed read or write.
int ctransport_errno(const ctransport_line *_Nonnull line);
/// Curl's message for a failure.
const char *_Nonnull ctransport_message(const ctransport_line *_Nonnull line, int code);
/// The head of the last response, with its status line, as received.
const char *_Nullable ctransport_head(const ctransport_line *_Nonnull line, size_t *_Nonnull count);
/// Bytes of the body so far.
int64_t ctransport_received(const ctransport_line *_Nonnull line);
long ctransport_status(const ctransport_line *_Nonnull line);
/// The proxy's status for CONNECT; 0 if it was not sent.
long ctransport_proxy_status(const ctransport_line *_Nonnull line);
/// Bytes of all heads so far.
size_t ctransport_head_bytes(const ctransport_line *_Nonnull line);
/// The number of connections that were opened for it; 0 if an existing one was used.
long ctransport_connections(const ctransport_line *_Nonnull line);
const char *_Nullable ctransport_effective_url(const ctransport_line *_Nonnull line);
/// Resolves `reference` against `base`, escaped, of any scheme; returns NULL if it is not valid. The line owns the
/// result until it is used again.
const char *_Nullable ctransport_resolve(
    ctransport_line *_Nonnull line, const char *_Nonnull base, const char *_Nonnull reference);
/// Returns the body in memory, which the caller must free(3), or NULL if there is none.
void *_Nullable ctransport_take_body(ctransport_line *_Nonnull line, size_t *_Nonnull count);

/// Releases the transfer, after its state was read; may wait for the name resolver.
void ctransport_end(ctransport_line *_Nonnull line);

#endif
