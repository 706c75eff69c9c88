/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensor names of a GGUF file and those of the Hugging Face checkpoint that it was made from.
 */
#ifndef GUMBEL_EXPORT_GGUF_NAMES_H
#define GUMBEL_EXPORT_GGUF_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* A pair of names for the same tensor; * is the number of a layer. */
typedef struct gb_gguf_name {
    const char *gguf;
    const char *checkpoint; /* "": no weight of the graph, the configuration has what it says */
} gb_gguf_name;

enum { GB_GGUF_NAME = 300 };

/* Writes the other name of a tensor into other; false when no pair of the list, which ends in {0}, fits. */
bool gb_gguf_to_checkpoint(const gb_gguf_name *names, const char *name, char other[GB_GGUF_NAME]);
bool gb_gguf_from_checkpoint(const gb_gguf_name *names, const char *name, char other[GB_GGUF_NAME]);

#endif
