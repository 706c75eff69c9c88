/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request asks for, whichever protocol it came by.
 */
#ifndef GUMBEL_SERVER_FIELDS_REQUEST_H
#define GUMBEL_SERVER_FIELDS_REQUEST_H

#include "server/base/json.h"
#include "server/models.h"

/* Routes that generate, as bits: a field says which of them take it. */
typedef enum server_route {
    SERVER_COMPLETIONS = 1,
    SERVER_CHAT = 2,
    SERVER_RESPONSES = 4,
    SERVER_MESSAGES = 8,
    SERVER_RENDER = 16 /* /apply-template and the like: messages that are not answered */
} server_route;

enum { SERVER_MOST_STOPS = 64, SERVER_MOST_ANSWERS = 128, SERVER_MOST_FIELDS = 96, SERVER_LEFT_OUT = 160 };

typedef struct server_request {
    const server_model *acquired; /* released by server_request_free; NULL: nothing to release */
    void (*release)(void *user, const server_model *model);
    void *release_user;
    server_route route;
    json_t *body;                          /* the object as it came, which owns all strings */
    const char *given[SERVER_MOST_FIELDS]; /* by number of the field: the name it came under, or NULL */

    /* the prompt */
    const char *model;
    json_t *prompt;                 /* completions: a string, tokens, or a list of these */
    json_t *messages;               /* as OpenAI's API has them; owned */
    json_t *tools;                  /* likewise; owned, NULL: none */
    char left_out[SERVER_LEFT_OUT]; /* types of tools that are not in the prompt, by blanks */
    bool leaves_tools_out;          /* all of them: the chat template has no place for them */
    const char *template_text;
    json_t *template_kwargs; /* owned; NULL: none */
    gumbel_thinking thinking;
    bool no_generation_prompt, continue_final_message, no_tools, no_special;
    gumbel_tool_choice tool_choice;
    const char *tool_name; /* NULL: any */
    bool single_call;
    bool has_reasoning_budget;
    uint32_t reasoning_budget;

    /* how it is answered */
    gumbel_sampling sampling;
    const char *origins[SERVER_MOST_SETTINGS];
    bool has_penalty_window; /* penalties are to count some of the tokens alone */
    gumbel_bias *bias;       /* owned, that of sampling */
    bool has_seed;
    uint64_t seed;
    uint32_t answers, max_new_tokens, min_new_tokens;
    bool wants_no_answer;       /* completions: the reply has the prompt alone */
    bool wants_prompt_logprobs; /* vLLM's, with so many likeliest tokens: */
    uint32_t prompt_top_logprobs;
    bool reasoning_is_text; /* thoughts stay in the content */
    bool stop_in_reasoning; /* stop strings end reasoning as well */
    bool ignore_stop, show_special, include_stop_string, no_prefix_cache, wants_logprobs;
    uint32_t top_logprobs;
    const char *stops[SERVER_MOST_STOPS];
    size_t stop_count;
    int32_t *stop_tokens; /* owned */
    size_t stop_token_count;
    int32_t priority;
    bool has_drafting;
    gumbel_drafting drafting;
    uint32_t max_draft; /* 0: the engine's */
    bool has_prediction;
    gb_byte_buffer predicted; /* text that the answer is likely to contain; owned */

    /* what the answer is held to */
    gumbel_grammar_options grammar; /* kind 0: nothing */
    char *grammar_text;             /* owned, that of grammar */
    const char *grammar_field;      /* where it came from */

    /* how the answer is sent */
    bool is_stream, wants_usage, wants_echo;
    bool wants_all_usage, wants_all_timings; /* in each chunk of a stream */
    /* responses */
    const char *previous_response, *instructions;
    bool is_stored;
} server_request;

/* Finds the model of that name (NULL: none was given), and says in request how it is released. */
typedef const server_model *(*server_find_model)(void *user, const char *name, server_request *request,
                                                 server_failure *failure);

/* Reads the fields of a body, a JSON object that is taken over, for a route. The defaults of the model hold
 * for what is not given. Free with server_request_free in any case. */
bool server_read_request(server_route route, json_t *body, server_find_model find_model, void *user,
                         server_request *request, const server_model **model, server_failure *failure);

void server_request_free(server_request *request);

/* The settings in use, each with its value and its origin: "request", "flag", "program", "default". */
json_t *server_settings_json(const server_request *request);

/* A body as JSON; NULL: it is none. */
json_t *server_parse_body(const gb_byte_buffer *body, server_failure *failure);

#endif
