/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include "cli/report.h"

#include <stdio.h>
#include <string.h>

enum { MOST_OPERANDS = CLI_MOST_STRINGS };

size_t cli_next_name(const char **names, const char **name) {
    *name = *names + strspn(*names, " ");
    size_t length = strcspn(*name, " ");
    *names = *name + length;
    return length;
}

/* Underscores count as dashes after the two that begin a long name. */
static bool same_name(const char *name, const char *given, size_t length) {
    bool is_long = length > 2 && given[0] == '-' && given[1] == '-';
    for (size_t i = 0; i < length; i++)
        if (name[i] != given[i] && !(is_long && i > 2 && name[i] == '-' && given[i] == '_'))
            return false;
    return true;
}

static bool has_name(const cli_option *option, const char *given, size_t length) {
    const char *names = option->names, *name;
    for (size_t n; (n = cli_next_name(&names, &name)) > 0;)
        if (n == length && same_name(name, given, length))
            return true;
    return false;
}

/* An option and the structure its value goes to. */
typedef struct target {
    const cli_option_group *group;
    const cli_option *option;
    char *base;
} target;

static bool find_option(const cli_option_group *groups, void *arguments, const char *given, size_t length,
                        target *found) {
    for (const cli_option_group *group = groups; group->title; group++)
        for (const cli_option *option = group->options; option->names; option++)
            if (has_name(option, given, length)) {
                *found = (target){group, option, (char *)arguments + group->offset};
                return true;
            }
    return false;
}

static bool takes_value(const cli_option *option) {
    return option->type != CLI_FLAG && option->type != CLI_SET;
}

/* The name that messages use: the first long one, else the first. */
static int print_name(const cli_option *option, char *text, size_t capacity) {
    const char *names = option->names, *name, *chosen = NULL;
    size_t chosen_length = 0;
    for (size_t n; (n = cli_next_name(&names, &name)) > 0;)
        if (!chosen || (chosen[1] != '-' && name[1] == '-')) {
            chosen = name;
            chosen_length = n;
        }
    return snprintf(text, capacity, "%.*s", (int)chosen_length, chosen ? chosen : "");
}

static bool refuse_value(const cli_option *option, const char *value, gumbel_error *error) {
    char name[48], expected[160];
    print_name(option, name, sizeof name);
    switch (option->type) {
    case CLI_INTEGER:
    case CLI_NUMBER:
        cli_describe_range(&option->range, option->type == CLI_INTEGER, expected, sizeof expected);
        break;
    case CLI_INTEGERS: {
        char one[96];
        cli_describe_range(&option->range, true, one, sizeof one);
        snprintf(expected, sizeof expected, "%s, or up to %d of them separated by commas", one,
                 CLI_MOST_INTEGERS);
        break;
    }
    case CLI_CHOICE:
        snprintf(expected, sizeof expected, "one of %s", option->choices);
        break;
    case CLI_SEED:
        snprintf(expected, sizeof expected, "an integer in [0, 18446744073709551615], or -1 to draw one");
        break;
    case CLI_BIASES:
        snprintf(expected, sizeof expected,
                 "ID=VALUE, with VALUE a number in [-1000000, 1000000] or -inf; %d of them at most",
                 CLI_MOST_BIASES);
        break;
    case CLI_STRINGS:
        snprintf(expected, sizeof expected, "a text that is not empty; %d of them at most", CLI_MOST_STRINGS);
        break;
    default:
        snprintf(expected, sizeof expected, "token ids separated by commas");
        break;
    }
    return cli_refuse(error, "%s %.100s: expected %s", name, *value ? value : "\"\"", expected);
}

static bool store_value(const target *found, const char *value, gumbel_error *error) {
    const cli_option *option = found->option;
    void *field = found->base + option->offset;
    bool good = true;
    switch (option->type) {
    case CLI_FLAG:
        *(bool *)field = true;
        break;
    case CLI_SET:
        *(int *)field = option->constant;
        break;
    case CLI_CHOICE:
        good = cli_is_choice(value, option->choices);
        *(const char **)field = value;
        break;
    case CLI_STRING:
        *(const char **)field = value;
        break;
    case CLI_INTEGER:
        ((cli_integer *)field)->given = true;
        good = cli_parse_integer(value, &option->range, &((cli_integer *)field)->value);
        break;
    case CLI_INTEGERS:
        good = cli_parse_integers(value, &option->range, field);
        break;
    case CLI_NUMBER:
        ((cli_number *)field)->given = true;
        good = cli_parse_number(value, &option->range, &((cli_number *)field)->value);
        break;
    case CLI_SEED:
        ((cli_seed *)field)->given = true;
        good = cli_parse_seed(value, &((cli_seed *)field)->draw, &((cli_seed *)field)->value);
        break;
    case CLI_TOKENS:
        cli_tokens_free(field);
        good = cli_parse_tokens(value, field);
        break;
    case CLI_BIASES:
        good = cli_parse_biases(value, field);
        break;
    case CLI_STRINGS:
        good = cli_add_string(value, field);
        break;
    }
    return good || refuse_value(option, value, error);
}

