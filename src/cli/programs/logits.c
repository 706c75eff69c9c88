/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel logits: the row of logits after a prompt, for comparing with other implementations.
 */
#include "base/status.h"
#include "cli/base/report.h"
#include "cli/command.h"
#include "cli/model/model.h"
#include "cli/programs/npy.h"

typedef struct logits_options {
    cli_tokens tokens;
    const char *output;
} logits_options;

typedef struct logits_arguments {
    cli_model_options model;
    logits_options logits;
} logits_arguments;

static const cli_option logits_table[] = {
    {.names = "--tokens",
     .argument = "IDS",
     .help = "The prompt as token ids separated by commas; nothing is added.",
     .type = CLI_TOKENS,
     .offset = offsetof(logits_options, tokens)},
    {.names = "-o --output",
     .argument = "FILE.npy",
     .help = "The file to write, for numpy.load.",
     .type = CLI_STRING,
     .offset = offsetof(logits_options, output)},
    {0},
};

/* The logits after the last token; *row is valid until the engine's next step. */
static gumbel_status compute_row(const cli_model *model, const cli_tokens *tokens, const float **row,
                                 gumbel_error *error) {
    size_t last = tokens->count - 1;
    gumbel_status status = gumbel_session_append(model->session, tokens->ids, last, error);
    if (status != GUMBEL_OK)
        return status;
    gumbel_sampling greedy = {.size = sizeof greedy, .temperature = 0, .top_k = 0, .top_p = 1};
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request,
                              .session = model->session,
                              .tokens = &tokens->ids[last],
                              .token_count = 1,
                              .result = &result,
                              .sampling = &greedy};
    status = gumbel_step(model->engine, &request, 1, error);
    if (status != GUMBEL_OK)
        return status;
    *row = result.logits;
    if (*row)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                   "the program gives no logits on this backend; export it with --logits");
}

static int logits(void *given) {
    const logits_arguments *arguments = given;
    if (!arguments->logits.tokens.ids)
        return cli_fail_usage("logits needs --tokens IDS, the prompt");
    if (!arguments->logits.output)
        return cli_fail_usage("logits needs -o FILE.npy, the file to write");
    cli_model model;
    gumbel_error error;
    const float *row;
    gb_input_list inputs;
    gb_record_inputs(&inputs);
    gumbel_status status = cli_model_open(&arguments->model, false, &model, &error);
    if (status == GUMBEL_OK)
        status = cli_check_tokens(&model, &arguments->logits.tokens, &error);
    if (status == GUMBEL_OK)
        status = compute_row(&model, &arguments->logits.tokens, &row, &error);
    if (status == GUMBEL_OK)
        status = cli_write_npy(arguments->logits.output, &inputs, row, model.info.vocab_size, &error);
    gb_end_inputs(&inputs);
    cli_model_close(&model);
    return status == GUMBEL_OK ? CLI_OK : cli_fail_with(&error);
}

const cli_command cli_command_logits = {
    .name = "logits",
    .summary = "write the logits after a prompt to a .npy file",
    .synopsis = "PROGRAM --tokens IDS -o FILE.npy [options]",
    .description =
        "Runs a prompt and writes the logits of its last token, after soft-capping, as one float32 "
        "array of the vocabulary's size.",
    .operands =
        (const cli_operand[]){
            {"PROGRAM", offsetof(logits_arguments, model.source.path), true, CLI_PROGRAM_HELP}, {0}},
    .groups =
        (const cli_option_group[]){
            {.title = "Options", .options = logits_table, .offset = offsetof(logits_arguments, logits)},
            {.title = "Program",
             .options = cli_program_table,
             .offset = offsetof(logits_arguments, model.source)},
            {.title = "Machine", .options = cli_model_table, .offset = offsetof(logits_arguments, model)},
            {0}},
    .examples = (const cli_example[]){{"gumbel logits model.gumbel --tokens 2,17,99 -o row.npy",
                                       "The scores of what may follow these three tokens."},
                                      {0}},
    .arguments_size = sizeof(logits_arguments),
    .run = logits,
};
