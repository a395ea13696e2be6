// SPDX-License-Identifier: Apache-2.0

// The SHA-256 compression function of FIPS 180-4, section 6.2.2: in portable C, with Intel's SHA extensions ("Intel
// SHA Extensions", Gulley et al., 2013) and with Armv8's. The names are those of the standard.

#include "CPlatformHash.h"

#include <endian.h>
#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

enum { BLOCK_SIZE = 64 };

typedef void compress_function(uint32_t *state, const uint8_t *block, size_t count);

// Section 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes.
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t rotr(uint32_t x, unsigned n) {
    return x >> n | x << (32 - n);
}

static inline uint32_t load_be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static void compress_portable(uint32_t *state, const uint8_t *block, size_t count) {
    for (; count > 0; count--, block += BLOCK_SIZE) {
        uint32_t W[64];
        for (int t = 0; t < 16; t++) {
            W[t] = load_be32(block + 4 * t);
        }
        for (int t = 16; t < 64; t++) {
            uint32_t sigma0 = rotr(W[t - 15], 7) ^ rotr(W[t - 15], 18) ^ W[t - 15] >> 3;
            uint32_t sigma1 = rotr(W[t - 2], 17) ^ rotr(W[t - 2], 19) ^ W[t - 2] >> 10;
            W[t] = sigma1 + W[t - 7] + sigma0 + W[t - 16];
        }

        uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
        uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
        for (int t = 0; t < 64; t++) {
            uint32_t Sigma1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25);
            uint32_t Sigma0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22);
            uint32_t Ch = (e & f) ^ (~e & g);
            uint32_t Maj = (a & b) ^ (a & c) ^ (b & c);
            uint32_t T1 = h + Sigma1 + Ch + K[t] + W[t];
            uint32_t T2 = Sigma0 + Maj;
            h = g, g = f, f = e, e = d + T1;
            d = c, c = b, b = a, a = T1 + T2;
        }
        state[0] += a, state[1] += b, state[2] += c, state[3] += d;
        state[4] += e, state[5] += f, state[6] += g, state[7] += h;
    }
}

#if defined(__x86_64__)

__attribute__((target("sha,sse4.1,ssse3")))
static void compress_sha_ni(uint32_t *state, const uint8_t *block, size_t count) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);

    // sha256rnds2 takes the state as {F, E, B, A} and {H, G, D, C}, lowest word first.
    __m128i dcba = _mm_loadu_si128((const __m128i *)state);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)(state + 4));
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1);
    __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
    __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);

    for (; count > 0; count--, block += BLOCK_SIZE) {
        const __m128i abef_before = abef;
        const __m128i cdgh_before = cdgh;

        // The 16 latest words of the message schedule, four to a vector, as a ring.
        __m128i W[4];
        for (int i = 0; i < 4; i++) {
            W[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)block + i), big_endian);
        }
        // Unrolled, so that the ring is kept in registers.
#pragma clang loop unroll(full)
        for (int i = 0; i < 16; i++) {
            __m128i *w0 = &W[i % 4], w1 = W[(i + 1) % 4], w2 = W[(i + 2) % 4], w3 = W[(i + 3) % 4];
            __m128i WK = _mm_add_epi32(*w0, _mm_loadu_si128((const __m128i *)K + i));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, WK);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(WK, 0x0e));
            if (i < 12) {
                __m128i partial = _mm_add_epi32(_mm_sha256msg1_epu32(*w0, w1), _mm_alignr_epi8(w3, w2, 4));
                *w0 = _mm_sha256msg2_epu32(partial, w3);
            }
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }

    __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
    __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

// Uses CPUID directly: older libgcc, which implements __builtin_cpu_supports, does not know "sha".
static compress_function *best_function(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) {
        return compress_portable;
    }
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_SHA)) {
        return compress_portable;
    }
    return compress_sha_ni;
}

#elif defined(__aarch64__) && defined(__linux__)

