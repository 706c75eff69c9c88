/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/reply_families.h"

#include "base/memory.h"
#include "export/checkpoint/checkpoint.h"
#include "export/checkpoint/gguf.h"
#include "export/checkpoint/json.h"
#include "text/reply/reply_format.h"
#include "text/reply/use_format.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CONFIG_FILE = 64 << 20 };

/* Gemma 4: calls are call:NAME{key:<|"|>text<|"|>,other:1}. The model may begin one before its thought ends,
 * leave the end of one out, or give an end too many. */
static const char GEMMA4[] =
    "{\"start_anchor\": [\"<|turn>model\\n\", \"<tool_response|>\"],\n"
    " \"stray\": [\"<tool_call|>\", \"<channel|>\"],\n"
    " \"fields\": {\n"
    "  \"reasoning_content\": {\"open\": [\"<|channel>thought\\n\", \"<|channel>thought\"],\n"
    "   \"close\": [\"<channel|>\", \"<|tool_response>\", \"<turn|>\"]},\n"
    "  \"tool_calls\": {\"open_pattern\": \"\\\\s*<\\\\|tool_call>\",\n"
    "   \"close\": [\"<tool_call|>\", \"<|tool_response>\", \"<turn|>\"],\n"
    "   \"within\": [\"reasoning_content\"], \"ends\": [\"tool_calls\"],\n"
    "   \"body_pattern\": \"\\\\s*call:\\\\s*(?P<name>[^\\\\s{}]+)"
    "\\\\s*(?P<content>\\\\{.*\\\\})\\\\s*\\\\z\",\n"
    "   \"content\": \"json\",\n"
    "   \"content_args\": {\"unquoted_keys\": true, \"string_delims\": [[\"<|\\\"|>\", \"<|\\\"|>\"]]},\n"
    "   \"transform\": {\"name\": \"{name}\", \"arguments\": \"{content}\"},\n"
    "   \"written\": {\"call\": \"<|tool_call>call:{name}{arguments}<tool_call|>\",\n"
    "    \"reserved\": [\"<|\\\"|>\"]}},\n"
    "  \"content\": {\"close\": [\"<turn|>\", \"<|tool_response>\", \"<eos>\"]}}}\n";

/* Qwen3.5 and 3.6: calls are <function=NAME><parameter=KEY>\nVALUE\n</parameter></function> between
 * <tool_call> and </tool_call>. Any end may be missing where the next tag shows it, the last one where the
 * function has ended. */
static const char QWEN3_5[] =
    "{\"start_anchor\": \"<|im_start|>assistant\\n\",\n"
    " \"stray\": [\"</think>\", \"</tool_call>\"],\n"
    " \"fields\": {\n"
    "  \"reasoning_content\": {\"open\": \"<think>\", \"close\": [\"</think>\", \"<|im_end|>\"]},\n"
    "  \"tool_calls\": {\"open_pattern\": \"\\\\s*<tool_call>\",\n"
    "   \"close\": [\"</tool_call>\", \"<|im_end|>\"],\n"
    "   \"within\": [\"reasoning_content\"], \"ends\": [\"tool_calls\"],\n"
    "   \"body_pattern\": \"\\\\s*<function=(?P<name>[^>\\\\n]+)>(?P<content>.*?)"
    "(?:</function>\\\\s*(?=<function=|\\\\z)|\\\\z)\",\n"
    "   \"unclosed_pattern\": \"</function>\\\\s*\\\\z\",\n"
    "   \"content\": \"xml-inline\",\n"
    "   \"content_args\": {\"strict\": true,\n"
    "    \"tag_pattern\": \"<parameter=(?P<key>[^>\\\\n]+)>\\\\n?(?P<value>.*?)\\\\n?"
    "(?:</parameter>(?=\\\\s*(?:<parameter=|\\\\z))"
    "|(?=<parameter=[^>\\\\n]+>)|\\\\z)\"},\n"
    "   \"transform\": {\"name\": \"{name}\", \"arguments\": \"{content}\"},\n"
    "   \"written\": {\"before\": [\"\\n\", \"\\n\\n\"],\n"
    "    \"call\": \"<tool_call>\\n<function={name}>\\n{arguments}</function>\\n</tool_call>\",\n"
    "    \"argument\": \"<parameter={name}>\\n{value}\\n</parameter>\\n\",\n"
    "    \"reserved\": [\"<parameter=\", \"</parameter>\", \"<function=\", \"</function>\", "
    "\"<tool_call>\", \"</tool_call>\"]}},\n"
    "  \"content\": {\"close\": [\"<|im_end|>\", \"<|endoftext|>\"]}}}\n";

/* Qwen2 to Qwen3 and SmolLM3: calls are {"name": NAME, "arguments": {...}} between <tool_call> and
 * </tool_call>. */
