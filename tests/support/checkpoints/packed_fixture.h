/* SPDX-License-Identifier: Apache-2.0
 *
 * A checkpoint of one small file in memory with its configuration, for tests of packed matrices.
 */
#ifndef GUMBEL_TESTS_PACKED_FIXTURE_H
#define GUMBEL_TESTS_PACKED_FIXTURE_H

#include "export/packed/packed.h"

typedef struct packed_fixture {
    uint8_t *bytes;
    size_t size, data_begin;
    gb_checkpoint *checkpoint;
    gb_config_file *config;
    gb_quantization packing;
} packed_fixture;

/* header is the file's JSON, with ' for ", and data_size bytes of zeros follow. Ends the test on an error.
 * Close with close_packed_fixture. */
packed_fixture open_packed_fixture(const char *config, const char *header, size_t data_size);

void close_packed_fixture(packed_fixture *f);

#endif