/* The option's name that the given one was most likely meant to be, or NULL. */
static const char *suggest_option(const cli_option_group *groups, const char *given, char *found,
                                  size_t capacity) {
    char candidates[2048] = "";
    size_t used = 0;
    for (const cli_option_group *group = groups; group->title; group++)
        for (const cli_option *option = group->options; option->names; option++)
            if (used + strlen(option->names) + 2 < sizeof candidates)
                used += (size_t)sprintf(candidates + used, "%s ", option->names);
    return strlen(given) > 2 ? cli_suggest(given, candidates, found, capacity) : NULL;
}

static bool refuse_unknown(const cli_command *command, const char *word, size_t length, gumbel_error *error) {
    char given[64], found[48];
    snprintf(given, sizeof given, "%.*s", (int)length, word);
    if (suggest_option(command->groups, given, found, sizeof found))
        return cli_refuse(error, "%s has no option %s; did you mean %s?", command->name, given, found);
    return cli_refuse(error, "%s has no option %s (see gumbel help %s)", command->name, given, command->name);
}

/* The words still to read. */
typedef struct reader {
    int count;
    char *const *words;
} reader;

/* Reads one flag, whose word was taken from the reader already, and its value. */
static bool read_flag(const cli_command *command, void *arguments, const char *word, reader *rest,
                      gumbel_error *error) {
    bool is_long = word[1] == '-';
    const char *equals = is_long ? strchr(word, '=') : NULL;
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const char *value = equals ? equals + 1 : NULL;
    target found;
    if (!find_option(command->groups, arguments, word, length, &found)) {
        if (is_long || !find_option(command->groups, arguments, word, 2, &found) ||
            !takes_value(found.option))
            return refuse_unknown(command, word, length, error);
        value = word + 2; /* -n12 */
    }
    char name[48];
    print_name(found.option, name, sizeof name);
    if (!takes_value(found.option) && value)
        return cli_refuse(error, "%s takes no value", name);
    if (takes_value(found.option) && !value) {
        if (rest->count == 0)
            return cli_refuse(error, "%s needs a value: %s %s", name, name, found.option->argument);
        value = *rest->words++;
        rest->count--;
    }
    return store_value(&found, value, error);
}

/* Gives the words that are no flags to the operands that no flag has filled. */
static bool place_operands(const cli_command *command, void *arguments, const char *const *words,
                           size_t count, gumbel_error *error) {
    size_t placed = 0;
    for (const cli_operand *operand = command->operands; operand->name; operand++) {
        const char **field = (const char **)(void *)((char *)arguments + operand->offset);
        if (!*field && placed < count)
            *field = words[placed++];
        if (!*field && operand->required)
            return cli_refuse(error, "%s needs a %s (see gumbel help %s)", command->name, operand->name,
                              command->name);
    }
    const cli_operand *more = command->more;
    while (more && placed < count &&
           cli_add_string(words[placed], (void *)((char *)arguments + more->offset)))
        placed++;
    if (placed < count)
        return cli_refuse(error, "%s: unexpected \"%.100s\" (see gumbel help %s)", command->name,
                          words[placed], command->name);
    return true;
}

cli_parsed cli_parse(const cli_command *command, int count, char *const *words, void *arguments,
                     gumbel_error *error) {
    reader rest = {count, words};
    const char *operands[MOST_OPERANDS];
    size_t operand_count = 0;
    bool flags_ended = false;
    while (rest.count > 0) {
        const char *word = *rest.words++;
        rest.count--;
        if (!flags_ended && word[0] == '-' && word[1] != '\0') {
            if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0)
                return CLI_HELP_WANTED;
            if (strcmp(word, "--") == 0)
                flags_ended = true;
            else if (!read_flag(command, arguments, word, &rest, error))
                return CLI_WRONG;
        } else if (operand_count < MOST_OPERANDS) {
            operands[operand_count++] = word;
        } else {
            cli_refuse(error, "%s: too many words (see gumbel help %s)", command->name, command->name);
            return CLI_WRONG;
        }
    }
    return place_operands(command, arguments, operands, operand_count, error) ? CLI_PARSED : CLI_WRONG;
}

bool cli_set_option(const cli_option_group *groups, void *arguments, const char *name, const char *value,
                    gumbel_error *error) {
    char given[64], nearest[48];
    snprintf(given, sizeof given, "--%s", name);
    target found;
    if (!find_option(groups, arguments, given, strlen(given), &found)) {
        if (suggest_option(groups, given, nearest, sizeof nearest))
            return cli_refuse(error, "there is no setting %.40s; did you mean %s?", name, nearest + 2);
        return cli_refuse(error, "there is no setting %.40s", name);
    }
    if (found.group->fixed)
        return cli_refuse(error, "%.40s cannot be changed now, only given at the start", name);
    if (found.option->type == CLI_STRINGS && !value)
        return cli_clear_strings((void *)(found.base + found.option->offset));
    if (takes_value(found.option) && !value)
        return cli_refuse(error, "%.40s needs a value: %.40s %s", name, name, found.option->argument);
    if (!takes_value(found.option) && value)
        return cli_refuse(error, "%.40s takes no value", name);
    return store_value(&found, value, error);
}

void cli_free_arguments(const cli_command *command, void *arguments) {
    for (const cli_option_group *group = command->groups; group->title; group++)
        for (const cli_option *option = group->options; option->names; option++)
            if (option->type == CLI_TOKENS)
                cli_tokens_free((void *)((char *)arguments + group->offset + option->offset));
}
