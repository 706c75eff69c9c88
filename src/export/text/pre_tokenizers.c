/* SPDX-License-Identifier: Apache-2.0
 *
 * The names are those of llama.cpp's converter; the expressions those of the models' own tokenizer.json.
 */
#include "export/text/pre_tokenizers.h"

#include <stdio.h>
#include <string.h>

#define CUT_BY(...) .expressions = {__VA_ARGS__}
#define X(name) GB_EXPRESSION_##name

static const gb_pre_tokenizer PRE_TOKENIZERS[] = {
    {.names =
         "gpt-2 phi-2 mpt olmo jais trillion granite-docling exaone4 gigachat a.x-4.0 mellum modern-bert "
         "jina-es jina-de jina-v1-en jina-v2-es jina-v2-de jina-v2-code roberta-bpe",
     CUT_BY(X(GPT2))},
    {.names = "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2",
     CUT_BY(X(DIGIT), X(GPT2))},
    {.names = "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez hunyuan solar-open stablelm2 grok-2",
     CUT_BY(X(QWEN2))},
    {.names = "qwen35", CUT_BY(X(QWEN35))},
    {.names = "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
     CUT_BY(X(LLAMA3)),
     .takes_whole_tokens = true,
     .adds_bos = true},
    {.names = "dbrx smaug-bpe chatglm-bpe", CUT_BY(X(LLAMA3))},
    {.names = "glm4 glm5", CUT_BY(X(LLAMA3)), .takes_whole_tokens = true},
    {.names = "tekken", CUT_BY(X(TEKKEN)), .takes_whole_tokens = true, .adds_bos = true},
    {.names = "gpt-4o llama4 kanana2 talkie minimax-m2", CUT_BY(X(GPT4O))},
    {.names = "granite-embed-multi-97m", CUT_BY(X(GPT4O)), .takes_whole_tokens = true},
    {.names = "deepseek-v3 hunyuan-dense joyai-llm hy_v4",
     CUT_BY(X(THREE_DIGITS), X(HAN_AND_KANA), X(DEEPSEEK3))},
    {.names = "deepseek-llm",
     CUT_BY(X(DEEPSEEK_LINE), X(DEEPSEEK_LETTERS), X(DEEPSEEK_PUNCTUATION), X(DEEPSEEK_LAST_SPACE),
            X(DEEPSEEK_HAN), X(DIGITS))},
    {.names = "deepseek-coder",
     CUT_BY(X(DEEPSEEK_LINE), X(DEEPSEEK_CODER_LETTERS), X(DEEPSEEK_CODER_PUNCTUATION), X(DEEPSEEK_HAN),
            X(DIGIT))},
    {.names = "falcon", CUT_BY(X(PUNCTUATIONS), X(GPT2), X(THREE_ASCII_DIGITS))},
    {.names = "default", CUT_BY(X(DEFAULT_PUNCTUATIONS), X(GPT2), X(DIGITS), X(THREE_ASCII_DIGITS))},
    {.names = "jais-2", CUT_BY(X(JAIS2))},
    {.names = "minicpm5", CUT_BY(X(THREE_DIGITS), X(MINICPM5)), .takes_whole_tokens = true},
    {.names = "poro-chat bloom gpt3-finnish", CUT_BY(X(BLOOM))},
    {.names = "viking", CUT_BY(X(BLOOM), X(DIGIT))},
    {.names = "chameleon",
     CUT_BY(X(CHAMELEON_SENTINEL), X(CHAMELEON_IMAGE), X(CHAMELEON_SPACE), X(DIGIT), X(PUNCTUATION), X(GPT2)),
     .adds_bos = true},
    {.names = "tiny_aya cohere2moe", CUT_BY(X(AYA_DIGITS), X(GPT4O))},
    {.names = "kimi-k2", CUT_BY(X(KIMI))},
    {.names = "superbpe", CUT_BY(X(DIGITS), X(SUPERBPE_THREES))},
    {.names = "bailingmoe bailingmoe2 llada-moe", CUT_BY(X(BAILING))},
    {.names = "seed-coder", CUT_BY(X(SEED_CODER))},
    {.names = "ufakzeka", CUT_BY(X(UFAKZEKA))},
    {.names = "afmoe", CUT_BY(X(AFMOE_DIGITS), X(AFMOE_ASIAN), X(DEEPSEEK3))},
    {.names = "laguna", CUT_BY(X(LINES), X(QWEN2))},
    {.names = "exaone-moe", CUT_BY(X(EXAONE_MOE))},
    {.names = "spark2_5", CUT_BY(X(THREE_DIGITS), X(HAN_AND_KANA), X(SPARK), X(DIGIT))},
    {.names = "youtu", CUT_BY(X(YOUTU_ASIAN), X(YOUTU)), .takes_whole_tokens = true},
    {.names = "gemma4 granite-embed-multi-311m sarvam-moe",
     CUT_BY(X(LINES)),
     .alphabet = GB_ALPHABET_METASPACE},
    {.names = "whitespace", CUT_BY(X(WORDS)), .alphabet = GB_ALPHABET_CHARACTERS},
};
enum { COUNT = sizeof PRE_TOKENIZERS / sizeof PRE_TOKENIZERS[0] };

/* Whether the name is one of those in the list. */
static bool has_name(const char *list, const char *name, size_t length) {
    for (size_t size; *list; list += size + (list[size] == ' ')) {
        size = strcspn(list, " ");
        if (size == length && memcmp(list, name, length) == 0)
            return true;
    }
    return false;
}

const gb_pre_tokenizer *gb_pre_tokenizer_find(const char *name, size_t length) {
    for (size_t i = 0; i < COUNT; i++)
        if (has_name(PRE_TOKENIZERS[i].names, name, length))
            return &PRE_TOKENIZERS[i];
    return NULL;
}

void gb_pre_tokenizer_list(char *text, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < COUNT; i++)
        for (const char *at = PRE_TOKENIZERS[i].names; *at; at += strspn(at, " ")) {
            const size_t length = strcspn(at, " ");
            if (used < size)
                used +=
                    (size_t)snprintf(text + used, size - used, "%s%.*s", used ? ", " : "", (int)length, at);
            at += length;
        }
}
