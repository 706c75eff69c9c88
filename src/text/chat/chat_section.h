/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program says about conversations: the checkpoint's chat templates as they are, by name, and the
 * special tokens that templates use. A section of a program (docs/chat.md).
 */
#ifndef GUMBEL_TEXT_CHAT_CHAT_SECTION_H
#define GUMBEL_TEXT_CHAT_CHAT_SECTION_H

#include "base/byte_buffer.h"
#include "program/program.h"

#include <jansson.h>

enum { GB_CHAT_VERSION = 2 };
enum { GB_MAX_CHAT_TEMPLATES = 32, GB_MAX_CHAT_TOKENS = 256, GB_MAX_CHAT_NAME = 128 };

/* Starts zeroed. Texts have no zero bytes. */
typedef struct gb_chat_section {
    json_t *templates;      /* owned; an object of texts, in the section's order */
    json_t *special_tokens; /* owned; an object of spellings: "bos_token": "<s>" */
} gb_chat_section;

/* Reads a section's bytes. Templates are only parsed when they are rendered. Errors, which leave nothing to
 * free: FORMAT, UNSUPPORTED (a newer section), LIMIT, MEMORY. Thread-safe. */
gumbel_status gb_chat_section_parse(const gb_blob *blob, gb_chat_section *section, gumbel_error *error);

/* Makes an empty section, and adds to it; a name that is there already is refused. Errors: FORMAT, naming
 * what is wrong with the name or text, LIMIT, MEMORY. */
gumbel_status gb_chat_section_create(gb_chat_section *section, gumbel_error *error);
gumbel_status gb_chat_section_add_template(gb_chat_section *section, const char *name, const char *text,
                                           size_t length, gumbel_error *error);
gumbel_status gb_chat_section_add_token(gb_chat_section *section, const char *name, const char *spelling,
                                        size_t length, gumbel_error *error);

/* Appends the section's bytes. */
void gb_chat_section_write(const gb_chat_section *section, gb_byte_buffer *bytes);

/* Safe on a zeroed section. */
void gb_chat_section_free(gb_chat_section *section);

/* The template's text by its name. NULL: the one for a conversation with or without tools, as transformers
 * chooses: "tool_use" where there are tools and that template, then "default", then the only one. Errors:
 * UNSUPPORTED, telling which names there are. */
gumbel_status gb_chat_section_choose(const gb_chat_section *section, const char *name, bool has_tools,
                                     const char **text, gumbel_error *error);

#endif
