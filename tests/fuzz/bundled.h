/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs of the bundled models, exported in the ways that differ most: formats, packings, samplers.
 */
#ifndef GUMBEL_TESTS_BUNDLED_H
#define GUMBEL_TESTS_BUNDLED_H

#include "gumbel.h"

enum {
    BUNDLED_GEMMA,
    BUNDLED_QWEN,
    BUNDLED_GEMMA_INT4,
    BUNDLED_QWEN_INT4,
    BUNDLED_GEMMA_MINIMAL,
    BUNDLED_QWEN_SENSITIVE,
    BUNDLED_GEMMA_MLX,
    BUNDLED_QWEN_LOGITS,
    BUNDLED_PROGRAMS
};

/* Exports all of them into the temporary directory. Ends the process on an error. */
void export_bundled(void);

/* The path of one; valid until the process ends. */
const char *bundled_path(size_t i);

/* What it was made from, for messages. */
const char *bundled_name(size_t i);

#endif
