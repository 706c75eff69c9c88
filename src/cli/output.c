/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include "cli/report.h"

#include <inttypes.h>
#include <stdio.h>

gumbel_status cli_output_open(cli_output *output, const gumbel_tokenizer *tokenizer, gumbel_error *error) {
    *output = (cli_output){0};
    return tokenizer ? gumbel_detokenizer_create(tokenizer, false, &output->detokenizer, error) : GUMBEL_OK;
}

void cli_output_close(cli_output *output) {
    if (output->detokenizer)
        gumbel_detokenizer_destroy(output->detokenizer);
    output->detokenizer = NULL;
}

static void print_text(cli_output *output, const char *text, size_t length) {
    if (length == 0)
        return;
    if (output->record) {
        cli_text_add(&output->record->text, text, length);
        return;
    }
    fwrite(text, 1, length, stdout);
    fflush(stdout);
    output->began = true;
    output->line_ended = text[length - 1] == '\n';
}

/* Nobody reads what a full disk or a closed pipe takes: no need to generate it. */
static gumbel_status check_written(gumbel_error *error) {
    if (!ferror(stdout))
        return GUMBEL_OK;
    cli_refuse(error, "standard output cannot be written");
    return error->status = GUMBEL_ERROR_IO;
}

/* As a JSON string; other bytes than these stand for themselves in UTF-8. */
static void print_quoted(const char *text, size_t length) {
    putchar('"');
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte == '"' || byte == '\\')
            printf("\\%c", byte);
        else if (byte < 0x20)
            printf("\\u%04x", byte);
        else
            putchar(byte);
    }
    putchar('"');
}

static gumbel_status print_logprob_line(cli_output *output, const gumbel_generated *generated,
                                        gumbel_error *error) {
    const char *text = "";
    size_t length = 0;
    gumbel_status status = GUMBEL_OK;
    if (output->detokenizer)
        status = gumbel_detokenize(output->detokenizer, generated->token, &text, &length, error);
    if (status != GUMBEL_OK)
        return status;
    printf("%" PRId32 "\t%.6f", generated->token, (double)generated->logprob);
    if (output->detokenizer) {
        putchar('\t');
        print_quoted(text, length);
    }
    for (uint32_t i = 0; i < generated->top_logprobs; i++)
        printf("\t%" PRId32 ":%.6f", generated->top_tokens[i], (double)generated->top_token_logprob[i]);
    putchar('\n');
    fflush(stdout);
    return check_written(error);
}

/* Text goes to the record by print_text. */
static gumbel_status record_token(cli_output *output, const gumbel_generated *generated,
                                  gumbel_error *error) {
    const char *text = "";
    size_t length = 0;
    gumbel_status status = GUMBEL_OK;
    if (output->detokenizer)
        status = gumbel_detokenize(output->detokenizer, generated->token, &text, &length, error);
    if (status != GUMBEL_OK)
        return status;
    print_text(output, text, length);
    if (output->logprobs)
        cli_record_logprobs(output->record, generated, text, length);
    return GUMBEL_OK;
}

gumbel_status cli_output_token(cli_output *output, const gumbel_generated *generated, gumbel_error *error) {
    int32_t token = generated->token;
    if (output->record)
        return record_token(output, generated, error);
    if (output->logprobs)
        return print_logprob_line(output, generated, error);
    if (!output->detokenizer) {
        printf("%s%" PRId32, output->began ? "," : "", token);
        fflush(stdout);
        output->began = true;
        return check_written(error);
    }
    const char *text;
    size_t length;
    gumbel_status status = gumbel_detokenize(output->detokenizer, token, &text, &length, error);
    if (status == GUMBEL_OK)
        print_text(output, text, length);
    return status == GUMBEL_OK ? check_written(error) : status;
}

void cli_output_end(cli_output *output) {
    if (output->logprobs && !output->record)
        return;
    if (output->detokenizer) {
        const char *text;
        size_t length;
        gumbel_detokenize_end(output->detokenizer, &text, &length);
        print_text(output, text, length);
    }
    if (output->record)
        return;
    if (!output->line_ended && (output->began || !output->detokenizer))
        putchar('\n');
    fflush(stdout);
    output->began = output->line_ended = false;
}

void cli_print_ids(const int32_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++)
        printf("%s%" PRId32, i ? "," : "", ids[i]);
    putchar('\n');
}
