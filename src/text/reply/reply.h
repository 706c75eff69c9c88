/* SPDX-License-Identifier: Apache-2.0
 *
 * A reply being taken apart: the text so far, which field of the format is open in it, and the parts.
 */
#ifndef GUMBEL_TEXT_REPLY_REPLY_H
#define GUMBEL_TEXT_REPLY_REPLY_H

#include "text/reply/marked_text.h"
#include "text/reply/reply_parts.h"

enum { GB_MAX_REPLY_BYTES = 64 << 20, GB_DEFAULT_CALL_BYTES = 1 << 20, GB_NO_FIELD = -1 };

struct gumbel_reply {
    const gumbel_tokenizer *tokenizer;
    const gb_reply_format *format; /* NULL: all is content */
    gumbel_detokenizer *detokenizer;
    gb_pattern_matcher *matcher;
    json_t *tools; /* NULL: none */
    size_t max_call;
    uint64_t prompt_hash;
    gb_marked_text text; /* what the prompt has of the reply, then what was generated */
    size_t begin;        /* where that is */
    gb_reply_parts parts;
    uint32_t text_fields; /* fields whose marks are text, a bit for each */
    bool has_ended;
    /* Where the text is scanned. */
    size_t at;        /* bytes that were */
    size_t empty_at;  /* the last match without bytes; there is just one in a place */
    bool is_plain;    /* a delimiter took too long: what follows is text */
    int field;        /* the one that is open, or GB_NO_FIELD; what no field takes is in none */
    int outer;        /* the text in which a field opened that is not text */
    size_t opened;    /* that field's opening, */
    size_t body;      /* and its text, begin here */
    bool has_begun;   /* as the field's begin pattern has it */
    int text_mark;    /* the field whose opening was text, so that its closing is; or GB_NO_FIELD */
    json_t *captures; /* groups of its opening */
};

/* Scans what the text has got; is_whole: nothing follows. */
void gb_scan_reply(gumbel_reply *reply, bool is_whole);

/* Opens the field's text from byte `raw` on, or what no field takes. */
void gb_enter_text(gumbel_reply *reply, int field, size_t raw);

#endif
