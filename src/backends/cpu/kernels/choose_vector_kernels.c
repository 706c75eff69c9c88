/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/vector_kernels.h"

#include <stdio.h>
#include <string.h>

#if defined(GB_PORTABLE_ONLY)
#elif defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

extern const gb_vector_kernels gb_vector_kernels_portable;

static bool always(void) {
    return true;
}

#if defined(GB_PORTABLE_ONLY)
#elif defined(__x86_64__)
extern const gb_vector_kernels gb_vector_kernels_avx2, gb_vector_kernels_avxvnni, gb_vector_kernels_avx512,
    gb_vector_kernels_avx512vnni;

/* __builtin_cpu_supports also asks whether the system saves the registers. */
static bool has_avx2(void) {
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool has_avxvnni(void) {
    const unsigned avxvnni = 1u << 4; /* of eax of leaf 7, part 1 */
    unsigned a, b, c, d;
    return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & avxvnni);
}

static bool has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

static bool has_avx512vnni(void) {
    return has_avx512() && __builtin_cpu_supports("avx512vnni");
}
#elif defined(__aarch64__)
extern const gb_vector_kernels gb_vector_kernels_neon, gb_vector_kernels_neondot, gb_vector_kernels_neoni8mm;

static bool has_dot(void) {
#if defined(__APPLE__)
    return true; /* every 64-bit Mac has it */
#else
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#endif
}

static bool has_i8mm(void) {
#if defined(__APPLE__)
    int has = 0;
    size_t size = sizeof has;
    return sysctlbyname("hw.optional.arm.FEAT_I8MM", &has, &size, NULL, 0) == 0 && has != 0;
#else
    return has_dot() && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
#endif
}
#endif

/* From weak to strong; each machine has a subset. */
static const struct variant {
    const gb_vector_kernels *kernels;
    bool (*is_available)(void);
} variants[] = {
    {&gb_vector_kernels_portable, always},
#if defined(GB_PORTABLE_ONLY)
#elif defined(__x86_64__)
    {&gb_vector_kernels_avx2, has_avx2},     {&gb_vector_kernels_avxvnni, has_avxvnni},
    {&gb_vector_kernels_avx512, has_avx512}, {&gb_vector_kernels_avx512vnni, has_avx512vnni},
#elif defined(__aarch64__)
    {&gb_vector_kernels_neon, always},
    {&gb_vector_kernels_neondot, has_dot},
    {&gb_vector_kernels_neoni8mm, has_i8mm},
#endif
};

const gb_vector_kernels *gb_available_vector_kernels(size_t index) {
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (variants[i].is_available() && index-- == 0)
            return variants[i].kernels;
    return NULL;
}

static gumbel_status unknown_set(const char *name, gumbel_error *error) {
    char names[128] = "";
    const gb_vector_kernels *kernels;
    for (size_t i = 0; (kernels = gb_available_vector_kernels(i)); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", kernels->name);
    }
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "instruction set \"%s\": this machine has %s", name, names);
}

gumbel_status gb_choose_vector_kernels(const char *name, const gb_vector_kernels **kernels,
                                       gumbel_error *error) {
    *kernels = NULL;
    const gb_vector_kernels *candidate;
    for (size_t i = 0; (candidate = gb_available_vector_kernels(i)); i++)
        if (!name || strcmp(name, candidate->name) == 0)
            *kernels = candidate;
    return *kernels ? GUMBEL_OK : unknown_set(name, error);
}
