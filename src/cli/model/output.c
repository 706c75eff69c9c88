/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/output.h"

#include "base/status.h"
#include "cli/base/json.h"
#include "cli/base/report.h"
#include "cli/terminal/terminal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

gumbel_status cli_output_open(cli_output *output, const gumbel_tokenizer *tokenizer, gumbel_error *error) {
    *output = (cli_output){
        .is_terminal = isatty(STDOUT_FILENO),
        .text = {.wrap = {.write = cli_write, .user = stdout}},
    };
    return tokenizer ? gumbel_detokenizer_create(tokenizer, false, &output->detokenizer, error) : GUMBEL_OK;
}

void cli_output_close(cli_output *output) {
    if (output->detokenizer)
        gumbel_detokenizer_destroy(output->detokenizer);
    output->detokenizer = NULL;
    cli_terminal_text_free(&output->text);
}

void cli_output_text(cli_output *output, const char *text, size_t length) {
    if (length == 0)
        return;
    if (output->record) {
        cli_append(&output->record->text, text, length);
        return;
    }
    output->text.wrap.columns = output->is_terminal && output->wraps ? cli_terminal_columns() : 0;
    if (output->is_terminal)
        cli_terminal_text_put(&output->text, text, length);
    else
        fwrite(text, 1, length, stdout);
    fflush(stdout);
    output->began = true;
    output->line_ended = text[length - 1] == '\n';
}

/* ---- The parts of a reply ------------------------------------------------------------------------------ */

static const char dim[] = "\033[2m", plain[] = "\033[0m";

static bool has_styles(const cli_output *output) {
    const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return output->is_terminal && !output->record && !(no_color && no_color[0]) && terminal &&
           strcmp(terminal, "dumb") != 0;
}

static bool is_shown(const cli_output *output, gumbel_part_type type) {
    const char *what = output->reasoning;
    if (!what)
        what = output->is_terminal && !output->record ? "show" : "hide";
    return strcmp(what, type == GUMBEL_PART_REASONING ? "hide" : "only") != 0;
}

static void end_style(cli_output *output) {
    if (!output->is_styled)
        return;
    cli_terminal_text_end(&output->text);
    fputs(plain, stdout);
    output->is_styled = false;
}

static void begin_part(cli_output *output, gumbel_part_type type) {
    const bool follows = output->has_part;
    if (follows && !output->line_ended)
        cli_output_text(output, "\n", 1);
    end_style(output);
    if (follows && output->part != type)
        cli_output_text(output, "\n", 1);
    if (type == GUMBEL_PART_REASONING && has_styles(output)) {
        fputs(dim, stdout);
        output->is_styled = true;
    }
    output->has_part = true;
    output->part = type;
}

static int add(const char *bytes, size_t length, void *text) {
    cli_append(text, bytes, length);
    return 0;
}

/* Prints a call as NAME(KEY: VALUE, ...), its arguments being the JSON object of so many bytes. */
static void write_call(const char *name, const char *arguments, size_t length, gb_byte_buffer *text) {
    json_t *object = json_loadb(arguments, length, JSON_ALLOW_NUL, NULL), *value;
    const char *key, *separator = "(";
    cli_append_string(text, name);
    json_object_foreach(object, key, value) {
        cli_append_string(text, separator);
        cli_append_string(text, key);
        cli_append_string(text, ": ");
        json_dump_callback(value, add, text, JSON_ENCODE_ANY);
        separator = ", ";
    }
    if (separator[0] == '(')
        cli_append_string(text, "(");
    cli_append_string(text, ")");
    json_decref(object);
}

static void print_delta(cli_output *output, const gumbel_reply_delta *delta) {
    if (delta->type == GUMBEL_PART_TOOL_CALL) {
        gb_byte_buffer call = {0};
        begin_part(output, delta->type);
        write_call(delta->name, delta->text, delta->text_length, &call);
        cli_output_text(output, call.text, call.size);
        gb_buffer_free(&call);
    } else if (delta->text_length > 0) {
        if (!output->has_part || output->part != delta->type)
            begin_part(output, delta->type);
        cli_output_text(output, delta->text, delta->text_length);
    }
}

