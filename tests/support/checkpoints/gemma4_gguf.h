/* SPDX-License-Identifier: Apache-2.0
 *
 * A small Gemma 4 with random weights, as a Hugging Face directory and as llama.cpp's converter writes it.
 * All paths are temporary ones; a failure ends the test.
 */
#ifndef GUMBEL_TESTS_GEMMA4_GGUF_H
#define GUMBEL_TESTS_GEMMA4_GGUF_H

#include "program/program.h"
#include "support/checkpoints/gguf_writer.h"

enum { GEMMA4_VOCABULARY = 40 };
#define GEMMA4_KV_HEADS "gemma4.attention.head_count_kv"

typedef struct gemma4_variant {
    const char *dtype; /* as config.json has it */
    bool keys_are_values, is_tied;
    const char *more; /* members of config.json besides; NULL: hidden_size_per_layer_input is 0 */
} gemma4_variant;

/* A program of a file that was exported. Destroy with gb_program_destroy. */
gb_program *read_exported(const char *path);

/* The program of random weights: a source of tensors of the right names and shapes. Writes
 * checkpoint/config.json. */
gb_program *random_gemma4(const gemma4_variant *variant);

/* checkpoint/model.safetensors with that program's weights. */
void write_gemma4_checkpoint(const gb_program *program);

/* The settings as the converter writes them. skipped has keys with spaces between that are left out, or is
 * NULL. */
void add_gemma4_settings(gguf_writer *writer, const char *skipped);
void add_gemma4_rope_freqs(gguf_writer *writer);

/* The program's weights under their names in GGUF, but for those listed up to a NULL. */
void add_gemma4_tensors(gguf_writer *writer, const gb_program *program, const char *const *skipped);

/* Writes a whole model to model.gguf: writer may have been given keys and tensors before. What is skipped may
 * be NULL. */
void finish_gemma4(gguf_writer *writer, const char *skipped_key, const char *skipped_tensor,
                   bool has_rope_freqs);

#endif
