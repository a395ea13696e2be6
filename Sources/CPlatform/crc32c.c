// SPDX-License-Identifier: Apache-2.0

// CRC-32C: Castagnoli's polynomial 0x1EDC6F41, reflected, as in RFC 3720 (section 12.1, vectors in B.4).
//
// A reflected value holds the coefficient of x^31 in bit 0. The functions below work on the bare remainder; only
// cplatform_crc32c_update inverts it before and after.

#include "CPlatformHash.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

typedef uint32_t update_function(uint32_t crc, const uint8_t *p, size_t count);

static inline uint64_t load_le64(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

// A CRC is linear, so the entry for a byte is the sum of the entries for its bits. The preprocessor expands eight
// numbers to a row of 256, so nothing is initialized at run time.
#define SUMS1(s, a) (s), (s) ^ (a)
#define SUMS2(s, a, b) SUMS1(s, a), SUMS1((s) ^ (b), a)
#define SUMS3(s, a, b, c) SUMS2(s, a, b), SUMS2((s) ^ (c), a, b)
#define SUMS4(s, a, b, c, d) SUMS3(s, a, b, c), SUMS3((s) ^ (d), a, b, c)
#define SUMS5(s, a, b, c, d, e) SUMS4(s, a, b, c, d), SUMS4((s) ^ (e), a, b, c, d)
#define SUMS6(s, a, b, c, d, e, f) SUMS5(s, a, b, c, d, e), SUMS5((s) ^ (f), a, b, c, d, e)
#define SUMS7(s, a, b, c, d, e, f, g) SUMS6(s, a, b, c, d, e, f), SUMS6((s) ^ (g), a, b, c, d, e, f)
#define ROW(a, b, c, d, e, f, g, h) {SUMS7(0, a, b, c, d, e, f, g), SUMS7(h, a, b, c, d, e, f, g)}

// table[k][b] is the remainder of byte b with k zero bytes after it. Read the lines downwards and each line
// backwards: the first number is the polynomial, and each following number is x times the previous one.
static const uint32_t table[8][256] = {
    ROW(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78),
    ROW(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9),
    ROW(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743),
    ROW(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f),
    ROW(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c),
    ROW(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6),
    ROW(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4),
    ROW(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664),
};

// Slicing-by-8: "Novel Table Lookup-Based Algorithms for High-Performance CRC Generation", Kounavis and
// Berry, 2008.
static uint32_t update_portable(uint32_t crc, const uint8_t *p, size_t count) {
    for (; count >= 8; count -= 8, p += 8) {
        uint64_t word = load_le64(p) ^ crc;
        crc = table[7][word & 0xff] ^ table[6][word >> 8 & 0xff] ^ table[5][word >> 16 & 0xff]
            ^ table[4][word >> 24 & 0xff] ^ table[3][word >> 32 & 0xff] ^ table[2][word >> 40 & 0xff]
            ^ table[1][word >> 48 & 0xff] ^ table[0][word >> 56];
    }
    for (; count > 0; count--, p++) {
        crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
    }
    return crc;
}

#if defined(__x86_64__)

// The length in bytes of each of three streams, and the factors that move the first stream ahead of the two others,
// and the second ahead of the third: x^(8 * bytes - 33) mod P, reflected. The joining itself multiplies by x^33.
struct stride {
    size_t length;
    uint32_t ahead_of_two, ahead_of_one;
};

// Joining costs about as much as 40 bytes of one stream. Long strides make this cost negligible; short strides speed
// up inputs of a few hundred bytes.
static const struct stride long_stride = {1024, 0xa51b6135, 0x170076fa};
static const struct stride short_stride = {256, 0xdd7e3b0c, 0xb9e02b86};

// A crc32 instruction can start in every cycle but takes three cycles, so a single stream would leave the unit idle
// two thirds of the time: "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction", Gopal et al., Intel,
// 2011.
__attribute__((target("sse4.2,pclmul")))
static inline uint64_t update_three_streams(uint64_t first, const uint8_t *p, const struct stride stride) {
    uint64_t second = 0, third = 0;
    for (const uint8_t *end = p + stride.length; p < end; p += 8) {
        first = _mm_crc32_u64(first, load_le64(p));
        second = _mm_crc32_u64(second, load_le64(p + stride.length));
        third = _mm_crc32_u64(third, load_le64(p + 2 * stride.length));
    }
    // Read as 64 reflected bits, the carry-less product of two reflected 32-bit values is their product times x; the
    // crc32 instruction then multiplies by x^32 and takes the remainder.
    __m128i joined = _mm_xor_si128(
        _mm_clmulepi64_si128(_mm_cvtsi64_si128(first), _mm_cvtsi64_si128(stride.ahead_of_two), 0),
        _mm_clmulepi64_si128(_mm_cvtsi64_si128(second), _mm_cvtsi64_si128(stride.ahead_of_one), 0));
    return _mm_crc32_u64(0, _mm_cvtsi128_si64(joined)) ^ third;
}

__attribute__((target("sse4.2,pclmul")))
static uint32_t update_sse42(uint32_t crc, const uint8_t *p, size_t count) {
    uint64_t wide = crc;
    for (size_t size = 3 * long_stride.length; count >= size; count -= size, p += size) {
        wide = update_three_streams(wide, p, long_stride);
    }
    for (size_t size = 3 * short_stride.length; count >= size; count -= size, p += size) {
        wide = update_three_streams(wide, p, short_stride);
    }
    for (; count >= 8; count -= 8, p += 8) {
        wide = _mm_crc32_u64(wide, load_le64(p));
    }
    crc = (uint32_t)wide;
    for (; count > 0; count--, p++) {
        crc = _mm_crc32_u8(crc, *p);
    }
    return crc;
}

// The factors that move 128 bits ahead: x^(8 * bytes + 31) mod P for their first half, x^(8 * bytes - 33) mod P for
// the second, reflected. Here the product of two reflected values is their product times x^33, as the 32 bits of the
// factor are held in 64.
static const uint64_t ahead_by_256[2] = {0xdcb17aa4, 0xb9e02b86};
static const uint64_t ahead_by_64[2] = {0x740eef02, 0x9e4addf8};
static const uint64_t ahead_by_16[2] = {0xf20c0dfe, 0x493c7d27};

__attribute__((target("avx512f,vpclmulqdq")))
static inline __m512i fold_512(__m512i ahead, const uint64_t factors[2], __m512i next) {
    __m512i pair = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)factors));
    __m512i first = _mm512_clmulepi64_epi128(ahead, pair, 0x00);
    __m512i second = _mm512_clmulepi64_epi128(ahead, pair, 0x11);
    return _mm512_ternarylogic_epi64(first, second, next, 0x96);
}

