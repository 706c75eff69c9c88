/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/gguf_tokenizer_kinds.h"

#include <stdio.h>
#include <string.h>

static const char MODEL[] = "tokenizer.ggml.model", PRE[] = "tokenizer.ggml.pre";

/* Qwen's own tokenizers make characters NFC first; the files do not say so, and llama.cpp does not do it. It
 * makes some special tokens of Gemma 4 user-defined, so that they are shown; files from before it added bos
 * say false and are overruled. */
static const gb_tokenizer_kind KINDS[] = {
    {.model = "gemma4",
     .alphabet = GB_ALPHABET_METASPACE,
     .always_adds_bos = true,
     .has_unknown = true,
     .bos = -1,
     .unknown = -1,
     .specials = {"<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>",
                  "<tool_response|>", "<|\"|>"}},
    {.model = "gpt2", .has_pre_tokenizer = true, .unused_are_padding = true, .bos = -1, .unknown = -1},
    {.model = "llama",
     .alphabet = GB_ALPHABET_METASPACE,
     .has_scores = true,
     .has_space_prefix = true,
     .adds_bos = true,
     .has_unknown = true,
     .unused_are_padding = true,
     .bos = 1,
     .unknown = 0},
    {.model = "whitespace", .has_pre_tokenizer = true, .unused_are_padding = true, .bos = -1, .unknown = -1},
};
enum { KIND_COUNT = sizeof KINDS / sizeof KINDS[0] };

bool gb_gguf_is_text(const gb_gguf_value *value, const char *text) {
    return value && value->type == GB_GGUF_STRING && value->size == strlen(text) &&
           memcmp(value->data, text, (size_t)value->size) == 0;
}

/* ---- Finding ------------------------------------------------------------------------------------------- */

static const gb_tokenizer_kind *find_kind(const gb_gguf *file) {
    const gb_gguf_value *model = gb_gguf_find(file, MODEL);
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (gb_gguf_is_text(model, KINDS[i].model))
            return &KINDS[i];
    return NULL;
}

bool gb_gguf_tokenizer_find(const gb_gguf *file, gb_gguf_tokenizer *tokenizer) {
    const gb_gguf_value *pre = gb_gguf_find(file, PRE);
    *tokenizer = (gb_gguf_tokenizer){.kind = find_kind(file)};
    if (!tokenizer->kind || !tokenizer->kind->has_pre_tokenizer)
        return tokenizer->kind != NULL;
    if (pre && pre->type == GB_GGUF_STRING)
        tokenizer->pre = gb_pre_tokenizer_find((const char *)pre->data, (size_t)pre->size);
    return tokenizer->pre != NULL;
}

/* Says of a key's value that it is none of those known, and what to do. */
static gumbel_status refuse(const gb_gguf_value *value, const char *key, const char *remedy,
                            const char *known, gumbel_error *error) {
    if (!value || value->type != GB_GGUF_STRING)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: expected a string, found %s%s", key,
                       value ? gb_gguf_type_name(value->type) : "nothing", remedy);
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                   "%s: \"%.*s\" is not supported in this version%s; known are %s", key,
                   (int)(value->size < 60 ? value->size : 60), (const char *)value->data, remedy, known);
}

