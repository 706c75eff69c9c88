/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/int8_peak.h"

#include <stdbool.h>
#include <string.h>

/* The compiler must take it that the value is another one in every round. */
#define CHANGE_VALUE(constraint, value) __asm__ volatile("" : "+" constraint(value))

enum { PORTABLE_LANES = 8, PORTABLE_CHAINS = 4 };

typedef int8_t bytes __attribute__((vector_size(PORTABLE_LANES)));
typedef int16_t shorts __attribute__((vector_size(2 * PORTABLE_LANES)));
typedef int32_t words __attribute__((vector_size(4 * PORTABLE_LANES)));

/* What the compiler makes of plain C: a product of two bytes fits 16 bits. */
static uint32_t multiply_portable(size_t rounds, uint64_t *products) {
    bytes a[PORTABLE_CHAINS], b[PORTABLE_CHAINS];
    memset(a, 1, sizeof a);
    memset(b, 2, sizeof b);
    words sums[PORTABLE_CHAINS] = {0};
    for (size_t r = 0; r < rounds; r++) {
        __asm__ volatile("" : : "r"(a), "r"(b) : "memory");
        for (size_t i = 0; i < PORTABLE_CHAINS; i++) {
            shorts product = __builtin_convertvector(a[i], shorts) * __builtin_convertvector(b[i], shorts);
            sums[i] += __builtin_convertvector(product, words);
        }
    }
    uint32_t sum = 0;
    for (size_t i = 0; i < PORTABLE_CHAINS; i++)
        for (size_t lane = 0; lane < PORTABLE_LANES; lane++)
            sum += (uint32_t)sums[i][lane];
    *products = (uint64_t)rounds * PORTABLE_CHAINS * PORTABLE_LANES;
    return sum;
}

static bool always(void) {
    return true;
}

#if defined(__x86_64__)
#include <immintrin.h>

/* Chains of additions that are enough to hide their latency, and the vectors they multiply with. */
enum { WIDE_CHAINS = 16, NARROW_CHAINS = 6 };

static uint32_t add_lanes(const uint32_t *lanes, size_t count) {
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += lanes[i];
    return sum;
}

static bool has_vnni(void) {
    return __builtin_cpu_supports("avx512vnni");
}

__attribute__((target("avx512f,avx512vnni"))) static uint32_t multiply_vnni(size_t rounds,
                                                                            uint64_t *products) {
    __m512i sums[WIDE_CHAINS], a = _mm512_set1_epi8(1), b = _mm512_set1_epi8(2);
    for (size_t i = 0; i < WIDE_CHAINS; i++)
        sums[i] = _mm512_setzero_si512();
    for (size_t r = 0; r < rounds; r++) {
        CHANGE_VALUE("v", a);
        for (size_t i = 0; i < WIDE_CHAINS; i++)
            sums[i] = _mm512_dpbusd_epi32(sums[i], a, b);
    }
    for (size_t i = 1; i < WIDE_CHAINS; i++)
        sums[0] = _mm512_add_epi32(sums[0], sums[i]);
    *products = (uint64_t)rounds * WIDE_CHAINS * sizeof a;
    uint32_t lanes[sizeof a / sizeof(uint32_t)];
    _mm512_storeu_si512(lanes, sums[0]);
    return add_lanes(lanes, sizeof lanes / sizeof *lanes);
}

static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512bw");
}

__attribute__((target("avx512f,avx512bw"))) static uint32_t multiply_avx512(size_t rounds,
                                                                            uint64_t *products) {
    __m512i sums[NARROW_CHAINS], b[NARROW_CHAINS], a = _mm512_set1_epi8(1), one = _mm512_set1_epi16(1);
    for (size_t i = 0; i < NARROW_CHAINS; i++) {
        sums[i] = _mm512_setzero_si512();
        b[i] = _mm512_set1_epi8(2);
        CHANGE_VALUE("v", b[i]); /* not one and the same product for all chains */
    }
    for (size_t r = 0; r < rounds; r++) {
        CHANGE_VALUE("v", a);
        for (size_t i = 0; i < NARROW_CHAINS; i++)
            sums[i] = _mm512_add_epi32(sums[i], _mm512_madd_epi16(_mm512_maddubs_epi16(a, b[i]), one));
    }
    for (size_t i = 1; i < NARROW_CHAINS; i++)
        sums[0] = _mm512_add_epi32(sums[0], sums[i]);
    *products = (uint64_t)rounds * NARROW_CHAINS * sizeof a;
    uint32_t lanes[sizeof a / sizeof(uint32_t)];
    _mm512_storeu_si512(lanes, sums[0]);
    return add_lanes(lanes, sizeof lanes / sizeof *lanes);
}

