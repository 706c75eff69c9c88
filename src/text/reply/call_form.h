/* SPDX-License-Identifier: Apache-2.0
 *
 * How a model writes a call of a tool: a reply format's "written", from which grammars are made. What its
 * other keys read must be able to read it.
 */
#ifndef GUMBEL_TEXT_REPLY_CALL_FORM_H
#define GUMBEL_TEXT_REPLY_CALL_FORM_H

#include "gumbel.h"

#include <jansson.h>

/* A part of a string of the format, without a zero byte behind it. */
typedef struct gb_form_text {
    const char *text;
    size_t length;
} gb_form_text;

/* Zeroed: the format does not say. Strings belong to the format. */
typedef struct gb_call_form {
    gb_form_text call[3];     /* before the name, between it and the arguments, behind these */
    gb_form_text again;       /* between call[0] and the name, which stands before it too; length 0: once */
    gb_form_text argument[3]; /* before an argument's name, between it and the value, behind this; length 0:
                                 arguments are no texts by themselves */
    const json_t *before;     /* texts of which one may stand before a call; NULL: nothing may */
    const json_t *reserved;   /* texts that no string may have in it; NULL: none */
    bool is_alone;            /* a call is the whole reply: nothing stands before or behind it */
} gb_call_form;

/* Reads "written", an object with "call": a text with {name}, once or twice, and {arguments}, "argument": one
 * with {name} and {value} where is_tagged, "before" and "reserved": lists of texts, "alone": whether it is.
 * where names the field in errors: FORMAT. */
gumbel_status gb_read_call_form(const json_t *written, bool is_tagged, const char *where, gb_call_form *form,
                                gumbel_error *error);

#endif
