/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes small safetensors files for tests.
 */
#ifndef GUMBEL_TESTS_SAFETENSORS_WRITER_H
#define GUMBEL_TESTS_SAFETENSORS_WRITER_H

#include <stddef.h>
#include <stdint.h>

/* One tensor of the file; dtype as the file spells it. */
typedef struct test_tensor {
    const char *name;
    const char *dtype;
    int32_t rank;
    int64_t dims[4];
    const void *data;
    size_t size; /* bytes */
} test_tensor;

/* Writes the tensors, in this order, to path. Ends the test on an error. */
void write_safetensors(const char *path, const test_tensor *tensors, size_t count);

/* A file's bytes with this header and data_size zero bytes of data; free() it. */
uint8_t *make_safetensors(const char *header, size_t data_size, size_t *size);

#endif
