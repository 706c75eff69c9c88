/* SPDX-License-Identifier: Apache-2.0
 *
 * Command lines: words become options and operands, then the environment fills what is left.
 */
#include "cli/base/report.h"
#include "cli/base/shorten.h"
#include "cli/options/environment.h"
#include "cli/options/foreign.h"
#include "cli/options/option_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
    const cli_command *command;
    void *arguments;
    int count; /* of the words that are still to read */
    char *const *words;
    const char **operands; /* words that are no flags */
    size_t operand_count;
    const void **filled; /* fields that have a value */
    size_t filled_count;
    gb_byte_buffer ignored; /* flags of other programs that do nothing here */
    gumbel_error *error;
} parser;

/* A flag as it was typed. */
typedef struct typed_flag {
    const char *name; /* length bytes */
    size_t length;
    const char *attached; /* what follows "=", or NULL */
    bool is_long;
} typed_flag;

static typed_flag take_apart(const char *word) {
    bool is_long = word[1] == '-';
    const char *equals = is_long ? strchr(word, '=') : NULL;
    return (typed_flag){word, equals ? (size_t)(equals - word) : strlen(word), equals ? equals + 1 : NULL,
                        is_long};
}

static bool is_filled(const parser *p, const void *field) {
    for (size_t i = 0; i < p->filled_count; i++)
        if (p->filled[i] == field)
            return true;
    return false;
}

static bool fill(parser *p, const cli_target *found, const char *prefix, const char *value) {
    p->filled[p->filled_count++] = cli_option_field(found);
    return cli_store_value(found, prefix, value, p->error);
}

static const char *take_word(parser *p) {
    p->count--;
    return *p->words++;
}

/* ---- Our own flags ------------------------------------------------------------------------------------- */

/* value: what is attached to the flag, or NULL. */
static bool read_own(parser *p, const cli_target *found, const char *value) {
    char name[CLI_OPTION_NAME], prefix[CLI_OPTION_NAME + 1];
    cli_option_name(found->option, name);
    if (found->option->type == CLI_SET && value)
        return cli_refuse(p->error, "%s takes no value", name);
    if (cli_takes_value(found->option) && !value) {
        if (p->count == 0)
            return cli_refuse(p->error, "%s needs a value: %s %s", name, name, found->option->argument);
        value = take_word(p);
    }
    snprintf(prefix, sizeof prefix, "%s ", name);
    return fill(p, found, prefix, value);
}

/* Whether text can be the value of a short option that it is attached to. */
static bool can_be_attached(const cli_option *option, const char *text) {
    switch (option->type) {
    case CLI_FLAG:
    case CLI_SET:
        return false;
    case CLI_STRING:
    case CLI_STRINGS:
        return true;
    case CLI_CHOICE:
        return cli_is_choice(text, option->choices);
    default:
        return strchr("0123456789-+.", text[0]) != NULL;
    }
}

/* "-n12", but not "-ngl", which is a flag elsewhere, nor "-model". */
static bool find_cluster(const parser *p, const typed_flag *flag, cli_target *found) {
    char as_long[CLI_OPTION_NAME];
    snprintf(as_long, sizeof as_long, "-%s", flag->name);
    cli_target unused;
    return !flag->is_long && flag->length > 2 &&
           cli_find_option(p->command->groups, p->arguments, flag->name, 2, found) &&
           can_be_attached(found->option, flag->name + 2) &&
           !cli_find_option(p->command->groups, p->arguments, as_long, strlen(as_long), &unused) &&
           !cli_next_foreign(NULL, as_long, strlen(as_long));
}

/* ---- Flags of other programs --------------------------------------------------------------------------- */

/* Whether the flag's value is one that the row is for. The value is what is attached, or else the next word,
 * which is taken where the row has a use for it. */
static bool take_foreign_value(parser *p, const typed_flag *flag, const cli_foreign *row,
                               const char **value) {
    *value = flag->attached ? flag->attached : p->count > 0 ? p->words[0] : NULL;
    cli_foreign_value takes = cli_foreign_takes(row, *value);
    if (takes == CLI_FOREIGN_NO_VALUE)
        *value = NULL;
    else if (takes == CLI_FOREIGN_VALUE && !flag->attached && *value)
        take_word(p);
    return takes != CLI_FOREIGN_OTHER_VALUE;
}

