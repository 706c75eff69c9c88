/* SPDX-License-Identifier: Apache-2.0
 *
 * What the run half needs of the detokenizer besides gumbel.h.
 */
#ifndef GUMBEL_TEXT_DECODE_DETOKENIZER_H
#define GUMBEL_TEXT_DECODE_DETOKENIZER_H

#include "gumbel.h"

/* As gumbel_detokenize; with is_last the text is all that is left, as if gumbel_detokenize_end followed. */
gumbel_status gb_detokenize(gumbel_detokenizer *detokenizer, int32_t token, bool is_last, const char **text,
                            size_t *length, gumbel_error *error);

#endif
