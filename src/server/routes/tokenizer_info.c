/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /tokenizer_info, by the names that Hugging Face's tokenizer_config.json has.
 */
#include "server/generate/prompt.h"
#include "server/routes/routes.h"
#include "server/state.h"

#include <string.h>

/* The token's spelling; null where there is none. */
static json_t *spelling_of(const server_model *model, int32_t token) {
    gb_byte_buffer text = {0};
    server_failure failure;
    if (token < 0 || !server_decode_tokens(model, &token, 1, true, &text, &failure))
        return json_null();
    json_t *spelling = server_json_text(text.text, text.size);
    gb_buffer_free(&text);
    return spelling;
}

static json_t *info_json(const server_model *model) {
    const gumbel_program_info *info = &model->info;
    const char *chat = gumbel_chat_template(model->tokenizer, NULL);
    const int32_t end = info->stop_token_count > 0 ? info->stop_tokens[0] : -1;
    return json_pack("{s:s, s:o, s:o, s:o, s:I, s:I, s:o}", "tokenizer_class", "gumbel", "bos_token",
                     spelling_of(model, info->bos_token), "eos_token", spelling_of(model, end), "pad_token",
                     spelling_of(model, end), "model_max_length", (json_int_t)model->max_context,
                     "vocab_size", (json_int_t)info->vocab_size, "chat_template",
                     chat ? server_json_text(chat, strlen(chat)) : json_null());
}

void server_tokenizer_info_route(server *s, server_exchange *exchange, const char *rest) {
    (void)rest;
    server_failure failure;
    server_request request = {0};
    const server_model *model = server_find_model_of(s, NULL, &request, &failure);
    if (model)
        server_reply_json(exchange, 200, info_json(model));
    else
        server_reply_failure(exchange, &failure);
    server_request_free(&request);
}
