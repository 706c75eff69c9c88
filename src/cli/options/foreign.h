/* SPDX-License-Identifier: Apache-2.0
 *
 * Flags that users know from llama.cpp, mlx-lm and others: the table foreign_flags.def says what each one
 * means here. A command's own flags come first.
 */
#ifndef GUMBEL_CLI_OPTIONS_FOREIGN_H
#define GUMBEL_CLI_OPTIONS_FOREIGN_H

#include <stddef.h>

typedef enum cli_foreign_kind {
    CLI_FOREIGN_NOTHING, /* accepted, with a note that it has no effect; text says why */
    CLI_FOREIGN_OURS,    /* text is the flag of ours that it stands for; where a command lacks that the row
                            does not count */
    CLI_FOREIGN_MISSING  /* refused; text says what to use instead */
} cli_foreign_kind;

typedef struct cli_foreign {
    const char *names; /* separated by blanks */
    const char *value; /* "": none; "N": any; "=on 1": one of these words, the row does not count for others;
                          "[on off]": one of them, or several with commas between, or none */
    cli_foreign_kind kind;
    const char *text; /* of OURS: "--lock all", or "--max-context %" where % is the value given */
} cli_foreign;

/* The next row after this one (NULL: the first) that has a name of length bytes, or NULL. */
const cli_foreign *cli_next_foreign(const cli_foreign *row, const char *name, size_t length);

typedef enum cli_foreign_value {
    CLI_FOREIGN_NO_VALUE,   /* the word is not the flag's */
    CLI_FOREIGN_VALUE,      /* the word is its value */
    CLI_FOREIGN_OTHER_VALUE /* the row is for other values */
} cli_foreign_value;

/* What the row has to do with a word that follows its flag; NULL: none follows. */
cli_foreign_value cli_foreign_takes(const cli_foreign *row, const char *word);

#endif