__attribute__((target("sha2")))
static void compress_armv8(uint32_t *state, const uint8_t *block, size_t count) {
    uint32x4_t abcd = vld1q_u32(state);
    uint32x4_t efgh = vld1q_u32(state + 4);

    for (; count > 0; count--, block += BLOCK_SIZE) {
        const uint32x4_t abcd_before = abcd;
        const uint32x4_t efgh_before = efgh;

        // The 16 latest words of the message schedule, four to a vector, as a ring.
        uint32x4_t W[4];
        for (int i = 0; i < 4; i++) {
            W[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(block + 16 * i)));
        }
        // Unrolled, so that the ring is kept in registers.
#pragma clang loop unroll(full)
        for (int i = 0; i < 16; i++) {
            uint32x4_t *w0 = &W[i % 4], w1 = W[(i + 1) % 4], w2 = W[(i + 2) % 4], w3 = W[(i + 3) % 4];
            uint32x4_t WK = vaddq_u32(*w0, vld1q_u32(K + 4 * i));
            uint32x4_t abcd_now = abcd;
            abcd = vsha256hq_u32(abcd, efgh, WK);
            efgh = vsha256h2q_u32(efgh, abcd_now, WK);
            if (i < 12) {
                *w0 = vsha256su1q_u32(vsha256su0q_u32(*w0, w1), w2, w3);
            }
        }
        abcd = vaddq_u32(abcd, abcd_before);
        efgh = vaddq_u32(efgh, efgh_before);
    }

    vst1q_u32(state, abcd);
    vst1q_u32(state + 4, efgh);
}

static compress_function *best_function(void) {
    return getauxval(AT_HWCAP) & HWCAP_SHA2 ? compress_armv8 : compress_portable;
}

#else

static compress_function *best_function(void) {
    return compress_portable;
}

#endif

// Determined once, because CPUID traps to the hypervisor in a virtual machine. Threads that race here store the same
// function pointer, so relaxed order is enough.
static compress_function *automatic_function(void) {
    static _Atomic(compress_function *) chosen;
    compress_function *function = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (function == NULL) {
        function = best_function();
        atomic_store_explicit(&chosen, function, memory_order_relaxed);
    }
    return function;
}

static void compress(uint32_t *state, const uint8_t *blocks, size_t count, bool is_portable) {
    compress_function *function =
        is_portable ? compress_portable : automatic_function();
    function(state, blocks, count);
}

void cplatform_sha256_begin(cplatform_sha256 *message) {
    // Section 5.3.3.
    static const uint32_t start[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };
    memcpy(message->state, start, sizeof start);
    message->size = 0;
}

void cplatform_sha256_update(
    cplatform_sha256 *message, const void *bytes, size_t count, bool is_portable) {
    const uint8_t *p = bytes;
    size_t held = message->size % BLOCK_SIZE;
    message->size += count;
    if (held > 0) {
        size_t taken = count < BLOCK_SIZE - held ? count : BLOCK_SIZE - held;
        if (taken > 0) memcpy(message->pending + held, p, taken);
        if (held + taken < BLOCK_SIZE) return;
        compress(message->state, message->pending, 1, is_portable);
        p += taken, count -= taken;
    }
    size_t whole = count / BLOCK_SIZE, rest = count % BLOCK_SIZE;
    if (whole > 0) compress(message->state, p, whole, is_portable);
    if (rest > 0) memcpy(message->pending, p + whole * BLOCK_SIZE, rest);
}

void cplatform_sha256_end(cplatform_sha256 *message, uint8_t *digest, bool is_portable) {
    // Section 5.1.1: a 1 bit, zeros, and the length in bits at the end of a block.
    size_t held = message->size % BLOCK_SIZE;
    message->pending[held++] = 0x80;
    memset(message->pending + held, 0, BLOCK_SIZE - held);
    if (held > BLOCK_SIZE - 8) {
        compress(message->state, message->pending, 1, is_portable);
        memset(message->pending, 0, BLOCK_SIZE);
    }
    uint64_t bits = htobe64(message->size << 3);
    memcpy(message->pending + BLOCK_SIZE - sizeof bits, &bits, sizeof bits);
    compress(message->state, message->pending, 1, is_portable);
    for (size_t i = 0; i < 8; i++) {
        uint32_t word = htobe32(message->state[i]);
        memcpy(digest + sizeof word * i, &word, sizeof word);
    }
}

// Flattened, because most messages are keys of a single block, for which the function calls would cost more than the
// remaining steps.
__attribute__((flatten))
void cplatform_sha256_hash(
    uint8_t *digest, const void *bytes, size_t count, bool is_portable) {
    cplatform_sha256 message;
    cplatform_sha256_begin(&message);
    cplatform_sha256_update(&message, bytes, count, is_portable);
    cplatform_sha256_end(&message, digest, is_portable);
}

bool cplatform_sha256_is_accelerated(void) {
    return automatic_function() != compress_portable;
}