static const char QWEN3[] =
    "{\"start_anchor\": \"<|im_start|>assistant\\n\",\n"
    " \"stray\": [\"</think>\", \"</tool_call>\"],\n"
    " \"fields\": {\n"
    "  \"reasoning_content\": {\"open\": \"<think>\", \"close\": [\"</think>\", \"<|im_end|>\"]},\n"
    "  \"tool_calls\": {\"open_pattern\": \"\\\\s*<tool_call>\",\n"
    "   \"close\": [\"</tool_call>\", \"<|im_end|>\"],\n"
    "   \"within\": [\"reasoning_content\"], \"ends\": [\"tool_calls\"],\n"
    "   \"content\": \"json\",\n"
    "   \"transform\": {\"name\": \"{content.name}\", \"arguments\": \"{content.arguments}\"},\n"
    "   \"written\": {\"before\": [\"\\n\"],\n"
    "    \"call\": \"<tool_call>\\n{\\\"name\\\": \\\"{name}\\\", \\\"arguments\\\": "
    "{arguments}}\\n</tool_call>\"}},\n"
    "  \"content\": {\"close\": [\"<|im_end|>\", \"<|endoftext|>\"]}}}\n";

/* Llama 3: a call is {"name": NAME, "parameters": {...}} to the end of the reply, maybe behind
 * <|python_tag|>. */
static const char LLAMA[] =
    "{\"start_anchor\": \"<|start_header_id|>assistant<|end_header_id|>\\n\\n\",\n"
    " \"fields\": {\n"
    "  \"tool_calls\": {\n"
    "   \"open_pattern\": \"\\\\s*(?:<\\\\|python_tag\\\\|>)?\\\\s*\\\\{\\\\s*\\\"name\\\"\\\\s*:\",\n"
    "   \"close\": [\"<|eot_id|>\", \"<|eom_id|>\"],\n"
    "   \"body_pattern\": \"\\\\s*\\\"(?P<name>[^\\\"]+)\\\"\\\\s*,\\\\s*\\\"parameters\\\"\\\\s*:\\\\s*"
    "(?P<content>\\\\{.*\\\\})\\\\s*\\\\}\\\\s*\\\\z\",\n"
    "   \"content\": \"json\",\n"
    "   \"transform\": {\"name\": \"{name}\", \"arguments\": \"{content}\"}},\n"
    "  \"content\": {\"close\": [\"<|eot_id|>\", \"<|eom_id|>\", \"<|end_of_text|>\"]}}}\n";

/* The marker is a token of the prompt that such replies follow: models of one architecture may be trained
 * with another format, and then lack it. */
static const struct known_format {
    const char *architecture, *json, *marker;
} KNOWN[] = {{"gemma4", GEMMA4, "<|turn>"},
             {"gemma4_text", GEMMA4, "<|turn>"},
             {"gemma4_unified", GEMMA4, "<|turn>"},
             {"gemma4_unified_text", GEMMA4, "<|turn>"},
             {"qwen3_5", QWEN3_5, "<|im_start|>"},
             {"qwen3_5_text", QWEN3_5, "<|im_start|>"},
             {"qwen3_5_moe", QWEN3_5, "<|im_start|>"},
             {"qwen3_5_moe_text", QWEN3_5, "<|im_start|>"},
             {"qwen35", QWEN3_5, "<|im_start|>"},
             {"qwen35moe", QWEN3_5, "<|im_start|>"},
             {"qwen3", QWEN3, "<|im_start|>"},
             {"qwen3_moe", QWEN3, "<|im_start|>"},
             {"qwen3moe", QWEN3, "<|im_start|>"},
             {"qwen2", QWEN3, "<|im_start|>"},
             {"smollm3", QWEN3, "<|im_start|>"},
             {"llama", LLAMA, "<|start_header_id|>"}};

static const struct known_format *find_known(const char *architecture) {
    for (size_t i = 0; architecture && i < sizeof KNOWN / sizeof KNOWN[0]; i++)
        if (strcmp(KNOWN[i].architecture, architecture) == 0)
            return &KNOWN[i];
    return NULL;
}

const char *gb_known_reply_format(const char *architecture) {
    const struct known_format *known = find_known(architecture);
    return known ? known->json : NULL;
}

static bool contains(const gb_blob *bytes, const char *text) {
    const size_t length = strlen(text);
    for (uint64_t at = 0; at + length <= bytes->size; at++)
        if (memcmp(bytes->data + at, text, length) == 0)
            return true;
    return false;
}

/* The architecture's format, unless the spellings of the vocabulary lack its marker. */
static const char *usable_format(const char *architecture, const gb_blob *vocabulary) {
    const struct known_format *known = find_known(architecture);
    return known && (!vocabulary || contains(vocabulary, known->marker)) ? known->json : NULL;
}

