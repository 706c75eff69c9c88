/* SPDX-License-Identifier: Apache-2.0 */
#include "server/fields/fields.h"

#include <string.h>

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

const server_field server_fields[] = {
    {"model", ANSWER | RENDER, server_take_model},

    /* the prompt */
    {"prompt", TEXT, server_take_prompt},
    {"messages", TALK | MESSAGES, server_take_messages},
    {"input", RESPONSES, server_take_messages},
    {"system", MESSAGES, server_take_instructions},
    {"instructions", RESPONSES, server_take_instructions},
    {"previous_response_id", RESPONSES, server_take_previous},
    {"tools", TALK | RESPONSES | MESSAGES, server_take_tools},
    {"tool_choice", TALK | RESPONSES | MESSAGES, server_take_tool_choice},
    {"parallel_tool_calls", OPENAI | RESPONSES, server_take_parallel_calls},
    {"chat_template", TALK, server_take_template},
    {"chat_template_kwargs", TALK | RESPONSES | MESSAGES, server_take_kwargs},
    {"reasoning_effort", TALK, server_take_effort},
    {"reasoning", RESPONSES, server_take_reasoning},
    {"thinking", MESSAGES, server_take_thinking},
    {"reasoning_budget reasoning_budget_tokens thinking_token_budget", ANSWER, server_take_reasoning_budget},
    {"output_config", MESSAGES, server_take_output_config},
    {"add_generation_prompt", TALK, server_take_generation_prompt},
    {"continue_final_message", TALK, server_take_continue},
    {"add_special_tokens", TEXT, server_take_add_special},
    {"echo", TEXT, server_take_echo},

    /* drawing tokens, beside the sampler's settings */
    {"seed sampling_seed", ANSWER, server_take_seed},
    {"logit_bias", ANSWER, server_take_bias},
    {"repeat_last_n penalty_last_n", ANSWER, server_take_window},
    {"n n_cmpl", OPENAI, server_take_answers},
    {"best_of", TEXT, server_take_best_of},

    /* where an answer ends */
    {"max_tokens max_completion_tokens max_output_tokens max_new_tokens n_predict", ANSWER,
     server_take_max_tokens},
    {"min_tokens", ANSWER, server_take_min_tokens},
    {"ignore_eos", ANSWER, server_take_ignore_eos},
    {"stop stop_sequences", ANSWER, server_take_stop},
    {"include_stop_str_in_output", ANSWER, server_take_include_stop},
    {"stop_in_reasoning", ANSWER, server_take_stop_in_reasoning},
    {"stop_token_ids", ANSWER, server_take_stop_tokens},

    /* what it is held to, beside output_config */
    {"response_format", OPENAI, server_take_format},
    {"text", RESPONSES, server_take_text},
    {"structured_outputs", ANSWER, server_take_structured},
    {"json_schema guided_json", ANSWER, server_take_schema},
    {"grammar guided_grammar", ANSWER, server_take_grammar},
    {"guided_regex", ANSWER, server_take_regex},
    {"guided_choice", ANSWER, server_take_choice},

    /* how it is sent */
    {"logprobs", OPENAI, server_take_logprobs},
    {"top_logprobs", CHAT, server_take_top_logprobs},
    {"prompt_logprobs", OPENAI, server_take_prompt_logprobs},
    {"reasoning_format", CHAT, server_take_reasoning_format},
    {"skip_special_tokens", TEXT, server_take_skip_special},
    {"stream", ANSWER, server_take_stream},
    {"stream_options", OPENAI | RESPONSES, server_take_stream_options},
    {"timings_per_token", OPENAI, server_take_timings},
    {"include", RESPONSES, server_take_include},
    {"modalities", CHAT, server_take_modalities},
    {"verbosity", CHAT, server_take_verbosity},
    {"store", RESPONSES, server_take_store},
    {"truncation", RESPONSES, server_take_truncation},
    {"background", RESPONSES, server_take_background},

    /* when it is answered */
    {"cache_prompt", ANSWER, server_take_cache_prompt},
    {"priority", ANSWER, server_take_priority},

    /* what changes nothing here */
    {"user metadata service_tier safety_identifier prompt_cache_key prompt_cache_retention "
     "prompt_cache_options request_id keep_alive guided_decoding_backend",
     ANSWER, server_take_any},
    {"cache_control user_profile_id workspace_id diagnostics thread inference_geo", MESSAGES,
     server_take_any},
    {"context_management", RESPONSES | MESSAGES, server_take_any},
    {"store", OPENAI, server_take_any},
    {"max_tool_calls client_metadata", RESPONSES, server_take_any},

    /* what counts with samplers that are not here, and what has a server work otherwise and answer the same
     */
    {"mirostat_tau mirostat_eta dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers "
     "xtc_threshold dynatemp_exponent adaptive_decay",
     ANSWER, server_take_any},
    {"n_keep n_discard n_cache_reuse sse_ping_interval speculative.n_max speculative.n_min "
     "speculative.p_min speculative.type",
     ANSWER, server_take_any},
    {NULL, 0, NULL},
};

bool server_take_any(const char *name, json_t *value, server_request *request, server_failure *failure) {
    (void)name, (void)value, (void)request, (void)failure;
    return true;
}
