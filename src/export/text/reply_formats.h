/* SPDX-License-Identifier: Apache-2.0
 *
 * The reply formats that gumbel knows, as data (text/reply/reply_format.h), and the marks by which a
 * checkpoint is seen to use one. Architectures say nothing about it: a fine-tune keeps its architecture and
 * takes another template.
 */
#ifndef GUMBEL_EXPORT_TEXT_REPLY_FORMATS_H
#define GUMBEL_EXPORT_TEXT_REPLY_FORMATS_H

#include "program/program.h"

enum { GB_FAMILY_MARKS = 4 };

typedef struct gb_reply_family {
    const char *name, *json;
    const char *token;                  /* in the vocabulary; NULL: no token is required */
    const char *marks[GB_FAMILY_MARKS]; /* all of them stand in the chat templates */
} gb_reply_family;

/* The JSON of that name: "gemma4", "qwen3_5", "qwen3", "harmony", "muse_glimmer", "llama3", "think", "plain";
 * NULL: there is none. */
const char *gb_known_reply_format(const char *name);

/* The JSON for a checkpoint with these chat templates and spellings of tokens, each somewhere in the bytes.
 * Where they have the marks of none it is "plain", in which a call is JSON that is the whole
 * reply. */
const char *gb_find_reply_format(const gb_blob *templates, const gb_blob *vocabulary);

#endif
