/* SPDX-License-Identifier: Apache-2.0
 *
 * What a checkpoint's program says, for tests that compare checkpoints. A failure ends the test.
 */
#ifndef GUMBEL_TESTS_MODEL_LOGITS_H
#define GUMBEL_TESTS_MODEL_LOGITS_H

#include "gumbel.h"

#include <stdint.h>

/* Exports the checkpoint, of so large a vocabulary, with its logits to the temporary file of that name, feeds
 * it a few tokens and copies the last one's logits. Then takes the likeliest token count times and writes
 * those to greedy, which may be NULL with a count of 0. options may be NULL. */
void exported_logits(const char *checkpoint, const char *output, const gumbel_export_options *options,
                     uint32_t vocabulary, float *logits, int32_t *greedy, size_t count);

#endif
