/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/drafts.h"

#include <stddef.h>
#include <string.h>

enum { DEFAULT_DRAFT = 8, DEFAULT_ROWS = 256, LONGEST_DRAFT = 64 };

const cli_option cli_draft_table[] = {
    {.names = "--draft",
     .argument = "WHO",
     .help =
         "Who guesses the next tokens, so that one step verifies several: lookup (what followed the last "
         "tokens before, in prompt and answer), heads (the program's own draft head alone), auto (the best "
         "there is: the default), off, or PROGRAM: auto with a smaller program of the same vocabulary, or "
         "its checkpoint, in place of a head. A guess changes no token, and is made only where it saves "
         "time.",
     .type = CLI_STRING,
     .choices = CLI_DRAFT_WORDS,
     .offset = offsetof(cli_draft_options, who)},
    {.names = "--draft-max",
     .argument = "N",
     .help =
         "Tokens of one sequence that are guessed at once, at most; 8 by default, and fewer of a server with "
         "more than 32 slots.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = LONGEST_DRAFT},
     .offset = offsetof(cli_draft_options, most)},
    {0},
};

/* Any other word is a program. */
static const struct {
    const char *word;
    gumbel_drafting drafting;
} words[] = {
    {"auto", GUMBEL_DRAFTING_AUTO},
    {"lookup", GUMBEL_DRAFTING_LOOKUP},
    {"heads", GUMBEL_DRAFTING_MODEL},
    {"off", GUMBEL_DRAFTING_OFF},
};
enum { WORDS = sizeof words / sizeof *words };

static size_t find_word(const char *who) {
    size_t i = 0;
    while (i < WORDS && strcmp(words[i].word, who) != 0)
        i++;
    return i;
}

/* Beside a program there are lookups. */
gumbel_drafting cli_drafting(const cli_draft_options *flags) {
    const size_t i = flags->who ? find_word(flags->who) : WORDS;
    return i < WORDS ? words[i].drafting : GUMBEL_DRAFTING_AUTO;
}

const char *cli_draft_model(const cli_draft_options *flags) {
    return flags->who && find_word(flags->who) == WORDS ? flags->who : NULL;
}

uint32_t cli_draft_tokens(const cli_draft_options *flags, int slots) {
    if (cli_drafting(flags) == GUMBEL_DRAFTING_OFF)
        return 0;
    if (flags->most.given)
        return (uint32_t)flags->most.value;
    const int each = DEFAULT_ROWS / slots;
    return each >= DEFAULT_DRAFT ? DEFAULT_DRAFT : each > 0 ? (uint32_t)each : 1;
}

void cli_use_drafts(const cli_draft_options *flags, cli_model_options *options) {
    const gumbel_drafting drafting = cli_drafting(flags);
    options->draft_tokens = cli_draft_tokens(flags, options->slots > 0 ? options->slots : 1);
    options->draft_model = cli_draft_model(flags);
    options->needs_draft_model = drafting == GUMBEL_DRAFTING_MODEL;
    options->draft_head = drafting == GUMBEL_DRAFTING_AUTO || options->needs_draft_model;
}

static int percent(uint64_t part, uint64_t all) {
    return all > 0 ? (int)((100 * part + all / 2) / all) : 0;
}

void cli_print_draft_stats(const gumbel_draft_stats *stats, FILE *file) {
    if (stats->steps == 0)
        return;
    fprintf(file, "drafts           %llu of %llu tokens accepted in %llu steps; by place",
            (unsigned long long)stats->accepted, (unsigned long long)stats->proposed,
            (unsigned long long)stats->steps);
    for (int i = 0; i < GUMBEL_DRAFT_PLACES && stats->tried_at[i] > 0; i++)
        fprintf(file, " %d", percent(stats->accepted_at[i], stats->tried_at[i]));
    fprintf(file, " %%\n");
}
