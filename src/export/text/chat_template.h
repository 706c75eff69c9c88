/* SPDX-License-Identifier: Apache-2.0
 *
 * Which known chat format a checkpoint's template (a Jinja program) writes. The template is rendered for a
 * number of probe conversations; the format that renders all of them to the same text is the one.
 */
#ifndef GUMBEL_EXPORT_TEXT_CHAT_TEMPLATE_H
#define GUMBEL_EXPORT_TEXT_CHAT_TEMPLATE_H

#include "text/chat/chat_format.h"

#include <jansson.h>

/* What a checkpoint says about its template. */
typedef struct gb_chat_template {
    char *text; /* owned; NULL: the checkpoint has none */
    size_t length;
    const char *source;     /* "chat_template.jinja" or "tokenizer_config.json" */
    json_t *special_tokens; /* owned: "bos_token" and the like, with their spellings */
} gb_chat_template;

/* Reads directory/chat_template.jinja, or where there is none chat_template of
 * directory/tokenizer_config.json: a string, or a list of {"name", "template"} of which "default" is taken.
 * Errors: IO, FORMAT, MEMORY; a file that does not exist is none. Free with gb_chat_template_free, also after
 * an error. */
gumbel_status gb_read_chat_template(const char *directory, gb_chat_template *chat, gumbel_error *error);
void gb_chat_template_free(gb_chat_template *chat);

/* Finds the family and variant and appends its section to bytes. Errors: UNSUPPORTED when no known format
 * renders as the template does, or the template fails; MEMORY. */
gumbel_status gb_recognize_chat_template(const gb_chat_template *chat, gb_byte_buffer *bytes,
                                         gumbel_error *error);

#endif
