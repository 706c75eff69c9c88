/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/option_table.h"

#include "cli/base/report.h"
#include "cli/base/shorten.h"

#include <stdio.h>
#include <string.h>

size_t cli_next_name(const char **names, const char **name) {
    *name = *names + strspn(*names, " ");
    size_t length = strcspn(*name, " ");
    *names = *name + length;
    return length;
}

static bool same_name(const char *name, const char *given, size_t length) {
    bool is_long = length > 2 && given[0] == '-' && given[1] == '-';
    for (size_t i = 0; i < length; i++)
        if (name[i] != given[i] && !(is_long && i > 2 && name[i] == '-' && given[i] == '_'))
            return false;
    return true;
}

bool cli_has_name(const char *names, const char *given, size_t length) {
    const char *name;
    for (size_t n; (n = cli_next_name(&names, &name)) > 0;)
        if (n == length && same_name(name, given, length))
            return true;
    return false;
}

bool cli_find_option(const cli_option_group *groups, void *arguments, const char *given, size_t length,
                     cli_target *found) {
    for (const cli_option_group *group = groups; group->title; group++)
        for (const cli_option *option = group->options; option->names; option++)
            if (cli_has_name(option->names, given, length)) {
                *found = (cli_target){group, option, (char *)arguments + group->offset};
                return true;
            }
    return false;
}

bool cli_takes_value(const cli_option *option) {
    return option->type != CLI_FLAG && option->type != CLI_SET;
}

const char *cli_option_name(const cli_option *option, char text[CLI_OPTION_NAME]) {
    const char *names = option->names, *name, *chosen = NULL;
    size_t chosen_length = 0;
    for (size_t n; (n = cli_next_name(&names, &name)) > 0;)
        if (!chosen || (chosen[1] != '-' && name[1] == '-')) {
            chosen = name;
            chosen_length = n;
        }
    snprintf(text, CLI_OPTION_NAME, "%.*s", (int)chosen_length, chosen ? chosen : "");
    return text;
}

void *cli_option_field(const cli_target *found) {
    return found->base + found->option->offset;
}

static bool refuse_value(const cli_option *option, const char *prefix, const char *value,
                         gumbel_error *error) {
    char expected[160], shortened[CLI_SHORTENED];
    switch (option->type) {
    case CLI_FLAG:
        snprintf(expected, sizeof expected, "one of " CLI_SWITCH_WORDS);
        break;
    case CLI_INTEGER:
    case CLI_NUMBER:
        cli_describe_range(&option->range, option->type == CLI_INTEGER, expected, sizeof expected);
        break;
    case CLI_INTEGERS: {
        char one[96];
        cli_describe_range(&option->range, true, one, sizeof one);
        snprintf(expected, sizeof expected, "%s, or up to %d of them separated by commas%s%s", one,
                 CLI_MOST_INTEGERS, option->choices ? "; or " : "", option->choices ? option->choices : "");
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
    return cli_refuse(error, "%s%s: expected %s", prefix, *value ? cli_shorten(value, shortened) : "\"\"",
                      expected);
}

static bool store_integers(const cli_option *option, const char *value, cli_integers *integers) {
    *integers = (cli_integers){0};
    if (option->choices && cli_is_choice(value, option->choices))
        integers->word = value;
    return integers->word || cli_parse_integers(value, &option->range, integers);
}

bool cli_store_value(const cli_target *found, const char *prefix, const char *value, gumbel_error *error) {
    const cli_option *option = found->option;
    void *field = cli_option_field(found);
    bool good = true;
    switch (option->type) {
    case CLI_FLAG:
        *(bool *)field = true;
        good = !value || cli_parse_switch(value, field);
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
        if (option->constant && *(int *)(void *)(found->base + option->constant_offset) == 0)
            *(int *)(void *)(found->base + option->constant_offset) = option->constant;
        break;
    case CLI_INTEGER:
        ((cli_integer *)field)->given = true;
        ((cli_integer *)field)->from_environment = false;
        good = cli_parse_integer(value, &option->range, &((cli_integer *)field)->value);
        break;
    case CLI_INTEGERS:
        good = store_integers(option, value, field);
        break;
    case CLI_NUMBER:
        ((cli_number *)field)->given = true;
        ((cli_number *)field)->from_environment = false;
        good = cli_parse_number(value, &option->range, &((cli_number *)field)->value);
        break;
    case CLI_SEED:
        ((cli_seed *)field)->given = true;
        ((cli_seed *)field)->from_environment = false;
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
    return good || refuse_value(option, prefix, value, error);
}

const char *cli_suggest_option(const cli_option_group *groups, const char *given, char *found,
                               size_t capacity) {
    char candidates[2048] = "";
    size_t used = 0;
    for (const cli_option_group *group = groups; group->title; group++)
        for (const cli_option *option = group->options; option->names; option++)
            if (used + strlen(option->names) + 2 < sizeof candidates)
                used += (size_t)sprintf(candidates + used, "%s ", option->names);
    return cli_suggest(given, candidates, found, capacity);
}

bool cli_set_option(const cli_option_group *groups, void *arguments, const char *name, const char *value,
                    gumbel_error *error) {
    char given[64], nearest[CLI_OPTION_NAME], shortened[CLI_SHORTENED];
    snprintf(given, sizeof given, "--%s", name);
    cli_shorten(name, shortened);
    cli_target found;
    if (!cli_find_option(groups, arguments, given, strlen(given), &found)) {
        if (cli_suggest_option(groups, given, nearest, sizeof nearest))
            return cli_refuse(error, "there is no setting %s; did you mean %s?", shortened,
                              nearest + strspn(nearest, "-"));
        return cli_refuse(error, "there is no setting %s", shortened);
    }
    if (found.group->fixed)
        return cli_refuse(error, "%s cannot be changed now, only given at the start", shortened);
    if (found.option->type == CLI_STRINGS && !value)
        return cli_clear_strings(cli_option_field(&found));
    if (cli_takes_value(found.option) && !value)
        return cli_refuse(error, "%s needs a value: %s %s", shortened, shortened, found.option->argument);
    if (found.option->type == CLI_SET && value)
        return cli_refuse(error, "%s takes no value", shortened);
    char prefix[CLI_OPTION_NAME + 1];
    cli_option_name(found.option, prefix);
    strcat(prefix, " ");
    return cli_store_value(&found, prefix, value, error);
}

bool cli_flag_is_set(const cli_command *command, const void *arguments, const char *name) {
    cli_target found;
    return cli_find_option(command->groups, (void *)(uintptr_t)arguments, name, strlen(name), &found) &&
           found.option->type == CLI_FLAG && *(const bool *)cli_option_field(&found);
}

void cli_free_arguments(const cli_command *command, void *arguments) {
    for (const cli_option_group *group = command->groups; group->title; group++)
        for (const cli_option *option = group->options; option->names; option++)
            if (option->type == CLI_TOKENS)
                cli_tokens_free((void *)((char *)arguments + group->offset + option->offset));
    if (command->rest)
        cli_words_free((void *)((char *)arguments + command->rest->offset));
}
