/* SPDX-License-Identifier: Apache-2.0
 *
 * How a model's replies come apart, as data: Hugging Face's response_template (version 1) with some keys of
 * our own, see docs/chat.md. It comes from checkpoints, programs and files of the user, none of which
 * is trusted.
 */
#ifndef GUMBEL_TEXT_REPLY_REPLY_FORMAT_H
#define GUMBEL_TEXT_REPLY_REPLY_FORMAT_H

#include "text/reply/call_form.h"
#include "text/reply/lenient_json.h"
#include "text/reply/pattern.h"

enum {
    GB_MAX_REPLY_FORMAT = 1 << 16, /* bytes of JSON */
    GB_MAX_REPLY_FIELDS = 16,
    GB_MAX_VALUE_PARSERS = 4 /* one within another */
};

/* What the text of a field is. */
typedef enum gb_field_kind {
    GB_FIELD_TEXT,
    GB_FIELD_INTEGER,
    GB_FIELD_FLOAT,
    GB_FIELD_BOOLEAN,
    GB_FIELD_JSON,
    GB_FIELD_TAGS, /* xml-inline */
    GB_FIELD_LINES /* kv-lines */
} gb_field_kind;

typedef struct gb_value_parser {
    gb_field_kind kind;
    bool strips;                   /* white space around a text is left out */
    gb_json_dialect dialect;       /* JSON */
    bool allows_text;              /* JSON: what is no JSON is a text */
    gb_text_pattern *tag;          /* TAGS: owned; has the groups key and value */
    bool merges;                   /* TAGS: values of one key become a list */
    bool is_strict;                /* TAGS: nothing but white space stands between tags */
    const char *line_separator;    /* LINES */
    const char *key_separator;     /* LINES */
    struct gb_value_parser *inner; /* TAGS, LINES: of each value; owned; NULL: it is a text as it stands */
} gb_value_parser;

typedef struct gb_reply_field {
    const char *name;
    gumbel_part_type type;
    gb_text_pattern *open;     /* NULL: the field is what no other one takes */
    gb_text_pattern *close;    /* NULL: it goes on to the end */
    gb_text_pattern *begin;    /* NULL, or what its text begins with; otherwise its opening is text */
    gb_text_pattern *body;     /* NULL, or what its text is, once or several times */
    gb_text_pattern *unclosed; /* NULL, or what must be in its text where the closing is missing */
    gb_value_parser parser;
    gb_call_form written;    /* of a field of calls */
    const json_t *transform; /* NULL: the value stays as it is */
    bool transforms_each;
    const char *join; /* between the texts of several parts in the message */
    bool leads;       /* it opens only where no text stands before it */
    bool needs_tools; /* it opens only where the model was given tools, and calls one of them */
    bool is_streamed; /* its text is given out as it comes; otherwise when it is complete */
    uint32_t within;  /* fields in whose text it may open, a bit for each */
    uint32_t ends;    /* fields whose text its opening ends */
} gb_reply_field;

typedef struct gb_reply_format {
    json_t *source; /* owned; strings of the fields belong to it */
    gb_reply_field fields[GB_MAX_REPLY_FIELDS];
    int field_count;
    int rest;                /* the field without an opening, or -1 */
    gb_text_pattern *anchor; /* ends what comes before a reply in a prompt; NULL: the prompt's end does */
    gb_text_pattern *stray;  /* NULL, or what is left out where no field is open */
} gb_reply_format;

/* Reads the JSON form; name says where it is from in messages. Errors: FORMAT, naming field and key; MEMORY.
 * Destroy with gb_reply_format_destroy. */
gumbel_status gb_reply_format_create(const char *text, size_t length, const char *name,
                                     gb_reply_format **format, gumbel_error *error);

/* NULL is allowed. */
void gb_reply_format_destroy(gb_reply_format *format);

/* Whether a delimiter has the text in it. */
bool gb_reply_format_mentions(const gb_reply_format *format, const char *text, size_t length);

#endif
