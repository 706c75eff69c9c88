/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/text_sections.h"

#include "base/memory.h"
#include "export/text/chat_template.h"
#include "export/text/reply_families.h"
#include "export/text/tokenizer_gguf.h"
#include "export/text/tokenizer_json.h"
#include "text/base/utf8.h"
#include "text/chat/chat_render.h"
#include "text/tokenizer/tokenizer.h"
#include "text/trie/tokenizer_trie.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PATH = 4096 };

static gumbel_status tokenizer_path(const char *directory, char path[MAX_PATH], gumbel_error *error) {
    int length = snprintf(path, MAX_PATH, "%s/tokenizer.json", directory);
    return length > 0 && length < MAX_PATH
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_IO, "%s: the path is too long", directory);
}

static gumbel_status make_tokenizer(const gb_text_sections *sections, gumbel_tokenizer **tokenizer,
                                    gumbel_error *error) {
    gb_blob section = {sections->tokenizer.data, sections->tokenizer.size};
    gb_blob chat = {sections->chat.size ? sections->chat.data : NULL, sections->chat.size};
    return gb_tokenizer_create(&section, &chat, tokenizer, error);
}

/* ---- The tokens around turns, as the checkpoint's own chat template writes them ------------------------ */

/* The special token that the text begins with, or -1; the longest of several. */
static int32_t special_at(const gumbel_tokenizer *tokenizer, const char *text, size_t length) {
    gb_literal_spans none = {0};
    const gb_added_tokens *const sets[] = {&tokenizer->raw_added, &tokenizer->normalized_added};
    for (size_t i = 0; i < 2; i++) {
        gb_added_cursor cursor = {0};
        gb_added_match match = gb_added_tokens_next(sets[i], text, length, &none, &cursor);
        if (match.id >= 0 && match.before.end == match.before.start)
            return match.id;
    }
    return -1;
}

/* Where the last part that comes from the messages ends: the answer. */
static size_t end_of_answer(const gb_jinja_output *output) {
    size_t end = output->taint ? output->length : 0;
    while (end > 0 && !output->taint[end - 1])
        end--;
    return end;
}

static void find_tokens(const gumbel_tokenizer *tokenizer, const gb_jinja_output *output, int32_t *first,
                        int32_t *stop) {
    const char *bos = json_string_value(json_object_get(tokenizer->chat.special_tokens, "bos_token"));
    size_t answer = end_of_answer(output), start = answer, end = output->length;
    if (bos && *bos && strncmp(output->text, bos, strlen(bos)) == 0)
        *first = gumbel_token_id(tokenizer, bos);
    gb_utf8_strip(output->text, &start, &end);
    if (answer > 0 && start < end)
        *stop = special_at(tokenizer, output->text + start, end - start);
}

/* Renders a question and its answer. *first is the special token that the conversation begins with where it
 * is the template's bos_token, *stop the special token right behind the answer; -1 where there is none, or
 * the template fails. Errors: MEMORY. */
static gumbel_status find_chat_tokens(const gumbel_tokenizer *tokenizer, int32_t *first, int32_t *stop,
                                      gumbel_error *error) {
    gumbel_message messages[] = {
        {.size = sizeof(gumbel_message), .role = "user", .content = "0"},
        {.size = sizeof(gumbel_message), .role = "assistant", .content = "0"},
    };
    gumbel_chat_options options = {.size = sizeof options, .no_generation_prompt = true};
    gb_jinja_output output = {0};
    *first = *stop = -1;
    gumbel_status status = gb_chat_render(&tokenizer->chat, messages, 2, &options, &output, error);
    if (status != GUMBEL_OK)
        return status == GUMBEL_ERROR_MEMORY ? status : GUMBEL_OK;
    find_tokens(tokenizer, &output, first, stop);
    gb_jinja_output_free(&output);
    return GUMBEL_OK;
}

static gumbel_status resolve_tokens(gb_text_sections *sections, gumbel_error *error) {
    gumbel_tokenizer *tokenizer;
    int32_t first = -1;
    GB_TRY(make_tokenizer(sections, &tokenizer, error));
    gumbel_status status = find_chat_tokens(tokenizer, &first, &sections->stop_token, error);
    sections->token_count = (int32_t)tokenizer->data.token_count;
    sections->bos_token = tokenizer->data.before_count > 0 ? tokenizer->data.before[0] : first;
    gumbel_tokenizer_destroy(tokenizer);
    return status;
}

/* Where nothing names the token that texts begin with, it is the one that the tokenizer puts there. */
static gumbel_status add_bos(const gb_text_sections *sections, gb_chat_section *chat, gumbel_error *error) {
    gb_tokenizer_data data;
    gb_blob section = {sections->tokenizer.data, sections->tokenizer.size};
    if (json_object_get(chat->special_tokens, "bos_token"))
        return GUMBEL_OK;
    GB_TRY(gb_tokenizer_parse(&section, &data, error));
    if (data.before_count != 1)
        return GUMBEL_OK;
    size_t length;
    const char *spelling = gb_token_text(&data, data.before[0], &length);
    return gb_chat_section_add_token(chat, "bos_token", spelling, length, error);
}

