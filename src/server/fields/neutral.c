/* SPDX-License-Identifier: Apache-2.0 */
#include "server/fields/neutral.h"

#include <stdio.h>
#include <string.h>

const server_neutral server_neutrals[] = {
    /* of other routes */
    {"n n_cmpl best_of", "1"},
    {"logprobs echo background", "false"},
    {"top_logprobs", "0"},
    {"tool_choice", "\"auto\" \"none\""},
    {"tools include stop stop_sequences", "[]"},
    {"parallel_tool_calls add_generation_prompt skip_special_tokens store", "true false"},
    {"continue_final_message add_special_tokens", "false"},
    {"response_format", "{\"type\":\"text\"}"},
    {"modalities", "[\"text\"]"},
    {"verbosity", "\"medium\""},
    {"truncation", "\"disabled\""},

    /* OpenAI's */
    {"prediction web_search_options audio moderation conversation", ""},
    {"functions", "[]"},
    {"function_call", "\"none\" \"auto\""},
    {"suffix", "\"\""},

    /* Anthropic's */
    {"container", ""},
    {"mcp_servers", "[]"},
    {"speed", "\"standard\""},

    /* vLLM's */
    {"use_beam_search return_tokens_as_token_ids return_token_ids guided_json_object "
     "enable_response_messages flat_logprobs",
     "false"},
    {"spaces_between_special_tokens include_reasoning detokenize", "true"},
    {"length_penalty", "1"},
    {"bad_words documents logits_processors", "[]"},
    {"mm_processor_kwargs media_io_kwargs kv_transfer_params vllm_xargs", "{}"},
    {"truncate_prompt_tokens truncation_side allowed_token_ids cache_salt prompt_embeds "
     "guided_whitespace_pattern structural_tag previous_input_messages repetition_detection "
     "logprob_token_ids data_parallel_rank",
     ""},

    /* llama.cpp's */
    {"mirostat dry_multiplier xtc_probability dynatemp_range n_probs min_keep n_indent", "0"},
    {"typical_p typ_p tfs_z", "1"},
    {"top_n_sigma adaptive_target", "-1 0"},
    {"id_slot", "-1"},
    {"t_max_predict_ms t_max_prompt_ms", "-1 0"},
    {"post_sampling_probs return_tokens return_progress verbose penalize_nl grammar_lazy backend_sampling "
     "thinking_forced_open reasoning_control",
     "false"},
    {"parse_tool_calls", "true"},
    {"lora response_fields image_data grammar_triggers preserved_tokens", "[]"},
    {"samplers reasoning_budget_message", ""},

    /* Ollama's */
    {"options", "{}"},
    {"format raw template images context", ""},
    {NULL, NULL},
};

const server_neutral *server_find_neutral(const char *name) {
    for (const server_neutral *neutral = server_neutrals; neutral->names; neutral++)
        if (server_has_word(neutral->names, name))
            return neutral;
    return NULL;
}

/* 1 and 1.0 are the same. */
static bool is_same(const json_t *value, const json_t *other) {
    if (json_is_number(value) && json_is_number(other))
        return json_number_value(value) == json_number_value(other);
    return json_equal(value, other) == 1;
}

/* The length of the next value. *values is moved to where it begins. */
static size_t next_value(const char **values) {
    *values += strspn(*values, " ");
    return strcspn(*values, " ");
}

static bool is_neutral(const server_neutral *neutral, const json_t *value) {
    bool is_found = json_is_null(value);
    size_t length;
    for (const char *at = neutral->values; !is_found && (length = next_value(&at)) > 0; at += length) {
        json_t *other = json_loadb(at, length, JSON_DECODE_ANY, NULL);
        is_found = is_same(value, other);
        json_decref(other);
    }
    return is_found;
}

/* The values as a list of words: "-1 or 0". */
static const char *list_values(const char *values, char *text, size_t capacity) {
    size_t length, used = 0;
    text[0] = '\0';
    for (const char *at = values; (length = next_value(&at)) > 0; at += length) {
        const int printed =
            snprintf(text + used, capacity - used, "%s%.*s", used > 0 ? " or " : "", (int)length, at);
        used += printed > 0 ? (size_t)printed : 0;
    }
    return values[0] ? text : "null";
}

bool server_take_neutral(const server_neutral *neutral, const char *name, const json_t *value,
                         server_failure *failure) {
    char list[96];
    return is_neutral(neutral, value) ||
           server_refuse(failure, name, "%s: only %s is taken: other values are beyond this version", name,
                         list_values(neutral->values, list, sizeof list));
}