__attribute__((target("avx512f,vpclmulqdq,pclmul")))
static inline __m128i fold_128(__m128i ahead, __m128i next) {
    __m128i pair = _mm_loadu_si128((const __m128i *)ahead_by_16);
    __m128i first = _mm_clmulepi64_si128(ahead, pair, 0x00);
    __m128i second = _mm_clmulepi64_si128(ahead, pair, 0x11);
    return _mm_xor_si128(_mm_xor_si128(first, second), next);
}

// Sixteen streams of 128 bits, each folded into the data 256 bytes further on: "Fast CRC Computation for Generic
// Polynomials Using PCLMULQDQ Instruction", Gopal et al., Intel, 2009. About 60 GB/s from the second-level cache,
// compared with 24 for three streams of the crc32 instruction.
__attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))
static uint32_t update_avx512(uint32_t crc, const uint8_t *p, size_t count) {
    // For fewer bytes, joining at the end takes longer than folding saves.
    if (count < 1024) return update_sse42(crc, p, count);
    __m512i x0 = _mm512_loadu_si512(p), x1 = _mm512_loadu_si512(p + 64);
    __m512i x2 = _mm512_loadu_si512(p + 128), x3 = _mm512_loadu_si512(p + 192);
    x0 = _mm512_xor_si512(x0, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    for (p += 256, count -= 256; count >= 256; p += 256, count -= 256) {
        x0 = fold_512(x0, ahead_by_256, _mm512_loadu_si512(p));
        x1 = fold_512(x1, ahead_by_256, _mm512_loadu_si512(p + 64));
        x2 = fold_512(x2, ahead_by_256, _mm512_loadu_si512(p + 128));
        x3 = fold_512(x3, ahead_by_256, _mm512_loadu_si512(p + 192));
    }
    x3 = fold_512(fold_512(fold_512(x0, ahead_by_64, x1), ahead_by_64, x2), ahead_by_64, x3);
    __m128i joined = fold_128(_mm512_extracti32x4_epi32(x3, 0), _mm512_extracti32x4_epi32(x3, 1));
    joined = fold_128(joined, _mm512_extracti32x4_epi32(x3, 2));
    joined = fold_128(joined, _mm512_extracti32x4_epi32(x3, 3));
    uint64_t rest = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(joined));
    rest = _mm_crc32_u64(rest, (uint64_t)_mm_cvtsi128_si64(_mm_srli_si128(joined, 8)));
    return update_sse42((uint32_t)rest, p, count);
}

// Whether the processor has the instructions and the system saves their registers: bits 1, 2 and 5 to 7 of XCR0.
static bool has_avx512_folding(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 0xe6) != 0xe6) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX512F) && (c & bit_VPCLMULQDQ);
}

static update_function *best_function(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_2) || !(c & bit_PCLMUL)) {
        return update_portable;
    }
    return has_avx512_folding() ? update_avx512 : update_sse42;
}

#elif defined(__aarch64__) && defined(__linux__)

__attribute__((target("crc")))
static uint32_t update_armv8(uint32_t crc, const uint8_t *p, size_t count) {
    for (; count >= 8; count -= 8, p += 8) {
        crc = __crc32cd(crc, load_le64(p));
    }
    for (; count > 0; count--, p++) {
        crc = __crc32cb(crc, *p);
    }
    return crc;
}

static update_function *best_function(void) {
    return getauxval(AT_HWCAP) & HWCAP_CRC32 ? update_armv8 : update_portable;
}

#else

static update_function *best_function(void) {
    return update_portable;
}

#endif

// Determined once, because CPUID traps to the hypervisor in a virtual machine. Threads that race here store the same
// function pointer, so relaxed order is enough.
static update_function *automatic_function(void) {
    static _Atomic(update_function *) chosen;
    update_function *function = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (function == NULL) {
        function = best_function();
        atomic_store_explicit(&chosen, function, memory_order_relaxed);
    }
    return function;
}

uint32_t cplatform_crc32c_update(
    uint32_t crc, const void *bytes, size_t count, bool is_portable) {
    update_function *function =
        is_portable ? update_portable : automatic_function();
    return ~function(~crc, bytes, count);
}

bool cplatform_crc32c_is_accelerated(void) {
    return automatic_function() != update_portable;
}
