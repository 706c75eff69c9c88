/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/programs/perplexity_text.h"

#include "base/status.h"
#include "cli/base/files.h"
#include "cli/base/report.h"
#include "cli/model/prompt.h"

#include <string.h>

/* ---- Reading ------------------------------------------------------------------------------------------- */

static const gumbel_encode_options encode_options = {.size = sizeof encode_options, .add_special = true};

/* Whether encoding puts bos before a text. */
static bool adds_bos(const cli_model *model) {
    int32_t ids[16];
    size_t count = 0;
    return gumbel_encode(model->tokenizer, "", 0, &encode_options, ids, 16, &count, NULL) == GUMBEL_OK &&
           count > 0 && ids[0] == model->info.bos_token;
}

/* Two vocabularies of one size may still be different ones; an other without a tokenizer is believed. */
static gumbel_status check_same_tokens(const cli_model *other, const cli_scored_source *source,
                                       const gb_byte_buffer *text, const cli_tokens *tokens,
                                       gumbel_error *error) {
    cli_tokens found = {0};
    if (!other->tokenizer)
        return GUMBEL_OK;
    gumbel_status status =
        cli_encode_text(other->tokenizer, text->text, text->size, &encode_options, &found, error);
    bool is_same = found.count == tokens->count &&
                   (found.count == 0 || memcmp(found.ids, tokens->ids, found.count * sizeof *found.ids) == 0);
    cli_tokens_free(&found);
    if (status != GUMBEL_OK || is_same)
        return status;
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                   "%s: its tokenizer gives other tokens for the text than that of %s", source->against,
                   source->program);
}

static gumbel_status read_tokens(const cli_model *model, const cli_model *other,
                                 const cli_scored_source *source, cli_tokens *tokens, gumbel_error *error) {
    gb_byte_buffer text = {0};
    gumbel_status status = GUMBEL_OK;
    if (source->text)
        cli_append(&text, source->text->text, source->text->size);
    else
        status = cli_read_file(source->file, &text, error);
    if (status == GUMBEL_OK && !model->tokenizer) {
        cli_refuse(error, "%s: the program has no tokenizer", source->program);
        status = GUMBEL_ERROR_ARGUMENT;
    }
    if (status == GUMBEL_OK)
        status = cli_encode_text(model->tokenizer, text.text, text.size, &encode_options, tokens, error);
    if (status == GUMBEL_OK)
        status = check_same_tokens(other, source, &text, tokens, error);
    gb_buffer_free(&text);
    if (status == GUMBEL_OK && source->count > 0 && tokens->count > source->count)
        tokens->count = source->count;
    return status;
}

static gumbel_status check_length(const cli_scored_source *source, const cli_scored_text *text,
                                  gumbel_error *error) {
    const size_t least = text->is_half ? text->window : 2;
    if (text->is_half && text->window < 4)
        cli_refuse(error, "--second-half: windows of %u tokens, expected 4 or more (-c)", text->window);
    else if (text->tokens.count < least)
        cli_refuse(error, "%s: %zu tokens, expected %zu or more in windows of %u", source->file,
                   text->tokens.count, least, text->window);
    else
        return GUMBEL_OK;
    return error->status = GUMBEL_ERROR_ARGUMENT;
}

gumbel_status cli_read_scored_text(const cli_model *model, const cli_model *other,
                                   const cli_scored_source *source, cli_scored_text *text,
                                   gumbel_error *error) {
    *text = (cli_scored_text){.is_half = source->second_half, .window = source->window};
    GB_TRY(read_tokens(model, other, source, &text->tokens, error));
    text->begins_with_bos = adds_bos(model);
    return check_length(source, text, error);
}

/* ---- Windows ------------------------------------------------------------------------------------------- */

size_t cli_count_runs(const cli_scored_text *text) {
    const size_t count = text->tokens.count;
    return text->is_half ? count / text->window * text->window : count - 1;
}

size_t cli_count_windows(const cli_scored_text *text) {
    const size_t count = cli_count_runs(text);
    return count / text->window + (count % text->window > 0);
}

int32_t cli_run_token(const cli_scored_text *text, size_t index, uint32_t position) {
    return text->tokens.ids[position == 0 && text->begins_with_bos ? 0 : index];
}

bool cli_is_scored(const cli_scored_text *text, uint32_t position) {
    return !text->is_half || (position >= text->window / 2 && position + 1 < text->window);
}
