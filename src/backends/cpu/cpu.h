/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU backend: a fixed team of threads walks the plan together. What each op computes, to the bit, is
 * defined by its kernel here; see DESIGN's promise of same bits.
 */
#ifndef GUMBEL_BACKENDS_CPU_CPU_H
#define GUMBEL_BACKENDS_CPU_CPU_H

#include "backends/backend.h"
#include "base/text_sink.h"

/* Makes a backend for the program, which must outlive it and whose constants must have their data. The
 * calling thread is one of the team's; options->threads = 0 asks for one per physical core that the process
 * may use. A snapshot keeps what a truncation could not restore: rings and recurrent states whole, of full
 * caches nothing, since rows below the snapshot's position stay as they are until the slot goes back before
 * it. Errors: ARGUMENT (an instruction set that is unknown or that this machine lacks), UNSUPPORTED, MEMORY,
 * IO (lock refused). */
gumbel_status gb_cpu_backend_create(const gb_program *program, const gb_backend_options *options,
                                    gb_backend **backend, gumbel_error *error);

/* The same with the number of multiplications, about, from which on a step is shared by the threads: 0 shares
 * every step of every batch. Changes no bits; for tests. */
gumbel_status gb_cpu_backend_create_sharing(const gb_program *program, const gb_backend_options *options,
                                            uint64_t least_shared_work, gb_backend **backend,
                                            gumbel_error *error);

/* Writes the plan that all batches share. Errors: ARGUMENT (an instruction set), MEMORY, FORMAT. */
gumbel_status gb_cpu_describe_plan(const gb_program *program, const gb_backend_options *options,
                                   const gb_text_sink *sink, gumbel_error *error);

/* Writes what this machine offers: "instruction sets portable, avx2; 2 cores". No newline. Thread-safe. */
void gb_cpu_describe(gumbel_write_callback write, void *user);

#endif
