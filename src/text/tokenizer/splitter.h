/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts a text into pieces by a regular expression: every match is a piece, and so is every stretch between
 * two matches ("isolated" in the `tokenizers` package). The expression comes from a program file, so
 * compiling and matching are bounded: whatever it says, cutting a text takes time linear in its length and
 * little memory, or ends in an error.
 */
#ifndef GUMBEL_TEXT_TOKENIZER_SPLITTER_H
#define GUMBEL_TEXT_TOKENIZER_SPLITTER_H

#include "base/byte_buffer.h"
#include "text/tokenizer/tokenizer_data.h"

/* A compiled expression. Immutable, may be shared by threads. */
typedef struct gb_splitter gb_splitter;

/* Compiles the pattern of a GB_SPLIT_EXPRESSION step. Errors: FORMAT, with the expression, where it does not
 * compile; MEMORY. Free with gb_splitter_free (NULL is allowed). */
gumbel_status gb_splitter_create(const gb_text_step *step, gb_splitter **splitter, gumbel_error *error);
void gb_splitter_free(gb_splitter *splitter);

/* The cutting of texts by one splitter, one after another, with its working memory. */
typedef struct gb_cutting gb_cutting;

/* Errors: MEMORY. Free with gb_cutting_free (NULL is allowed), before the splitter. */
gumbel_status gb_cutting_create(const gb_splitter *splitter, gb_cutting **cutting, gumbel_error *error);
void gb_cutting_free(gb_cutting *cutting);

/* Begins with length bytes of well-formed text, which must stay as they are until the last piece. Errors:
 * MEMORY. */
gumbel_status gb_cutting_begin(gb_cutting *cutting, const char *text, size_t length, gumbel_error *error);

/* The size in bytes of the next piece, which begins where the last one ended; 0 at the end of the text.
 * Errors: FORMAT when the expression takes more steps or memory than any sensible one would; MEMORY. */
gumbel_status gb_cutting_next(gb_cutting *cutting, size_t *size, gumbel_error *error);

#endif