/* A template that is not known here is no error: the program does without. */
static gumbel_status write_chat(gb_chat_section *chat, gumbel_log_callback log, void *log_user,
                                gb_text_sections *sections, gumbel_error *error) {
    if (json_object_size(chat->templates) == 0)
        return GUMBEL_OK;
    GB_TRY(add_bos(sections, chat, error));
    gb_warn_of_chat_templates(chat, log, log_user);
    gb_chat_section_write(chat, &sections->chat);
    return sections->chat.failed ? gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for chat templates")
                                 : GUMBEL_OK;
}

/* After the tokenizer: templates were read with that status. */
static gumbel_status finish(gumbel_status status, gb_chat_section *chat, gumbel_log_callback log,
                            void *log_user, gb_text_sections *sections, gumbel_error *error) {
    if (status == GUMBEL_OK)
        status = write_chat(chat, log, log_user, sections, error);
    gb_chat_section_free(chat);
    return status == GUMBEL_OK ? resolve_tokens(sections, error) : status;
}

gumbel_status gb_read_text_sections(const char *directory, gumbel_log_callback log, void *log_user,
                                    gb_text_sections *sections, gumbel_error *error) {
    char path[MAX_PATH];
    *sections = (gb_text_sections){.bos_token = -1, .stop_token = -1};
    GB_TRY(tokenizer_path(directory, path, error));
    if (access(path, F_OK) != 0) {
        if (log)
            log(log_user, GUMBEL_LOG_WARNING,
                "no tokenizer.json: the program will read and write token ids only");
        return GUMBEL_OK;
    }
    GB_TRY(gb_read_tokenizer_json(path, &sections->tokenizer, error));
    gb_chat_section chat = {0};
    return finish(gb_read_chat_templates(directory, &chat, error), &chat, log, log_user, sections, error);
}

gumbel_status gb_read_gguf_text_sections(const gb_gguf *file, const char *path, gumbel_log_callback log,
                                         void *log_user, gb_text_sections *sections, gumbel_error *error) {
    *sections = (gb_text_sections){.bos_token = -1, .stop_token = -1};
    if (!gb_gguf_has_tokenizer(file)) {
        if (log)
            log(log_user, GUMBEL_LOG_WARNING,
                "the GGUF has no tokenizer: the program will read and write token ids only");
        return GUMBEL_OK;
    }
    GB_TRY(gb_read_gguf_tokenizer(file, path, &sections->tokenizer, error));
    gb_chat_section chat = {0};
    return finish(gb_read_gguf_chat_templates(file, path, &chat, error), &chat, log, log_user, sections,
                  error);
}

gumbel_status gb_write_trie_section(uint64_t vocab_size, gb_text_sections *sections, gumbel_error *error) {
    gumbel_tokenizer *tokenizer;
    if (sections->tokenizer.size == 0)
        return GUMBEL_OK;
    GB_TRY(make_tokenizer(sections, &tokenizer, error));
    gb_tokenizer_allow_ids(tokenizer, (uint32_t)vocab_size);
    const gumbel_status status = gb_write_tokenizer_trie(tokenizer, &sections->trie, error);
    gumbel_tokenizer_destroy(tokenizer);
    if (status != GUMBEL_ERROR_LIMIT)
        return status;
    gb_buffer_free(&sections->trie);
    return GUMBEL_OK;
}

void gb_text_sections_free(gb_text_sections *sections) {
    gb_buffer_free(&sections->trie);
    gb_buffer_free(&sections->tokenizer);
    gb_buffer_free(&sections->chat);
}

static gumbel_status create_owning(const char *checkpoint, gb_text_sections *sections,
                                   gumbel_tokenizer **tokenizer, gumbel_error *error) {
    const gb_blob templates = {sections->chat.data, sections->chat.size};
    GB_TRY(make_tokenizer(sections, tokenizer, error));
    gb_tokenizer_keep(*tokenizer, sections->tokenizer.data);
    sections->tokenizer = (gb_byte_buffer){0};
    return gb_give_reply_format(checkpoint, &templates, *tokenizer, error);
}

static gumbel_status read_gguf(const char *path, gb_text_sections *sections, gumbel_error *error) {
    gb_gguf file;
    GB_TRY(gb_gguf_open(path, &file, error));
    gumbel_status status = gb_gguf_has_tokenizer(&file)
                               ? gb_read_gguf_text_sections(&file, path, NULL, NULL, sections, error)
                               : gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: the file has no tokenizer", path);
    gb_gguf_close(&file);
    return status;
}

static gumbel_status read_directory(const char *directory, gb_text_sections *sections, gumbel_error *error) {
    char path[MAX_PATH];
    GB_TRY(tokenizer_path(directory, path, error));
    GB_TRY(gb_read_text_sections(directory, NULL, NULL, sections, error));
    return sections->tokenizer.size > 0 ? GUMBEL_OK
                                        : gb_fail(error, GUMBEL_ERROR_IO, "%s: there is no such file", path);
}

gumbel_status gumbel_export_tokenizer(const char *checkpoint, gumbel_tokenizer **tokenizer,
                                      gumbel_error *error) {
    gb_text_sections sections = {0};
    *tokenizer = NULL;
    gumbel_status status = gb_is_gguf(checkpoint) ? read_gguf(checkpoint, &sections, error)
                                                  : read_directory(checkpoint, &sections, error);
    if (status == GUMBEL_OK)
        status = create_owning(checkpoint, &sections, tokenizer, error);
    gb_text_sections_free(&sections);
    if (status != GUMBEL_OK) {
        gumbel_tokenizer_destroy(*tokenizer);
        *tokenizer = NULL;
    }
    return status;
}
