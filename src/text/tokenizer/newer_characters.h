/* SPDX-License-Identifier: Apache-2.0
 *
 * Characters that the libraries used here and those of the `tokenizers` package know different things about.
 * The package normalizes as Unicode 9.0 and splits by the classes of Unicode 16.0; utf8proc and pcre2 have
 * the version of the system, between the two or newer. A character of Unicode 9.0 is the same for all of
 * them. The newer ones that matter are listed in newer_characters.def; treating them as said here gives the
 * package's results with any library of Unicode 9.0 to 16.0. (Later ones give them too, but for characters
 * that the package does not know at all.)
 */
#ifndef GUMBEL_TEXT_TOKENIZER_NEWER_CHARACTERS_H
#define GUMBEL_TEXT_TOKENIZER_NEWER_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether normalizing leaves the character where it is, and nothing moves or is composed across it. */
bool gb_is_newer(uint32_t code_point);

/* For a newer character of size UTF-8 bytes, an older one of the same class and size; NULL for any other. */
const char *gb_representative(uint32_t code_point, size_t size);

#endif
