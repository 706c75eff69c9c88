/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensor names of a GGUF file and those of the Hugging Face checkpoint that it was made from.
 */
#ifndef GUMBEL_EXPORT_GGUF_NAMES_H
#define GUMBEL_EXPORT_GGUF_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/* A pair of names for the same tensor; * is the number of a layer. */
typedef struct gb_gguf_name {
    const char *gguf;
    const char *checkpoint; /* "": no weight of the graph, the configuration has what it says */
    bool is_minus_exp;      /* a float32 x stands as -exp(x) in the GGUF */
    bool is_flat;           /* a vector stands as the rows of a matrix in the GGUF */
    bool has_row_pairs;     /* in each head's rows those that turn together stand side by side in the GGUF */
} gb_gguf_name;

enum { GB_GGUF_NAME = 300 };

/* Writes the other name of a tensor into other. Returns the first pair of the list, which ends in {0}, that
 * fits, or NULL. From a checkpoint's name without a layer there is none to a GGUF's with one. */
const gb_gguf_name *gb_gguf_to_checkpoint(const gb_gguf_name *names, const char *name,
                                          char other[GB_GGUF_NAME]);
const gb_gguf_name *gb_gguf_from_checkpoint(const gb_gguf_name *names, const char *name,
                                            char other[GB_GGUF_NAME]);

/* The number of the layer that a tensor of the file belongs to; -1: none, or one past 2^31. */
int64_t gb_gguf_layer_of(const char *name);

#endif
