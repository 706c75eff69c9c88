/* SPDX-License-Identifier: Apache-2.0 */
#include "tried_commands.h"

#include "bundled.h"
#include "cases.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_WORDS = 14 };

/* Of words, $NAME is a path; what it writes is the same every time. Without the sandbox, which refuses the
 * harness its file at the end. */
typedef struct tried_command {
    const char *words[MOST_WORDS], *input;
} tried_command;

static const tried_command commands[TRIED_COMMANDS] = {
    {{"--help"}, NULL},
    {{"inspect", "$GEMMA"}, NULL},
    {{"inspect", "$QWEN", "--graph"}, NULL},
    {{"tokenize", "$QWEN", "Why is the sky blue?"}, NULL},
    {{"run", "$GEMMA", "--no-sandbox", "Why?", "--seed", "7", "-n", "6", "--threads", "2"}, NULL},
    {{"run", "$QWEN", "--no-sandbox", "--seed", "7", "-n", "6", "--stop", "xyz", "--print-tokens"},
     "Why is the sky blue?"},
    {{"chat", "$GEMMA", "--seed", "7", "-n", "4"},
     "Hello!\n/regen\n/set top-k 5\n/save $SESSION\n/load $SESSION\n"},
    {{"logits", "$LOGITS", "--tokens", "2,17,99", "-o", "$NPY"}, NULL},
    {{"perplexity", "$LOGITS", "-f", "$TEXT"}, NULL},
    {{"run", "$GEMMA", "--no-sandbox", "Why?", "--seed", "7", "-n", "6", "--grammar-file", "$GRAMMAR"}, NULL},
    {{"inspect", "$CHECKPOINT"}, NULL}, /* out of the cache of programs */
    {{"export", "$CHECKPOINT", "-o", "$EXPORTED", "--quantize", "int4", "--layers", "4", "--quiet"}, NULL},
};

static const struct {
    const char *name, *file;
} paths[] = {{"$SESSION", "chat.session"},
             {"$NPY", "logits.npy"},
             {"$TEXT", "text.txt"},
             {"$EXPORTED", "exported.gumbel"},
             {"$GRAMMAR", "grammar.gbnf"}};

static const char *path_of(const char *word) {
    if (strcmp(word, "$GEMMA") == 0)
        return bundled_path(BUNDLED_GEMMA_INT4);
    if (strcmp(word, "$QWEN") == 0)
        return bundled_path(BUNDLED_QWEN);
    if (strcmp(word, "$LOGITS") == 0)
        return bundled_path(BUNDLED_QWEN_LOGITS);
    if (strcmp(word, "$CHECKPOINT") == 0)
        return bundled_model("gemma4-tiny");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strcmp(word, paths[i].name) == 0)
            return temporary_path(paths[i].file);
    return word;
}

/* The input with the session's path in it; valid until the next call. */
static const char *input_of(const tried_command *tried) {
    static char input[2048];
    const char *from = tried->input, *mark;
    if (!from)
        return NULL;
    input[0] = '\0';
    while ((mark = strstr(from, "$SESSION"))) {
        strncat(input, from, (size_t)(mark - from));
        strcat(input, path_of("$SESSION"));
        from = mark + strlen("$SESSION");
    }
    return strcat(input, from);
}

const char *name_of_command(size_t which) {
    return commands[which].words[0];
}

void prepare_commands(void) {
    export_bundled();
    hide_home();
    write_text(path_of("$TEXT"), "The sky is blue because the sea is.\n");
    write_text(path_of("$GRAMMAR"), "root ::= [a-z ]+ \".\"\n");
}

command_result run_tried(size_t which, const char *program) {
    const tried_command *tried = &commands[which];
    const char *words[MOST_WORDS + 2] = {program};
    for (size_t i = 0; i < MOST_WORDS && tried->words[i]; i++)
        words[i + 1] = path_of(tried->words[i]);
    unlink(path_of("$SESSION"));
    unlink(path_of("$EXPORTED"));
    unlink(path_of("$NPY"));
    return run_command(words, input_of(tried));
}
