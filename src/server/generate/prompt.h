/* SPDX-License-Identifier: Apache-2.0
 *
 * From a request to the tokens that the model reads.
 */
#ifndef GUMBEL_SERVER_GENERATE_PROMPT_H
#define GUMBEL_SERVER_GENERATE_PROMPT_H

#include "server/fields/request.h"

typedef struct server_prompt {
    int32_t *tokens;
    size_t count;
    uint32_t branches[GUMBEL_CHAT_BRANCHES]; /* of messages; 0: none */
} server_prompt;

/* Starts zeroed. */
typedef struct server_prompts {
    server_prompt *list;
    size_t count;
} server_prompts;

enum { SERVER_MOST_PROMPTS = 64 };

/* The prompts of a request: of completions several, else one, rendered by the model's chat template.
 * max_tokens: tokens of one, at most; 0: those of a context. */
bool server_make_prompts(const server_request *request, const server_model *model, uint32_t max_tokens,
                         server_prompts *prompts, server_failure *failure);
void server_prompts_free(server_prompts *prompts);

/* The messages of a request, as tokens with their branches, or as text. */
bool server_encode_messages(const server_request *request, const server_model *model, server_prompt *prompt,
                            server_failure *failure);
bool server_render_messages(const server_request *request, const server_model *model, gb_byte_buffer *text,
                            server_failure *failure);

/* Whether answers think first: with thinking off the template writes something else. */
bool server_is_thinking(const server_request *request, const server_model *model, bool *is_thinking,
                        server_failure *failure);

/* Text as tokens. Free prompt->tokens. */
bool server_encode_text(const server_model *model, const char *text, size_t length, bool add_special,
                        bool parse_special, server_prompt *prompt, server_failure *failure);

/* Tokens as text, appended. */
bool server_decode_tokens(const server_model *model, const int32_t *tokens, size_t count, bool show_special,
                          gb_byte_buffer *text, server_failure *failure);

#endif
