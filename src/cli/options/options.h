/* SPDX-License-Identifier: Apache-2.0
 *
 * Command lines as data. Each command has one table of its flags; the parser, --help and the manual page are
 * made from it. Values land in a structure of the command's own, at the offset that the table gives.
 */
#ifndef GUMBEL_CLI_OPTIONS_OPTIONS_H
#define GUMBEL_CLI_OPTIONS_OPTIONS_H

#include "cli/options/values.h"
#include "gumbel.h"

typedef enum cli_type {
    CLI_FLAG,     /* bool, becomes true; no value but in --name=off and the environment */
    CLI_SET,      /* no value; int, becomes cli_option.constant (the last one given counts) */
    CLI_STRING,   /* const char *, NULL when not given */
    CLI_CHOICE,   /* const char *, one of cli_option.choices */
    CLI_INTEGER,  /* cli_integer */
    CLI_INTEGERS, /* cli_integers, replaced whole, or one of cli_option.choices; count 0 when not given */
    CLI_NUMBER,   /* cli_number */
    CLI_SEED,     /* cli_seed */
    CLI_TOKENS,   /* cli_tokens */
    CLI_BIASES,   /* cli_biases; adds to those of the flags before */
    CLI_STRINGS   /* cli_strings; adds one to those of the flags before */
} cli_type;

typedef struct cli_integer {
    bool given, from_environment;
    int64_t value;
} cli_integer;

typedef struct cli_number {
    bool given, from_environment;
    double value;
} cli_number;

typedef struct cli_seed {
    bool given, from_environment;
    bool draw; /* -1 was given */
    uint64_t value;
} cli_seed;

typedef struct cli_option {
    const char *names; /* "-n --max-new-tokens --predict": separated by blanks; the first name of two dashes
                          is the one that messages use. NULL ends a table */
    const char *argument; /* what help calls the value; NULL for CLI_FLAG and CLI_SET */
    const char *help;     /* one or two sentences */
    cli_type type;
    size_t offset; /* within the group's structure */
    cli_range range;
    const char *choices; /* separated by blanks; of a CLI_STRING: what shells offer, others are right too */
    int constant;        /* of CLI_SET; of CLI_STRING what the int at constant_offset becomes if it is 0 */
    size_t constant_offset;
} cli_option;

/* Flags that belong together: a heading in help, a structure within the command's. */
typedef struct cli_option_group {
    const char *title; /* NULL ends a list of groups */
    const cli_option *options;
    size_t offset;
    bool fixed; /* not for cli_set_option */
} cli_option_group;

/* A word of the command line that is no flag. A flag may fill the same field in its place. */
typedef struct cli_operand {
    const char *name; /* "PROGRAM"; NULL ends a list */
    size_t offset;    /* of a const char * */
    bool required;
    const char *help;
} cli_operand;

typedef struct cli_example {
    const char *line; /* NULL ends a list */
    const char *what;
} cli_example;

typedef struct cli_command {
    const char *name;
    const char *summary;     /* one line without a full stop */
    const char *synopsis;    /* what follows the name, one line per form */
    const char *description; /* paragraphs, separated by a newline */
    const cli_operand *operands;
    const cli_operand *rest; /* the words after these, in a cli_words; NULL: there are none */
    const cli_option_group *groups;
    const cli_example *examples;
    size_t arguments_size; /* of the command's structure */
    int (*run)(void *arguments);
} cli_command;

typedef enum cli_parsed { CLI_PARSED, CLI_HELP_WANTED, CLI_WRONG } cli_parsed;

/* Reads the words after the command's name into arguments (zeroed by the caller). "--name=value" and
 * "-n12" work, "_" counts as "-" within long names, "--" ends the flags, and the last of repeated flags
 * counts. Fields that no word fills are filled by the environment (cli/options/environment.h); flags that
 * other programs have are met as cli/options/foreign.h says, and what is to be said of them is added to
 * notes, one line each. On CLI_WRONG error says what is wrong in one line. Free with cli_free_arguments in
 * any case. Strings are not copied: words and environment must outlive arguments. */
cli_parsed cli_parse(const cli_command *command, int count, char *const *words, void *arguments,
                     gb_byte_buffer *notes, gumbel_error *error);

/* Whether the CLI_FLAG of that name is set; false where the command has none. */
bool cli_flag_is_set(const cli_command *command, const void *arguments, const char *name);

/* Sets one option of the groups that are not fixed by its long name without the dashes, as a command inside
 * `chat` does. value is NULL where there is none, which empties a list of strings. On failure the option may
 * be half set: work on a copy. */
bool cli_set_option(const cli_option_group *groups, void *arguments, const char *name, const char *value,
                    gumbel_error *error);

void cli_free_arguments(const cli_command *command, void *arguments);

/* Steps through an option's names: *names moves on; the result is the name's length, 0 at the end. */
size_t cli_next_name(const char **names, const char **name);

/* The candidate that a mistyped word was most likely meant to be, or NULL. Candidates are words separated by
 * blanks; the result is copied into found. */
const char *cli_suggest(const char *word, const char *candidates, char *found, size_t capacity);

#endif
