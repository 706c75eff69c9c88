/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalization form C (Unicode Standard Annex 15) with the results of the `tokenizers` package, which knows
 * the characters of Unicode 9.0: newer ones stay as they are.
 */
#ifndef GUMBEL_TEXT_TOKENIZER_NFC_H
#define GUMBEL_TEXT_TOKENIZER_NFC_H

#include "base/byte_buffer.h"

/* Appends the normalized form of length bytes of well-formed text, in O(n). Out of memory shows in
 * output->failed. */
void gb_append_nfc(const char *text, size_t length, gb_byte_buffer *output);

#endif
