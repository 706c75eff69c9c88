/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of fields that requests may have. A field that is not in it, or not for the route, is refused by
 * its name; so is a value that this version cannot honour.
 */
#ifndef GUMBEL_SERVER_FIELDS_FIELDS_H
#define GUMBEL_SERVER_FIELDS_FIELDS_H

#include "server/fields/request.h"

/* Reads a value that is not null. name is the one that it came under. */
typedef bool server_take(const char *name, json_t *value, server_request *request, server_failure *failure);

typedef enum server_field_kind {
    SERVER_OTHER,    /* take reads it */
    SERVER_FLAG,     /* it goes to a bool of the request */
    SERVER_OPPOSITE, /* likewise, where it says what is not to be */
    SERVER_STRING    /* to a const char * */
} server_field_kind;

typedef struct server_field {
    const char *names; /* separated by blanks: OpenAI's or Anthropic's, and others' for the same */
    unsigned routes;   /* bits of server_route */
    server_take *take;
    server_field_kind kind;
    size_t offset; /* in server_request */
} server_field;

/* Ends in one without names. The sampler's settings are not in it: they are the library's list. */
extern const server_field server_fields[];

/* Reads a value that is not null as its field's kind says. */
bool server_take_field(const server_field *field, const char *name, json_t *value, server_request *request,
                       server_failure *failure);

/* Readers; server_take_any takes what changes nothing here. */
server_take server_take_prompt, server_take_messages, server_take_tools, server_take_tool_choice,
    server_take_kwargs, server_take_effort, server_take_seed, server_take_bias, server_take_answers,
    server_take_best_of, server_take_max_tokens, server_take_min_tokens, server_take_stop,
    server_take_stop_tokens, server_take_priority, server_take_logprobs, server_take_top_logprobs,
    server_take_stream_options, server_take_format, server_take_schema, server_take_grammar,
    server_take_regex, server_take_choice, server_take_structured, server_take_output_config,
    server_take_modalities, server_take_verbosity, server_take_instructions, server_take_reasoning,
    server_take_truncation, server_take_background, server_take_text, server_take_include,
    server_take_thinking, server_take_reasoning_budget, server_take_window, server_take_prompt_logprobs,
    server_take_reasoning_format, server_take_drafting, server_take_max_draft, server_take_prediction,
    server_take_any;

#endif
