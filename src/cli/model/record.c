/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/record.h"

#include "cli/base/json.h"

static json_t *token_json(int32_t token, float logprob) {
    return json_pack("{s:i, s:o}", "token", (int)token, "logprob", cli_json_float(logprob));
}

void cli_record_logprobs(cli_record *record, const gumbel_generated *generated, const char *text,
                         size_t length) {
    json_t *entry = token_json(generated->token, generated->logprob), *top = json_array();
    json_object_set_new(entry, "text", cli_json_text(text, length));
    for (uint32_t i = 0; i < generated->top_logprobs; i++)
        json_array_append_new(top, token_json(generated->top_tokens[i], generated->top_token_logprob[i]));
    json_object_set_new(entry, "top_logprobs", top);
    if (!record->logprobs)
        record->logprobs = json_array();
    json_array_append_new(record->logprobs, entry);
}

void cli_record_free(cli_record *record) {
    gb_buffer_free(&record->text);
    json_decref(record->logprobs);
    *record = (cli_record){0};
}
