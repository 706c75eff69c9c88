/* SPDX-License-Identifier: Apache-2.0
 *
 * How a conversation becomes one text: the model's chat format as data, in a program's section or in a JSON
 * file (docs/chat-format.md), and rendering by it.
 */
#ifndef GUMBEL_TEXT_CHAT_CHAT_FORMAT_H
#define GUMBEL_TEXT_CHAT_CHAT_FORMAT_H

#include "program/program.h"
#include "text/base/byte_buffer.h"
#include "text/tokenizer/added_tokens.h"

/* The fields of chat_format.def. Texts end in a zero and are never NULL in a format that was read. */
typedef struct gb_chat_format {
#define GB_CHAT_C_TEXT const char *
#define GB_CHAT_C_FLAG bool
#define GB_CHAT_FIELD(number, type, name, what) GB_CHAT_C_##type name;
#include "text/chat/chat_format.def"
#undef GB_CHAT_FIELD
    char *storage; /* owned; NULL for a format made of literals */
} gb_chat_format;

/* Reads a program's section: a version, then for each field its number, and its text or flag. Errors: FORMAT;
 * UNSUPPORTED for a field of a newer version; MEMORY. Free with gb_chat_format_free; on an error nothing is
 * left to free. */
gumbel_status gb_chat_format_parse(const gb_blob *blob, gb_chat_format *format, gumbel_error *error);

/* Reads the JSON form: an object of the fields' names. name says where it is from in messages. Errors as
 * gb_chat_format_parse; an unknown key is FORMAT. */
gumbel_status gb_chat_format_parse_json(const char *text, size_t length, const char *name,
                                        gb_chat_format *format, gumbel_error *error);

/* Safe on a zeroed format. */
void gb_chat_format_free(gb_chat_format *format);

/* Appends the section's bytes. Texts may be NULL for "". */
void gb_chat_format_write(const gb_chat_format *format, gb_byte_buffer *bytes);

/* A rendered conversation: text, and which parts of it came from messages and are literal. */
typedef struct gb_chat_text {
    gb_byte_buffer text; /* well-formed UTF-8 */
    gb_span *literal;    /* owned, ascending */
    size_t literal_count, literal_capacity;
} gb_chat_text;

/* Renders messages into chat, which must be zeroed, and freed also after an error. Errors: ARGUMENT as
 * gumbel_chat_encode, MEMORY. */
gumbel_status gb_chat_render(const gb_chat_format *format, const gumbel_message *messages, size_t count,
                             const gumbel_chat_options *options, gb_chat_text *chat, gumbel_error *error);
void gb_chat_text_free(gb_chat_text *chat);

#endif