/* Does what a flag of ours does: text is "--lock all", "--max-context %" or "--interactive". */
static bool follow_foreign(parser *p, const typed_flag *flag, const cli_target *found, const char *text,
                           const char *value) {
    char prefix[CLI_SHORTENED + 1];
    cli_shorten_bytes(flag->name, flag->length, prefix);
    if (strchr(text, '%') && !value)
        return cli_refuse(p->error, "%s needs a value: %s %s", prefix, prefix, found->option->argument);
    if (!strchr(text, '%'))
        value = strchr(text, ' ') ? strchr(text, ' ') + 1 : NULL;
    strcat(prefix, " ");
    return fill(p, found, prefix, value);
}

static void ignore(parser *p, const typed_flag *flag, const char *reason) {
    static const char *const around[] = {", ", " (", ")"};
    if (p->ignored.size > 0)
        cli_append_string(&p->ignored, around[0]);
    cli_append(&p->ignored, flag->name, flag->length);
    cli_append_string(&p->ignored, around[1]);
    cli_append_string(&p->ignored, reason);
    cli_append_string(&p->ignored, around[2]);
}

/* The first row that is for this value and, where it stands for a flag of ours, for this command. *known says
 * whether there was one. */
static bool read_foreign(parser *p, const typed_flag *flag, bool *known) {
    const cli_foreign *row = NULL;
    *known = true;
    while ((row = cli_next_foreign(row, flag->name, flag->length)) != NULL) {
        cli_target found;
        const char *value;
        if (row->kind == CLI_FOREIGN_OURS &&
            !cli_find_option(p->command->groups, p->arguments, row->text, strcspn(row->text, " "), &found))
            continue;
        if (!take_foreign_value(p, flag, row, &value))
            continue;
        if (row->kind == CLI_FOREIGN_OURS)
            return follow_foreign(p, flag, &found, row->text, value);
        if (row->kind == CLI_FOREIGN_MISSING)
            return cli_refuse(p->error, "%.*s: %s", (int)flag->length, flag->name, row->text);
        ignore(p, flag, row->text);
        return true;
    }
    *known = false;
    return false;
}

/* ---- Words --------------------------------------------------------------------------------------------- */

static bool refuse_unknown(const parser *p, const typed_flag *flag) {
    const char *command = p->command->name;
    char given[CLI_SHORTENED], found[CLI_OPTION_NAME];
    cli_shorten_bytes(flag->name, flag->length, given);
    if (cli_suggest_option(p->command->groups, given, found, sizeof found))
        return cli_refuse(p->error, "%s has no option %s; did you mean %s?", command, given, found);
    return cli_refuse(p->error, "%s has no option %s (see gumbel help %s)", command, given, command);
}

/* Reads a flag, whose word was taken already, and its value. */
static bool read_flag(parser *p, const char *word) {
    typed_flag flag = take_apart(word);
    cli_target found;
    bool known;
    if (cli_find_option(p->command->groups, p->arguments, flag.name, flag.length, &found))
        return read_own(p, &found, flag.attached);
    bool good = read_foreign(p, &flag, &known);
    if (known)
        return good;
    if (find_cluster(p, &flag, &found))
        return read_own(p, &found, flag.name + 2);
    return refuse_unknown(p, &flag);
}

static void *operand_field(const parser *p, const cli_operand *operand) {
    return (char *)p->arguments + operand->offset;
}

/* The words from the first one on. */
static void keep_rest(const parser *p, size_t first) {
    cli_words *words = operand_field(p, p->command->rest);
    words->list = cli_allocate(p->operand_count - first + 1, sizeof *words->list);
    while (first + words->count < p->operand_count) {
        words->list[words->count] = p->operands[first + words->count];
        words->count++;
    }
}

