// SPDX-License-Identifier: Apache-2.0

// SHA-256 and CRC-32C in C, because the CPU's own instructions for them are intrinsics that Swift cannot
// name. Nothing here allocates, blocks or fails, and every function may be called from any thread.

#ifndef CPLATFORM_HASH_H
#define CPLATFORM_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Which implementation to run. All of them give the same result for the same bytes.
typedef enum __attribute__((enum_extensibility(closed))) cplatform_hash_kernel {
    /// The CPU's hash instructions where it has them, portable C elsewhere: what everything but a test wants.
    cplatform_hash_kernel_automatic,
    /// Portable C on every CPU: what the tests compare with.
    cplatform_hash_kernel_portable,
} cplatform_hash_kernel;

/// Runs the SHA-256 compression function (FIPS 180-4, section 6.2.2) over `count` blocks of 64 bytes.
///
/// `state` holds H0...H7 and is updated in place. Padding is the caller's part. `blocks` needs no
/// alignment. O(count).
void cplatform_sha256_compress(
    uint32_t *_Nonnull state, const void *_Nonnull blocks, size_t count, cplatform_hash_kernel kernel);

/// Writes the SHA-256 digest of `count` bytes that are all there to the 32 bytes at `digest`: O(count).
void cplatform_sha256_hash(
    uint8_t *_Nonnull digest, const void *_Nullable bytes, size_t count, cplatform_hash_kernel kernel);

/// Whether `cplatform_hash_kernel_automatic` means SHA-256 instructions on this CPU.
bool cplatform_sha256_is_accelerated(void);

/// Returns the CRC-32C of the bytes that gave `crc` (0 for none) followed by `count` more.
///
/// The inversions before and after are included, so a result is a finished checksum and also the next
/// `crc`. `bytes` needs no alignment. O(count).
uint32_t cplatform_crc32c_update(
    uint32_t crc, const void *_Nonnull bytes, size_t count, cplatform_hash_kernel kernel);

/// Whether `cplatform_hash_kernel_automatic` means CRC-32C instructions on this CPU.
bool cplatform_crc32c_is_accelerated(void);

#endif
