/* SPDX-License-Identifier: Apache-2.0
 *
 * GGUF files by their names: models, the parts NAME-00001-of-00002.gguf of a split one, and the quantization
 * that a name tells. Nothing is opened and nothing allocated.
 */
#ifndef GUMBEL_HUB_GGUF_NAMES_H
#define GUMBEL_HUB_GGUF_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* The quantization that is taken where several are there and none is named. */
#define HUB_USUAL_QUANT "Q4_K_M"

/* Whether a file may be a model's: projectors of images and importance matrices have the same ending. */
bool hub_is_gguf_model(const char *name);

/* Where the five digits of a part's number stand in its name; NULL: it is no part. */
const char *hub_part_number(const char *name);

/* Whether name is a whole file, or the first part. */
bool hub_is_first_part(const char *name);

/* Whether both names are parts of one GGUF: they are equal but for the number of the part. */
bool hub_is_same_gguf(const char *a, const char *b);

/* Whether a file's name or folder has the quantization as a word, in small or capital letters. */
bool hub_has_quant(const char *name, const char *quant);

enum { HUB_NO_GGUF = -1, HUB_SEVERAL_GGUFS = -2 };

/* The index of the model among names, each a whole file or a first part: the one of the quantization, of
 * several the one of the shortest name. quant "": the only one, or that of HUB_USUAL_QUANT. HUB_NO_GGUF:
 * none fits; HUB_SEVERAL_GGUFS: it is not clear which. */
int hub_choose_gguf(const char *const *names, size_t count, const char *quant);

/* "a, b and 3 more": as many as fit into capacity bytes, at least one. */
void hub_describe_names(const char *const *names, size_t count, char *text, size_t capacity);

#endif