/* Gives the words that are no flags to the operands that no flag has filled. */
static bool place_operands(parser *p) {
    size_t placed = 0;
    for (const cli_operand *operand = p->command->operands; operand->name; operand++) {
        void *field = operand_field(p, operand);
        if (placed < p->operand_count && !is_filled(p, field)) {
            *(const char **)field = p->operands[placed++];
            p->filled[p->filled_count++] = field;
        }
    }
    if (p->command->rest) {
        keep_rest(p, placed);
        return true;
    }
    char word[CLI_SHORTENED];
    return placed == p->operand_count ||
           cli_refuse(p->error, "%s: unexpected \"%s\" (see gumbel help %s)", p->command->name,
                      cli_shorten(p->operands[placed], word), p->command->name);
}

/* Reports of settings say where a number came from. */
static void mark_environment(const cli_target *found) {
    void *field = cli_option_field(found);
    if (found->option->type == CLI_INTEGER)
        ((cli_integer *)field)->from_environment = true;
    else if (found->option->type == CLI_NUMBER)
        ((cli_number *)field)->from_environment = true;
    else if (found->option->type == CLI_SEED)
        ((cli_seed *)field)->from_environment = true;
}

static bool fill_from_environment(parser *p, const cli_target *found, const char *prefix, const char *value) {
    bool is_on = true;
    if (found->option->type == CLI_SET) {
        char given[CLI_SHORTENED];
        if (!cli_parse_switch(value, &is_on))
            return cli_refuse(p->error, "%s%s: expected one of " CLI_SWITCH_WORDS, prefix,
                              cli_shorten(value, given));
        value = NULL;
    }
    if (is_on && !fill(p, found, prefix, value))
        return false;
    mark_environment(found);
    return true;
}

/* Fills the fields that no word has filled. */
static bool read_environment(parser *p) {
    for (const cli_option_group *group = p->command->groups; group->title; group++)
        for (const cli_option *option = group->options; option->names; option++) {
            cli_target found = {group, option, (char *)p->arguments + group->offset};
            char prefix[CLI_VARIABLE_NAME + 1];
            const char *value = getenv(cli_variable_name(option, prefix));
            strcat(prefix, "=");
            if (value && *value && !is_filled(p, cli_option_field(&found)) &&
                !fill_from_environment(p, &found, prefix, value))
                return false;
        }
    return true;
}

static bool check_operands(const parser *p) {
    for (const cli_operand *operand = p->command->operands; operand->name; operand++)
        if (operand->required && !is_filled(p, operand_field(p, operand)))
            return cli_refuse(p->error, "%s needs a %s (see gumbel help %s)", p->command->name, operand->name,
                              p->command->name);
    return true;
}

static cli_parsed read_words(parser *p) {
    bool flags_ended = false;
    while (p->count > 0) {
        const char *word = take_word(p);
        bool is_flag = !flags_ended && word[0] == '-' && word[1] != '\0';
        if (!is_flag)
            p->operands[p->operand_count++] = word;
        else if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0)
            return CLI_HELP_WANTED;
        else if (strcmp(word, "--") == 0)
            flags_ended = true;
        else if (!read_flag(p, word))
            return CLI_WRONG;
    }
    return place_operands(p) && read_environment(p) && check_operands(p) ? CLI_PARSED : CLI_WRONG;
}

/* ---- All of it ----------------------------------------------------------------------------------------- */

static size_t count_options(const cli_command *command) {
    size_t count = 0;
    for (const cli_option_group *group = command->groups; group->title; group++)
        for (const cli_option *option = group->options; option->names; option++)
            count++;
    return count;
}

cli_parsed cli_parse(const cli_command *command, int count, char *const *words, void *arguments,
                     gb_byte_buffer *notes, gumbel_error *error) {
    size_t most = (size_t)count + count_options(command);
    parser p = {.command = command,
                .arguments = arguments,
                .count = count,
                .words = words,
                .operands = cli_allocate((size_t)count + 1, sizeof *p.operands),
                .filled = cli_allocate(most + 1, sizeof *p.filled),
                .error = error};
    cli_parsed result = read_words(&p);
    if (result == CLI_PARSED && p.ignored.size > 0) {
        static const char begin[] = "without effect here: ";
        cli_append_string(notes, begin);
        cli_append(notes, p.ignored.text, p.ignored.size);
        cli_append_string(notes, "\n");
    }
    gb_buffer_free(&p.ignored);
    free(p.operands);
    free(p.filled);
    return result;
}
