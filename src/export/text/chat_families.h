/* SPDX-License-Identifier: Apache-2.0
 *
 * The chat formats that the exporter knows. Releases of one family differ in small ways; a family's variants
 * are all their combinations.
 */
#ifndef GUMBEL_EXPORT_TEXT_CHAT_FAMILIES_H
#define GUMBEL_EXPORT_TEXT_CHAT_FAMILIES_H

#include "text/chat/chat_format.h"

typedef struct gb_chat_family {
    const char *name;
    unsigned variant_count;
    /* Variant 0 .. variant_count-1, made of literals. prefix is the family's usual first token, "" in one
     * whose conversations begin without. */
    gb_chat_format (*variant)(unsigned number);
} gb_chat_family;

extern const gb_chat_family gb_chat_families[];
extern const size_t gb_chat_family_count;

#endif
