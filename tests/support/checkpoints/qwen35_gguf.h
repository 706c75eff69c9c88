/* SPDX-License-Identifier: Apache-2.0
 *
 * A small Qwen3.5 with experts and random weights in GGUF: a delta net and a full layer, wide enough for
 * blocks of 256 that each hold columns of several value heads. A failure ends the test.
 */
#ifndef GUMBEL_TESTS_QWEN35_GGUF_H
#define GUMBEL_TESTS_QWEN35_GGUF_H

#include "program/program.h"
#include "support/checkpoints/gguf_blocks.h"

enum { QWEN35_VOCABULARY = 40 };

/* The program of random float32 weights: a source of tensors of the right names and shapes. Destroy with
 * gb_program_destroy. */
gb_program *random_qwen35(void);

/* The settings as llama.cpp's converter writes them. skipped, which may be NULL, is left out. */
void add_qwen35_settings(gguf_writer *writer, const char *skipped);

/* One of the program's weights, if it is a tensor of a file: under its name there, changed as the converter
 * does, but for the order of value heads. */
typedef struct qwen35_tensor {
    char name[128];
    int32_t rank;
    int64_t dims[GB_MAX_RANK];
    const void *data;
    uint64_t size;
    float rates[8]; /* data, where it had to be computed */
} qwen35_tensor;
bool get_qwen35_tensor(const gb_program *program, uint32_t constant, qwen35_tensor *tensor);

/* All of them as float32, but for the one skipped, which may be NULL. */
void add_qwen35_tensors(gguf_writer *writer, const gb_program *program, const char *skipped);

/* The file at path with every matrix in random blocks, or as the numbers that they stand for. Returns how
 * many those are. */
size_t write_qwen35_blocks(const gb_program *program, gb_block_type type, bool as_numbers, const char *path);

#endif