/* Whether the bytes are a usable format; a reason why not goes to log. */
static bool is_usable(const gb_byte_buffer *bytes, gumbel_log_callback log, void *log_user) {
    gumbel_error reason;
    gb_reply_format *format;
    if (gb_reply_format_create((const char *)bytes->data, bytes->size - 1,
                               "tokenizer_config.json: response_template", &format, &reason) != GUMBEL_OK) {
        if (log)
            log(log_user, GUMBEL_LOG_WARNING, reason.message);
        return false;
    }
    gb_reply_format_destroy(format);
    return true;
}

static json_t *calls_of(const json_t *format) {
    return json_object_get(json_object_get(format, "fields"), "tool_calls");
}

/* Hugging Face's formats do not say how calls are written: where they are read as the family's are, they are
 * written so. */
static void add_written(json_t *own, const char *known) {
    json_t *family = known ? json_loads(known, 0, NULL) : NULL;
    json_t *calls = calls_of(own), *written = json_object_get(calls_of(family), "written");
    const json_t *content = json_object_get(calls, "content");
    if (content && written && !json_object_get(calls, "written") &&
        json_equal(content, json_object_get(calls_of(family), "content")))
        json_object_set(calls, "written", written);
    json_decref(family);
}

static gumbel_status read_own(const char *path, const char *known, gumbel_log_callback log, void *log_user,
                              gb_byte_buffer *bytes, gumbel_error *error) {
    json_t *config;
    GB_TRY(gb_read_json(path, MAX_CONFIG_FILE, &config, error));
    json_t *template = json_object_get(config, "response_template");
    if (json_is_object(template)) {
        add_written(template, known);
        char *text = json_dumps(template, JSON_COMPACT);
        gb_buffer_append(bytes, text, text ? strlen(text) + 1 : 0);
        free(text);
        if (bytes->size > 0 && !is_usable(bytes, log, log_user))
            bytes->size = 0;
    }
    json_decref(config);
    return GUMBEL_OK;
}

gumbel_status gb_choose_reply_format(const char *directory, const char *architecture,
                                     const gb_blob *vocabulary, gumbel_log_callback log, void *log_user,
                                     gb_byte_buffer *bytes, gumbel_error *error) {
    gumbel_status status = GUMBEL_OK;
    const char *known = usable_format(architecture, vocabulary);
    char *path = directory ? gb_join_path(directory, "tokenizer_config.json") : NULL;
    if (path && access(path, F_OK) == 0)
        status = read_own(path, known, log, log_user, bytes, error);
    gb_free(path);
    GB_TRY(status);
    if (bytes->size == 0 && known)
        gb_buffer_append(bytes, known, strlen(known) + 1);
    return bytes->failed ? gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a reply format") : GUMBEL_OK;
}

/* ---- Of a tokenizer without a program ------------------------------------------------------------------ */

/* model_type as config.json has it; NULL: there is none. Free with gb_free. */
static char *directory_architecture(const char *directory) {
    char *path = gb_join_path(directory, "config.json");
    json_t *config = NULL;
    if (path && access(path, F_OK) == 0)
        gb_read_json(path, MAX_CONFIG_FILE, &config, NULL);
    const char *type = json_string_value(json_object_get(config, "model_type"));
    char *copy = type ? gb_copy_string(type, strlen(type)) : NULL;
    json_decref(config);
    gb_free(path);
    return copy;
}

static char *gguf_architecture(const char *path) {
    gb_gguf file;
    char *copy = NULL;
    if (gb_gguf_open(path, &file, NULL) != GUMBEL_OK)
        return NULL;
    const gb_gguf_value *value = gb_gguf_find(&file, "general.architecture");
    if (value && value->type == GB_GGUF_STRING)
        copy = gb_copy_string((const char *)value->data, (size_t)value->count);
    gb_gguf_close(&file);
    return copy;
}

gumbel_status gb_give_reply_format(const char *checkpoint, gumbel_tokenizer *tokenizer, gumbel_error *error) {
    const bool is_gguf = gb_is_gguf(checkpoint);
    char *architecture = is_gguf ? gguf_architecture(checkpoint) : directory_architecture(checkpoint);
    gb_byte_buffer json = {0};
    const gb_blob vocabulary = gb_token_spellings(&tokenizer->data);
    gumbel_status status = gb_choose_reply_format(is_gguf ? NULL : checkpoint, architecture, &vocabulary,
                                                  NULL, NULL, &json, error);
    if (status == GUMBEL_OK && json.size > 0)
        status = gb_tokenizer_use_reply_format(tokenizer, (const char *)json.data, json.size - 1,
                                               "the reply format", error);
    gb_buffer_free(&json);
    gb_free(architecture);
    return status;
}
