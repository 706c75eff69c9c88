/* SPDX-License-Identifier: Apache-2.0 */
#include "server/fields/fields.h"

#include <stddef.h>

enum {
    TEXT = SERVER_COMPLETIONS,
    CHAT = SERVER_CHAT,
    RESPONSES = SERVER_RESPONSES,
    MESSAGES = SERVER_MESSAGES,
    RENDER = SERVER_RENDER,
    OPENAI = TEXT | CHAT,
    ANSWER = TEXT | CHAT | RESPONSES | MESSAGES,
    TALK = CHAT | RENDER
};

#define FLAG(field) .kind = SERVER_FLAG, .offset = offsetof(server_request, field)
#define NOT(field) .kind = SERVER_OPPOSITE, .offset = offsetof(server_request, field)
#define STRING(field) .kind = SERVER_STRING, .offset = offsetof(server_request, field)

const server_field server_fields[] = {
    {"model", ANSWER | RENDER, STRING(model)},

    /* the prompt */
    {"prompt", TEXT, .take = server_take_prompt},
    {"messages", TALK | MESSAGES, .take = server_take_messages},
    {"input", RESPONSES, .take = server_take_messages},
    {"system", MESSAGES, .take = server_take_instructions},
    {"instructions", RESPONSES, .take = server_take_instructions},
    {"previous_response_id", RESPONSES, STRING(previous_response)},
    {"tools", TALK | RESPONSES | MESSAGES, .take = server_take_tools},
    {"tool_choice", TALK | RESPONSES | MESSAGES, .take = server_take_tool_choice},
    {"parallel_tool_calls", OPENAI | RESPONSES, NOT(single_call)},
    {"chat_template", TALK, STRING(template_text)},
    {"chat_template_kwargs", TALK | RESPONSES | MESSAGES, .take = server_take_kwargs},
    {"reasoning_effort", TALK, .take = server_take_effort},
    {"reasoning", RESPONSES, .take = server_take_reasoning},
    {"thinking", MESSAGES, .take = server_take_thinking},
    {"reasoning_budget reasoning_budget_tokens thinking_token_budget", ANSWER,
     .take = server_take_reasoning_budget},
    {"output_config", MESSAGES, .take = server_take_output_config},
    {"add_generation_prompt", TALK, NOT(no_generation_prompt)},
    {"continue_final_message", TALK, FLAG(continue_final_message)},
    {"add_special_tokens", TEXT, NOT(no_special)},
    {"echo", TEXT, FLAG(wants_echo)},

    /* drawing tokens, beside the sampler's settings */
    {"seed sampling_seed", ANSWER, .take = server_take_seed},
    {"logit_bias", ANSWER, .take = server_take_bias},
    {"repeat_last_n penalty_last_n", ANSWER, .take = server_take_window},
    {"n n_cmpl", OPENAI, .take = server_take_answers},
    {"best_of", TEXT, .take = server_take_best_of},

    /* where an answer ends */
    {"max_tokens max_completion_tokens max_output_tokens max_new_tokens n_predict", ANSWER,
     .take = server_take_max_tokens},
    {"min_tokens", ANSWER, .take = server_take_min_tokens},
    {"ignore_eos", ANSWER, FLAG(ignore_stop)},
    {"stop stop_sequences", ANSWER, .take = server_take_stop},
    {"include_stop_str_in_output", ANSWER, FLAG(include_stop_string)},
    {"stop_in_reasoning", ANSWER, FLAG(stop_in_reasoning)},
    {"stop_token_ids", ANSWER, .take = server_take_stop_tokens},

    /* what it is held to, beside output_config */
    {"response_format", OPENAI, .take = server_take_format},
    {"text", RESPONSES, .take = server_take_text},
    {"structured_outputs", ANSWER, .take = server_take_structured},
    {"json_schema guided_json", ANSWER, .take = server_take_schema},
    {"grammar guided_grammar", ANSWER, .take = server_take_grammar},
    {"guided_regex", ANSWER, .take = server_take_regex},
    {"guided_choice", ANSWER, .take = server_take_choice},

    /* how it is sent */
    {"logprobs", OPENAI, .take = server_take_logprobs},
    {"top_logprobs", CHAT, .take = server_take_top_logprobs},
    {"prompt_logprobs", OPENAI, .take = server_take_prompt_logprobs},
    {"reasoning_format", CHAT, .take = server_take_reasoning_format},
    {"skip_special_tokens", TEXT, NOT(show_special)},
    {"stream", ANSWER, FLAG(is_stream)},
    {"stream_options", OPENAI | RESPONSES, .take = server_take_stream_options},
    {"timings_per_token", OPENAI, FLAG(wants_all_timings)},
    {"include", RESPONSES, .take = server_take_include},
    {"modalities", CHAT, .take = server_take_modalities},
    {"verbosity", CHAT, .take = server_take_verbosity},
    {"store", RESPONSES, FLAG(is_stored)},
    {"truncation", RESPONSES, .take = server_take_truncation},
    {"background", RESPONSES, .take = server_take_background},

    /* what saves time */
    {"draft", ANSWER, .take = server_take_drafting},
    {"draft_max speculative.n_max", ANSWER, .take = server_take_max_draft},
    {"prediction", CHAT, .take = server_take_prediction},

    /* when it is answered */
    {"cache_prompt", ANSWER, NOT(no_prefix_cache)},
    {"priority", ANSWER, .take = server_take_priority},

    /* what changes nothing here */
    {"user metadata service_tier safety_identifier prompt_cache_key prompt_cache_retention "
     "prompt_cache_options request_id keep_alive guided_decoding_backend",
     ANSWER, .take = server_take_any},
    {"cache_control user_profile_id workspace_id diagnostics thread inference_geo", MESSAGES,
     .take = server_take_any},
    {"context_management", RESPONSES | MESSAGES, .take = server_take_any},
    {"store", OPENAI, .take = server_take_any},
    {"max_tool_calls client_metadata", RESPONSES, .take = server_take_any},

    /* what counts with samplers that are not here, and what has a server work otherwise and answer the same
     */
    {"mirostat_tau mirostat_eta dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers "
     "xtc_threshold dynatemp_exponent adaptive_decay",
     ANSWER, .take = server_take_any},
    {"n_keep n_discard n_cache_reuse sse_ping_interval speculative.n_min "
     "speculative.p_min speculative.type",
     ANSWER, .take = server_take_any},
    {0},
};

bool server_take_any(const char *name, json_t *value, server_request *request, server_failure *failure) {
    (void)name, (void)value, (void)request, (void)failure;
    return true;
}

bool server_take_field(const server_field *field, const char *name, json_t *value, server_request *request,
                       server_failure *failure) {
    void *to = (char *)request + field->offset;
    bool flag = true;
    switch (field->kind) {
    case SERVER_FLAG:
        return server_read_bool(name, value, to, failure);
    case SERVER_OPPOSITE:
        if (!server_read_bool(name, value, &flag, failure))
            return false;
        *(bool *)to = !flag;
        return true;
    case SERVER_STRING:
        return server_read_string(name, value, to, failure);
    case SERVER_OTHER:
        break;
    }
    return field->take(name, value, request, failure);
}
