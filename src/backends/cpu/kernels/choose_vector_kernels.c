/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/vector_kernels.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

/* The build lists the sets that are compiled, from weak to strong. */
#define GB_SET(name) extern const gb_vector_kernels gb_vector_kernels_##name;
GB_INSTRUCTION_SETS
#undef GB_SET

static bool always(void) {
    return true;
}

#if defined(__x86_64__)
/* __builtin_cpu_supports also asks whether the system saves the registers. */
static bool has_avx2(void) {
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
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

/* Intel's instruction for bfloat16 takes longer than two fma. */
static bool has_avx512bf16(void) {
    return has_avx512vnni() && __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_is("intel");
}
#elif defined(__aarch64__)
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

static const struct machine_set {
    const char *name;
    bool (*is_available)(void);
} machine_sets[] = {
    {"portable", always},
#if defined(__x86_64__)
    {"avx2", has_avx2},
    {"avxvnni", has_avxvnni},
    {"avx512", has_avx512},
    {"avx512vnni", has_avx512vnni},
    {"avx512bf16", has_avx512bf16},
#elif defined(__aarch64__)
    {"neon", always},
    {"neondot", has_dot},
    {"neoni8mm", has_i8mm},
#endif
};

static bool machine_has(const char *name) {
    for (size_t i = 0; i < sizeof machine_sets / sizeof *machine_sets; i++)
        if (strcmp(machine_sets[i].name, name) == 0)
            return machine_sets[i].is_available();
    return false;
}

const gb_vector_kernels *gb_available_vector_kernels(size_t index) {
    static const gb_vector_kernels *const compiled[] = {
#define GB_SET(name) &gb_vector_kernels_##name,
        GB_INSTRUCTION_SETS
#undef GB_SET
    };
    for (size_t i = 0; i < sizeof compiled / sizeof *compiled; i++)
        if (machine_has(compiled[i]->name) && index-- == 0)
            return compiled[i];
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