/* Prints what has become certain of the conversation's reply, as far as --reasoning has it. */
static void output_parts(cli_output *output) {
    gumbel_reply *reply = gumbel_conversation_reply(output->conversation);
    gumbel_reply_delta delta = {.size = sizeof delta};
    while (gumbel_reply_next(reply, &delta)) {
        if (delta.warning)
            output->warning = delta.warning;
        const bool is_known = delta.type != GUMBEL_PART_OTHER;
        /* A record has calls in its message; its text is what was said. */
        const bool is_said = !output->record || delta.type != GUMBEL_PART_TOOL_CALL;
        if (is_known && is_said && is_shown(output, delta.type))
            print_delta(output, &delta);
        else if (delta.type == GUMBEL_PART_REASONING)
            output->hides_thought = true;
    }
}

/* Ends the last part, and notes what was odd about the reply. */
static void end_parts(cli_output *output) {
    end_style(output);
    if (output->warning)
        cli_note("%s", output->warning);
    if (output->hides_thought && !output->has_part)
        cli_note("the reply is a thought alone, which --reasoning show prints");
    output->has_part = output->hides_thought = false;
    output->warning = NULL;
}

/* Nobody reads what a full disk or a closed pipe takes: no need to generate it. */
static gumbel_status check_written(gumbel_error *error) {
    if (!ferror(stdout))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_IO, "standard output cannot be written");
}

void cli_print_quoted(const char *text, size_t length) {
    putchar('"');
    gumbel_escape(GUMBEL_ESCAPE_JSON, text, length, cli_write, stdout);
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
        cli_print_quoted(text, length);
    }
    for (uint32_t i = 0; i < generated->top_logprobs; i++)
        printf("\t%" PRId32 ":%.6f", generated->top_tokens[i], (double)generated->top_token_logprob[i]);
    putchar('\n');
    fflush(stdout);
    return check_written(error);
}

void cli_output_rest(cli_output *output, const gumbel_generated *generated) {
    if (!output->detokenizer || (output->logprobs && !output->record))
        return;
    if (output->conversation)
        output_parts(output);
    else
        cli_output_text(output, generated->text, generated->text_length);
}

static json_t *token_json(int32_t token, float logprob) {
    return json_pack("{s:i, s:o}", "token", (int)token, "logprob", cli_json_float(logprob));
}

/* Adds a token's log-probabilities, with the text that it completes. */
static void record_logprobs(cli_record *record, const gumbel_generated *generated, const char *text,
                            size_t length) {
    json_t *entry = token_json(generated->token, generated->logprob), *top = json_array();
    json_object_set_new(entry, "text", cli_json_text(text, length));
    for (uint32_t i = 0; i < generated->top_logprobs; i++)
        json_array_append_new(top, token_json(generated->top_tokens[i], generated->top_token_logprob[i]));
    json_object_set_new(entry, "top_logprobs", top);
    if (!record->logprobs)
        record->logprobs = json_array();
    json_array_append_new(record->logprobs, entry);
}

void cli_record_free(cli_record *record) {
    gb_buffer_free(&record->text);
    json_decref(record->logprobs);
    *record = (cli_record){0};
}

static gumbel_status record_token(cli_output *output, const gumbel_generated *generated,
                                  gumbel_error *error) {
    const char *text = "";
    size_t length = 0;
    gumbel_status status = GUMBEL_OK;
    if (output->detokenizer && output->logprobs)
        status = gumbel_detokenize(output->detokenizer, generated->token, &text, &length, error);
    if (status == GUMBEL_OK && output->logprobs)
        record_logprobs(output->record, generated, text, length);
    cli_output_rest(output, generated);
    return status;
}

gumbel_status cli_output_token(cli_output *output, const gumbel_generated *generated, gumbel_error *error) {
    int32_t token = generated->token;
    if (output->conversation) {
        gumbel_status status = gumbel_conversation_add_generated(output->conversation, generated, error);
        if (status != GUMBEL_OK)
            return status;
    }
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
    cli_output_rest(output, generated);
    return check_written(error);
}

void cli_output_end(cli_output *output) {
    if (output->logprobs || output->record)
        return;
    if (output->conversation)
        end_parts(output);
    if (output->is_terminal)
        cli_terminal_text_end(&output->text);
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
