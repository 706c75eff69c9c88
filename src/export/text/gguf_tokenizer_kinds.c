/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/gguf_tokenizer_kinds.h"

#include <stdio.h>
#include <string.h>

static const char MODEL[] = "tokenizer.ggml.model", PRE[] = "tokenizer.ggml.pre";

/* llama.cpp makes some special tokens of Gemma 4 user-defined, so that they are shown; files from before it
 * added bos say false and are overruled. */
#define GEMMA4_JSON                                                                                          \
    "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"fuse_unk\":true},"                                \
    "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xE2\x96\x81\"},"     \
    "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},"                                  \
    "\"behavior\":\"MergedWithPrevious\",\"invert\":false},"                                                 \
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":["                                                      \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xE2\x96\x81\"},\"content\":\" \"},"                    \
    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]}}"

/* Merges over bytes, of a text that an expression has split; model is what the model's object has besides. */
#define BYTE_LEVEL_JSON(model, expression)                                                                   \
    "{\"model\":{\"type\":\"BPE\"" model "},"                                                                \
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["                                           \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" expression "\"},\"behavior\":\"Isolated\","              \
    "\"invert\":false},"                                                                                     \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,\"use_regex\":false}]},"      \
    "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,"                   \
    "\"use_regex\":true}}"

/* Qwen's expressions, in JSON. From 3.5 on marks belong to words. */
#define QWEN2_EXPRESSION                                                                                     \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}|"                         \
    " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define QWEN35_EXPRESSION                                                                                    \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{L}\\\\p{M}]+|\\\\p{N}|"               \
    " ?[^\\\\s\\\\p{L}\\\\p{M}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
/* Llama 3's: digits in threes. A text that is a token is that token, whatever the merges say. */
#define LLAMA3_EXPRESSION                                                                                    \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}|"                    \
    " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
/* Mistral's: case begins a word. */
#define TEKKEN_EXPRESSION                                                                                    \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*[\\\\p{Ll}\\\\p{Lm}\\\\p{" \
    "Lo}\\\\p{M}]+|"                                                                                         \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}\\\\p{Lm}\\\\p{" \
    "Lo}\\\\p{M}]*|"                                                                                         \
    "\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define WHOLE_TOKENS ",\"ignore_merges\":true"
#define QWEN_STOPS                                                                                           \
    { "<|im_end|>", "<|endoftext|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>" }

/* Qwen's own tokenizers make characters NFC first. The files do not say so, and llama.cpp does not do it. */
static const gb_tokenizer_kind KINDS[] = {
    {.model = "gemma4",
     .json = GEMMA4_JSON,
     .adds_bos = true,
     .specials = {"<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>",
                  "<tool_response|>", "<|\"|>"},
     .stops = {"<eos>", "<turn|>", "<|tool_response>"}},
    {.model = "gpt2",
     .pre = {"qwen35"},
     .json = BYTE_LEVEL_JSON("", QWEN35_EXPRESSION),
     .unused_are_padding = true,
     .stops = QWEN_STOPS},
    {.model = "gpt2",
     .pre = {"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2"},
     .json = BYTE_LEVEL_JSON("", QWEN2_EXPRESSION),
     .unused_are_padding = true,
     .stops = QWEN_STOPS},
    {.model = "gpt2",
     .pre = {"llama-bpe", "llama3", "llama-v3"},
     .json = BYTE_LEVEL_JSON(WHOLE_TOKENS, LLAMA3_EXPRESSION),
     .adds_bos = true,
     .unused_are_padding = true,
     .stops = {"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"}},
    {.model = "gpt2",
     .pre = {"tekken"},
     .json = BYTE_LEVEL_JSON(WHOLE_TOKENS, TEKKEN_EXPRESSION),
     .adds_bos = true,
     .unused_are_padding = true,
     .stops = {"</s>"}},
};
enum { KIND_COUNT = sizeof KINDS / sizeof KINDS[0] };

bool gb_gguf_is_text(const gb_gguf_value *value, const char *text) {
    return value && value->type == GB_GGUF_STRING && value->size == strlen(text) &&
           memcmp(value->data, text, (size_t)value->size) == 0;
}

const gb_tokenizer_kind *gb_tokenizer_kind_find(const gb_gguf *file) {
    const gb_gguf_value *model = gb_gguf_find(file, MODEL), *pre = gb_gguf_find(file, PRE);
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (!gb_gguf_is_text(model, KINDS[i].model))
            continue;
        if (!KINDS[i].pre[0])
            return &KINDS[i];
        for (size_t j = 0; j < GB_KIND_TEXTS && KINDS[i].pre[j]; j++)
            if (gb_gguf_is_text(pre, KINDS[i].pre[j]))
                return &KINDS[i];
    }
    return NULL;
}

static void list(char *known, size_t size, const char *text) {
    size_t used = strlen(known);
    snprintf(known + used, size - used, "%s%s", used ? ", " : "", text);
}

/* Says of a key's value that it is none of those known. */
static gumbel_status refuse(const gb_gguf_value *value, const char *key, const char *known,
                            gumbel_error *error) {
    if (!value || value->type != GB_GGUF_STRING)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: expected a string, found %s", key,
                       value ? gb_gguf_type_name(value->type) : "nothing");
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                   "%s: \"%.*s\" is not supported in this version; known are %s", key,
                   (int)(value->size < 60 ? value->size : 60), (const char *)value->data, known);
}

gumbel_status gb_tokenizer_kind_need(const gb_gguf *file, const gb_tokenizer_kind **kind,
                                     gumbel_error *error) {
    const gb_gguf_value *model = gb_gguf_find(file, MODEL);
    char models[128] = "", names[256] = "";
    bool is_known_model = false;
    *kind = gb_tokenizer_kind_find(file);
    if (*kind)
        return GUMBEL_OK;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (i == 0 || strcmp(KINDS[i].model, KINDS[i - 1].model) != 0)
            list(models, sizeof models, KINDS[i].model);
        if (!gb_gguf_is_text(model, KINDS[i].model))
            continue;
        is_known_model = true;
        for (size_t j = 0; j < GB_KIND_TEXTS && KINDS[i].pre[j]; j++)
            list(names, sizeof names, KINDS[i].pre[j]);
    }
    return is_known_model ? refuse(gb_gguf_find(file, PRE), PRE, names, error)
                          : refuse(model, MODEL, models, error);
}
