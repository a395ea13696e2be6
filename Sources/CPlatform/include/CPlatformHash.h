// SPDX-License-Identifier: Apache-2.0

// SHA-256 and CRC-32C in C, because Swift does not offer the intrinsics for the CPU's own instructions. No function
// here allocates memory, blocks or fails, and every function may be called from any thread.

#ifndef CPLATFORM_HASH_H
#define CPLATFORM_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// `is_portable` is for tests: it selects portable C even if the CPU has instructions for the function. Both give the
// same result for the same bytes.

/// The SHA-256 of bytes that arrive in pieces (FIPS 180-4).
typedef struct cplatform_sha256 {
    /// H0...H7.
    uint32_t state[8];
    /// The number of bytes added so far.
    uint64_t size;
    /// An incomplete block, of which the first `size` % 64 bytes are valid.
    uint8_t pending[64];
} cplatform_sha256;

/// Starts a message without bytes.
void cplatform_sha256_begin(cplatform_sha256 *_Nonnull message);
/// Adds `count` bytes to the message. O(count).
void cplatform_sha256_update(
    cplatform_sha256 *_Nonnull message, const void *_Nullable bytes, size_t count, bool is_portable);
/// Writes the digest to the 32 bytes at `digest`. The message can't be used any more.
void cplatform_sha256_end(
    cplatform_sha256 *_Nonnull message, uint8_t *_Nonnull digest, bool is_portable);

/// Writes the digest of `count` contiguous bytes to the 32 bytes at `digest`. O(count).
void cplatform_sha256_hash(
    uint8_t *_Nonnull digest, const void *_Nullable bytes, size_t count, bool is_portable);

/// Whether this CPU has SHA-256 instructions.
bool cplatform_sha256_is_accelerated(void);

/// Returns the CRC-32C of the bytes whose checksum is `crc` (0 for none) followed by `count` more.
///
/// The result includes the inversions before and after, so it is a finished checksum and can also be the next `crc`.
/// `bytes` needs no alignment. O(count).
uint32_t cplatform_crc32c_update(
    uint32_t crc, const void *_Nonnull bytes, size_t count, bool is_portable);

/// Whether this CPU has CRC-32C instructions.
bool cplatform_crc32c_is_accelerated(void);

#endif
