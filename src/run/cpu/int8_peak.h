/* SPDX-License-Identifier: Apache-2.0
 *
 * How many 8-bit products a core can add up: loops of nothing else, on operands in registers or in the
 * nearest cache, one for each instruction that kernels use for it.
 */
#ifndef GUMBEL_RUN_CPU_INT8_PEAK_H
#define GUMBEL_RUN_CPU_INT8_PEAK_H

#include <stddef.h>
#include <stdint.h>

/* Multiplies 1 and 2 and adds up, `rounds` times what one round takes. Returns the sum, modulo 2^32;
 * *products is how many there were. */
typedef uint32_t (*gb_int8_loop)(size_t rounds, uint64_t *products);

/* The fastest loop of the machine within an instruction set, by the name that kernels have for it. An unknown
 * name: within all sets. Never NULL. Thread-safe. */
gb_int8_loop gb_int8_peak_loop(const char *instruction_set);

#endif