static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2");
}

__attribute__((target("avx2"))) static uint32_t multiply_avx2(size_t rounds, uint64_t *products) {
    __m256i sums[NARROW_CHAINS], b[NARROW_CHAINS], a = _mm256_set1_epi8(1), one = _mm256_set1_epi16(1);
    for (size_t i = 0; i < NARROW_CHAINS; i++) {
        sums[i] = _mm256_setzero_si256();
        b[i] = _mm256_set1_epi8(2);
        CHANGE_VALUE("x", b[i]); /* not one and the same product for all chains */
    }
    for (size_t r = 0; r < rounds; r++) {
        CHANGE_VALUE("x", a);
        for (size_t i = 0; i < NARROW_CHAINS; i++)
            sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(_mm256_maddubs_epi16(a, b[i]), one));
    }
    for (size_t i = 1; i < NARROW_CHAINS; i++)
        sums[0] = _mm256_add_epi32(sums[0], sums[i]);
    *products = (uint64_t)rounds * NARROW_CHAINS * sizeof a;
    uint32_t lanes[sizeof a / sizeof(uint32_t)];
    _mm256_storeu_si256((__m256i *)(void *)lanes, sums[0]);
    return add_lanes(lanes, sizeof lanes / sizeof *lanes);
}
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_neon.h>
#include <sys/auxv.h>

enum { CHAINS = 16, ASIMD_DOT_PRODUCT = 1 << 20 /* HWCAP_ASIMDDP */ };

static bool has_dot_product(void) {
    return (getauxval(AT_HWCAP) & ASIMD_DOT_PRODUCT) != 0;
}

__attribute__((target("arch=armv8.2-a+dotprod"))) static uint32_t multiply_dot(size_t rounds,
                                                                               uint64_t *products) {
    int32x4_t sums[CHAINS];
    int8x16_t a = vdupq_n_s8(1), b = vdupq_n_s8(2);
    for (size_t i = 0; i < CHAINS; i++)
        sums[i] = vdupq_n_s32(0);
    for (size_t r = 0; r < rounds; r++) {
        CHANGE_VALUE("w", a);
        for (size_t i = 0; i < CHAINS; i++)
            sums[i] = vdotq_s32(sums[i], a, b);
    }
    for (size_t i = 1; i < CHAINS; i++)
        sums[0] = vaddq_s32(sums[0], sums[i]);
    *products = (uint64_t)rounds * CHAINS * sizeof a;
    return (uint32_t)vaddvq_s32(sums[0]);
}
#endif

/* From fast to slow; a set's kernels use what stands at its name or below. */
static const struct loop {
    const char *instruction_set;
    bool (*is_available)(void);
    gb_int8_loop multiply;
} loops[] = {
#if defined(__x86_64__)
    {"avx512", has_vnni, multiply_vnni},
    {"avx512", has_avx512, multiply_avx512},
    {"avx2", has_avx2, multiply_avx2},
#elif defined(__aarch64__) && defined(__linux__)
    {"neon", has_dot_product, multiply_dot},
#endif
    {"portable", always, multiply_portable},
};

gb_int8_loop gb_int8_peak_loop(const char *instruction_set) {
    const size_t count = sizeof loops / sizeof *loops;
    size_t first = 0;
    while (first < count && strcmp(loops[first].instruction_set, instruction_set) != 0)
        first++;
    for (size_t i = first < count ? first : 0;; i++)
        if (loops[i].is_available())
            return loops[i].multiply;
}
