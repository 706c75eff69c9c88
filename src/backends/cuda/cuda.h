/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA backend: weights, states and the whole step, sampler included, on one GPU. Decode steps are
 * captured graphs. In a build without CUDA stub.c has the same functions, which say how to get it.
 */
#ifndef GUMBEL_BACKENDS_CUDA_CUDA_H
#define GUMBEL_BACKENDS_CUDA_CUDA_H

#include "backends/backend.h"
#include "backends/devices.h"
#include "base/text_sink.h"

/* Makes a backend on the first device, for a program that must outlive it and whose constants must have their
 * data; they are copied to the device, with notices by options->log. One thread may use it at a time. Errors:
 * BACKEND (no device, or what the driver says), MEMORY (the device's: how much was needed for what),
 * UNSUPPORTED (a step without a kernel), ARGUMENT (options that are the CPU's). */
gumbel_status gb_cuda_backend_create(const gb_program *program, const gb_backend_options *options,
                                     gb_backend **backend, gumbel_error *error);

/* Writes the launches of each class of batches: steps of their plan, and the kernels chosen on the first
 * device; where there is none, on a Hopper one. Errors: UNSUPPORTED, MEMORY, FORMAT. */
gumbel_status gb_cuda_describe_plan(const gb_program *program, const gb_backend_options *options,
                                    const gb_text_sink *sink, gumbel_error *error);

/* How many devices this machine has. Errors: BACKEND, where that is none. */
gumbel_status gb_cuda_count_devices(int *count, gumbel_error *error);

/* See gb_list_devices. Asking a device for its free memory makes a context on it, which is given back
 * where nothing in this process uses the device: no other thread may begin to before this returns. */
gumbel_status gb_cuda_list_devices(gb_device_info *devices, uint32_t capacity, uint32_t *count,
                                   gumbel_error *error);

/* Bytes that the constants of a program, or of a rank's, take on a device. Errors: MEMORY, FORMAT,
 * UNSUPPORTED (a rank whose heads are too few for the bits of one device). */
gumbel_status gb_cuda_measure_weights(const gb_program *program, uint64_t *bytes, gumbel_error *error);

/* Writes what this build and machine offer: device, numerics. No newline. Thread-safe. */
void gb_cuda_describe(gumbel_write_callback write, void *user);

#endif
