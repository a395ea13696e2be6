// SPDX-License-Identifier: Apache-2.0
//
// One HTTP transfer at a time over libcurl, which is opened when it is first needed: its headers are needed
// nowhere. What is declared here of curl are numbers of its ABI, which has not changed since libcurl.so.4
// came to be.
//
// A line may be used by one thread at a time; only ctransport_wake is for all threads.

#ifndef CTRANSPORT_H
#define CTRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CSocket.h"

/// Connections, and what their present transfer reads and writes.
typedef struct ctransport_line ctransport_line;

/// Opens the library, for good; NULL: `reason` (at most `capacity` bytes) says why not.
const ctransport_library *_Nullable ctransport_open(
    const char *_Nonnull name, char *_Nonnull reason, size_t capacity);

/// NULL where there is no memory or no descriptor for it.
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

/// Wake-ups until now count for nothing; not while others may wake it.
void ctransport_forget_wakes(ctransport_line *_Nonnull line);
/// Begins a transfer with a new handle of curl's; only the connections are those of earlier ones. 0, or a CURLcode.
int ctransport_begin(ctransport_line *_Nonnull line);
/// 0, or a CURLcode; the text is copied.
int ctransport_set_text(ctransport_line *_Nonnull line, long option, const char *_Nonnull text);
int ctransport_set_number(ctransport_line *_Nonnull line, long option, long number);
/// A line of the head, without its end; false where there is no memory.
bool ctransport_add_header(ctransport_line *_Nonnull line, const char *_Nonnull header);
/// What is sent: `length` bytes (-1: up to the end) of a descriptor from where it stands.
int ctransport_send_descriptor(ctransport_line *_Nonnull line, int descriptor, int64_t length);
/// What is sent: a copy of these bytes.
int ctransport_send_bytes(ctransport_line *_Nonnull line, const void *_Nullable bytes, size_t count);
/// Instead of a descriptor for the body.
enum {
    ctransport_to_memory = -1,
    /// Only to what takes each piece.
    ctransport_to_caller = -2,
};
/// Where the body goes: into a descriptor, or one of those above; and how many bytes it may have.
void ctransport_receive(ctransport_line *_Nonnull line, int descriptor, int64_t limit);
/// Another limit for the body that begins, from within `decide`.
void ctransport_limit(ctransport_line *_Nonnull line, int64_t limit);
/// Milliseconds from now for all of it, and those that may pass without a byte either way; -1: any number. In twice the
/// latter as many bytes have to come or go as make 5 a second.
void ctransport_set_limits(
    ctransport_line *_Nonnull line, int64_t whole, int64_t stall, size_t most_head_bytes);

/// What becomes of a body.
enum {
    ctransport_keep = 0,
    /// Read and dropped, up to 256 KiB; then as the next one.
    ctransport_discard = 1,
    ctransport_stop = 2,
};
/// Who is asked and told of a transfer, in its thread; any of them may be left out.
typedef struct ctransport_caller {
    void *_Nullable context;
    /// Asked when the first byte of the body is there.
    int (*_Nullable decide)(void *_Nullable context);
    /// Told each piece of a body that is kept, after it was written; 0, or why the transfer is to end.
    int (*_Nullable take)(void *_Nullable context, const void *_Nonnull bytes, size_t count);
    /// Whether there may be space for so many bytes again, where a disk or a quota is full.
    bool (*_Nullable make_space)(void *_Nullable context, size_t count);
} ctransport_caller;
/// From the beginning of a transfer to its end.
void ctransport_set_caller(ctransport_line *_Nonnull line, ctransport_caller caller);

/// Why a transfer ended, where that was not curl's own decision.
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

/// Transfers; returns when all of it is done, with a CURLcode. Descriptors and the caller are not used any
/// more then.
///
/// It does not follow redirects. SIGPIPE is not raised, whichever the thread.
int ctransport_perform(ctransport_line *_Nonnull line);
/// Ends the transfer, present or next, from any thread.
void ctransport_wake(ctransport_line *_Nonnull line);

/// What is known after a transfer, or when the body begins.
int ctransport_reason(const ctransport_line *_Nonnull line);
/// The errno of a failed read or write.
int ctransport_errno(const ctransport_line *_Nonnull line);
/// Curl's words for a failure.
const char *_Nonnull ctransport_message(const ctransport_line *_Nonnull line, int code);
/// The head of the last response, with its status line, as it came.
const char *_Nullable ctransport_head(const ctransport_line *_Nonnull line, size_t *_Nonnull count);
/// Bytes of the body so far.
int64_t ctransport_received(const ctransport_line *_Nonnull line);
long ctransport_status(const ctransport_line *_Nonnull line);
/// What the proxy has answered to CONNECT; 0: it was not asked.
long ctransport_proxy_status(const ctransport_line *_Nonnull line);
/// Bytes of all heads so far.
size_t ctransport_head_bytes(const ctransport_line *_Nonnull line);
/// Connections that were made for it; 0: one was there.
long ctransport_connections(const ctransport_line *_Nonnull line);
const char *_Nullable ctransport_effective_url(const ctransport_line *_Nonnull line);
/// Where `reference` leads from `base`, escaped, of any scheme; NULL: nowhere. The line's own until it is
/// used again.
const char *_Nullable ctransport_resolve(
    ctransport_line *_Nonnull line, const char *_Nonnull base, const char *_Nonnull reference);
/// The body in memory, now the caller's to free(3); NULL: none.
void *_Nullable ctransport_take_body(ctransport_line *_Nonnull line, size_t *_Nonnull count);

/// Lets go of the transfer, when what is known of it was read; may wait for the resolver of names.
void ctransport_end(ctransport_line *_Nonnull line);

#endif