static gumbel_status refuse_model(const gb_gguf *file, gumbel_error *error) {
    char known[64] = "";
    for (size_t i = 0, used = 0; i < KIND_COUNT; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", KINDS[i].model);
    return refuse(gb_gguf_find(file, MODEL), MODEL, "", known, error);
}

gumbel_status gb_gguf_tokenizer_need(const gb_gguf *file, gb_gguf_tokenizer *tokenizer, gumbel_error *error) {
    char known[1024] = "";
    if (gb_gguf_tokenizer_find(file, tokenizer))
        return GUMBEL_OK;
    if (!tokenizer->kind)
        return refuse_model(file, error);
    gb_pre_tokenizer_list(known, sizeof known);
    return refuse(gb_gguf_find(file, PRE), PRE,
                  "; export the model's own directory, whose tokenizer.json says how it splits texts, or set "
                  "the key to the name of a tokenizer that splits alike",
                  known, error);
}

/* ---- Single tokens ------------------------------------------------------------------------------------- */

static bool is_one_of(const gb_gguf_value *token, const char *const *texts, size_t count) {
    for (size_t i = 0; i < count && texts[i]; i++)
        if (gb_gguf_is_text(token, texts[i]))
            return true;
    return false;
}

/* What llama.cpp ends an answer with, whatever the file's type of the token; those in the second list only
 * where it is a control token, since models have them as marks of text. */
static const char *const STOPS[] = {"<|im_end|>",
                                    "<|endoftext|>",
                                    "<|end_of_text|>",
                                    "<|eot_id|>",
                                    "<|eom_id|>",
                                    "<|end|>",
                                    "<|return|>",
                                    "<|call|>",
                                    "<|flush|>",
                                    "<|calls|>",
                                    "<eos>",
                                    "<end_of_turn>",
                                    "<turn|>",
                                    "<|tool_response>",
                                    "<EOT>",
                                    "_<EOT>",
                                    "[EOT]",
                                    "[EOS]",
                                    "[e~[",
                                    "<end_of_utterance>",
                                    "<｜end▁of▁sentence｜>"};
static const char *const CONTROL_STOPS[] = {"</s>",         "<|fim_pad|>", "<fim_pad>",  "<fim-pad>",
                                            "<|fim_repo|>", "<fim-repo>",  "<reponame>", "<|repo_name|>",
                                            "<|file_sep|>", "<REPO>",      "<PAD>",      "[PAD]"};

/* A token that ends answers is special even where a converter took it for one that the user defined. */
static bool is_untyped_stop(int64_t type, const gb_gguf_value *token) {
    return type == GB_GGUF_TOKEN_USER_DEFINED && is_one_of(token, STOPS, sizeof STOPS / sizeof STOPS[0]);
}

bool gb_gguf_is_special(const gb_tokenizer_kind *kind, int64_t type, const gb_gguf_value *token) {
    return type == GB_GGUF_TOKEN_CONTROL || type == GB_GGUF_TOKEN_UNKNOWN ||
           is_one_of(token, kind->specials, GB_KIND_TEXTS) || is_untyped_stop(type, token);
}

bool gb_gguf_is_stop(const gb_tokenizer_kind *kind, int64_t type, const gb_gguf_value *token) {
    return gb_gguf_is_special(kind, type, token) &&
           (is_one_of(token, STOPS, sizeof STOPS / sizeof STOPS[0]) ||
            is_one_of(token, CONTROL_STOPS, sizeof CONTROL_STOPS / sizeof CONTROL_STOPS[0]));
}

/* ---- Rules --------------------------------------------------------------------------------------------- */

/* Appends a value, which is taken over; NULL, from memory that ran out, makes the list NULL. */
static json_t *with(json_t *list, json_t *value) {
    if (json_array_append_new(list, value) == 0)
        return list;
    json_decref(list);
    return NULL;
}

/* The expressions' steps, then last, which is taken over; JSON's null is none. */
static json_t *pre_tokenizer_steps(const gb_pre_tokenizer *pre, json_t *last) {
    json_t *steps = json_array();
    for (size_t i = 0; pre && i < GB_PRE_TOKENIZER_STEPS && pre->expressions[i]; i++)
        steps = with(steps, json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex",
                                      gb_split_expression_text(pre->expressions[i]), "behavior", "Isolated",
                                      "invert", false));
    steps = json_is_null(last) ? steps : with(steps, last);
    return json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", steps);
}

static json_t *byte_rules(const gb_pre_tokenizer *pre) {
    json_t *bytes =
        json_pack("{s:s, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", false, "use_regex", false);
    return json_pack("{s:{s:s, s:b}, s:o, s:{s:s}}", "model", "type", "BPE", "ignore_merges",
                     pre->takes_whole_tokens, "pre_tokenizer", pre_tokenizer_steps(pre, bytes), "decoder",
                     "type", "ByteLevel");
}

/* Spaces are U+2581 in the model. Gemma's own files split by spaces, of which then none are left. */
static json_t *metaspace_rules(const gb_pre_tokenizer *pre, bool has_space_prefix) {
    static const char METASPACE[] = "\xE2\x96\x81";
    json_t *normalizers = json_array();
    if (has_space_prefix)
        normalizers = with(normalizers, json_pack("{s:s, s:s}", "type", "Prepend", "prepend", METASPACE));
    normalizers = with(normalizers, json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", "String",
                                              " ", "content", METASPACE));
    json_t *split = json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "String", " ",
                              "behavior", "MergedWithPrevious", "invert", false);
    return json_pack("{s:{s:s, s:b, s:b}, s:{s:s, s:o}, s:o, s:{s:s, s:[{s:s, s:{s:s}, s:s}, {s:s}, {s:s}]}}",
                     "model", "type", "BPE", "byte_fallback", true, "fuse_unk", true, "normalizer", "type",
                     "Sequence", "normalizers", normalizers, "pre_tokenizer", pre_tokenizer_steps(pre, split),
                     "decoder", "type", "Sequence", "decoders", "type", "Replace", "pattern", "String",
                     METASPACE, "content", " ", "type", "ByteFallback", "type", "Fuse");
}

static json_t *character_rules(const gb_pre_tokenizer *pre) {
    return json_pack("{s:{s:s}, s:o, s:{s:s}}", "model", "type", "BPE", "pre_tokenizer",
                     pre_tokenizer_steps(pre, json_null()), "decoder", "type", "Fuse");
}

json_t *gb_gguf_tokenizer_rules(const gb_gguf_tokenizer *tokenizer, bool has_space_prefix) {
    switch (tokenizer->pre ? tokenizer->pre->alphabet : tokenizer->kind->alphabet) {
    case GB_ALPHABET_BYTES:
        return byte_rules(tokenizer->pre);
    case GB_ALPHABET_METASPACE:
        return metaspace_rules(tokenizer->pre, has_space_prefix);
    default:
        return character_rules(tokenizer->pre);
    }
}
