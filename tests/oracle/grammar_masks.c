/* SPDX-License-Identifier: Apache-2.0
 *
 * Masks of a grammar, for scripts that compare or time them:
 *
 *     grammar_masks VOCABULARY [END_TOKEN...]
 *
 * VOCABULARY has each token as four bytes of size (little-endian) and its bytes; size 0: a special token.
 * Commands come on standard input, one a line, and each is answered by one line:
 *
 *     regex SIZE | gbnf SIZE | choices SIZE | json | schema SIZE | schema-in-order SIZE
 *                        then SIZE bytes: "ok NANOSECONDS" or "error MESSAGE"; the last as llguidance has it
 *     text SIZE          then SIZE bytes: whether they are all of an answer, by a matcher of their own: "1"
 * or "0" token ID           "1" or "0": accepted or not; then NANOSECONDS rollback COUNT     "1" or "0" mask
 * "mask NANOSECONDS", then the words state              "may_end forced WHERE" again              a new
 * matcher of the same grammar: "ok NANOSECONDS" clone              goes on with a clone: likewise
 */
#include "base/memory.h"
#include "grammar/common/common.h"
#include "grammar/gbnf/gbnf.h"
#include "grammar/matcher.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct tool {
    gb_token_trie *trie;
    uint32_t end_tokens[16];
    size_t end_token_count;
    gb_grammar *grammar;
    gb_matcher *matcher;
    uint32_t *words;
} tool;

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static char *read_all(FILE *file, size_t size) {
    char *text = gb_allocate(size + 1, 1);
    if (!text || fread(text, 1, size, file) != size)
        exit(2);
    return text;
}

static gb_token_trie *read_vocabulary(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        exit(2);
    size_t size = (size_t)ftell(file), count = 0;
    rewind(file);
    uint8_t *data = (uint8_t *)read_all(file, size);
    fclose(file);
    gb_token_bytes *tokens = gb_allocate(size / 4, sizeof *tokens);
    for (size_t at = 0; at + 4 <= size && tokens; count++) {
        uint32_t length;
        memcpy(&length, data + at, 4);
        tokens[count] = (gb_token_bytes){data + at + 4, length};
        at += 4 + (size_t)length;
    }
    gb_token_trie *trie;
    if (!tokens || gb_token_trie_create(tokens, count, &trie, NULL) != GUMBEL_OK)
        exit(2);
    gb_free(tokens);
    gb_free(data);
    return trie;
}

static gb_expression read_choices(gb_expressions *expressions, char *text, size_t size) {
    const char *texts[1000];
    size_t sizes[1000], count = 0;
    for (char *at = text; at < text + size && count < 1000; count++) {
        texts[count] = at;
        sizes[count] = strcspn(at, "\n");
        at += sizes[count] + 1;
    }
    return gb_express_choices(expressions, texts, sizes, count);
}

static gumbel_status read_expression(gb_expressions *expressions, const char *kind, char *text, size_t size,
                                     gb_expression *root, gumbel_error *error) {
    const gb_schema_options in_order = {.in_order = true, .longest_space = GB_NO_END};
    gb_regex regex = {0};
    gumbel_status status = GUMBEL_OK;
    *root = 0;
    if (strcmp(kind, "regex") == 0)
        status = gb_read_regex(expressions, text, size, NULL, &regex, error);
    else if (strcmp(kind, "schema") == 0)
        *root = gb_schema_express_text(expressions, text, size, NULL, error);
    else if (strcmp(kind, "schema-in-order") == 0)
        *root = gb_schema_express_text(expressions, text, size, &in_order, error);
    else if (strcmp(kind, "gbnf") == 0)
        status = gb_read_gbnf(expressions, text, size, NULL, root, error);
    else if (strcmp(kind, "choices") == 0)
        *root = read_choices(expressions, text, size);
    else
        *root = gb_express_any_json(expressions);
    *root = *root ? *root : regex.expression;
    return status == GUMBEL_OK ? gb_expressions_error(expressions, error) : status;
}

static gumbel_status make_matcher(tool *on, gumbel_error *error) {
    gb_matcher_options options = {.end_tokens = on->end_tokens, .end_token_count = on->end_token_count};
    gb_matcher_destroy(on->matcher);
    on->matcher = NULL;
    return gb_matcher_create(on->grammar, on->trie, &options, &on->matcher, error);
}

static void answer(gumbel_status status, const gumbel_error *error, long long start) {
    if (status == GUMBEL_OK)
        printf("ok %lld\n", now() - start);
    else
        printf("error %s\n", error->message);
}

static void set_grammar(tool *on, const char *kind, size_t size) {
    char *text = read_all(stdin, size);
    gumbel_error error;
    gb_expression root;
    gb_matcher_destroy(on->matcher);
    gb_grammar_destroy(on->grammar);
    on->matcher = NULL;
    on->grammar = NULL;
    long long start = now();
    gb_expressions *expressions = gb_expressions_create();
    gb_watch watch = {.seconds = 10};
    gb_watch_begin(&watch);
    gb_expressions_watch(expressions, &watch);
    gumbel_status status = read_expression(expressions, kind, text, size, &root, &error);
    if (status == GUMBEL_OK)
        status = gb_grammar_compile(expressions, root, NULL, &on->grammar, &error);
    gb_expressions_destroy(expressions);
    if (status == GUMBEL_OK)
        status = make_matcher(on, &error);
    answer(status, &error, start);
    gb_free(text);
}

static void write_mask(tool *on) {
    gumbel_error error;
    long long start = now();
    gumbel_status status = gb_matcher_mask(on->matcher, on->words, &error);
    long long time = now() - start;
    if (status != GUMBEL_OK)
        memset(on->words, 0, on->trie->word_count * sizeof *on->words);
    printf("mask %lld\n", time);
    fwrite(on->words, sizeof *on->words, on->trie->word_count, stdout);
}

static void accept_token(tool *on, uint32_t token) {
    long long start = now();
    bool accepted = gb_matcher_accept_token(on->matcher, token);
    printf("%d %lld\n", accepted, now() - start);
}

static bool takes_all(gb_matcher *matcher, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (!gb_matcher_accept_byte(matcher, (uint8_t)text[i]))
            return false;
    return gb_matcher_may_end(matcher);
}

static void judge_text(tool *on, size_t size) {
    char *text = read_all(stdin, size);
    gb_matcher *matcher = NULL;
    gumbel_error error;
    gumbel_status status = on->grammar ? gb_matcher_create(on->grammar, NULL, NULL, &matcher, &error)
                                       : gb_fail(&error, GUMBEL_ERROR_ARGUMENT, "no grammar");
    const bool is_answer = status == GUMBEL_OK && takes_all(matcher, text, size);
    if (status == GUMBEL_OK)
        status = gb_matcher_error(matcher, &error);
    if (status == GUMBEL_OK)
        printf("%d\n", is_answer);
    else
        printf("error %s\n", error.message);
    gb_matcher_destroy(matcher);
    gb_free(text);
}

static void write_state(tool *on) {
    char where[300];
    gb_matcher_where(on->matcher, where, sizeof where);
    printf("%d %d %s\n", gb_matcher_may_end(on->matcher), gb_matcher_forced(on->matcher, true), where);
}

static void go_on_with_clone(tool *on) {
    gb_matcher *clone;
    gumbel_error error;
    long long start = now();
    gumbel_status status = gb_matcher_clone(on->matcher, &clone, &error);
    if (status == GUMBEL_OK) {
        gb_matcher_destroy(on->matcher);
        on->matcher = clone;
    }
    answer(status, &error, start);
}

static void run(tool *on, const char *command, unsigned long number) {
    gumbel_error error;
    if (strcmp(command, "token") == 0)
        accept_token(on, (uint32_t)number);
    else if (strcmp(command, "text") == 0)
        judge_text(on, number);
    else if (strcmp(command, "rollback") == 0)
        printf("%d\n", gb_matcher_rollback(on->matcher, number));
    else if (strcmp(command, "mask") == 0)
        write_mask(on);
    else if (strcmp(command, "state") == 0)
        write_state(on);
    else if (strcmp(command, "clone") == 0)
        go_on_with_clone(on);
    else if (strcmp(command, "again") == 0)
        answer(make_matcher(on, &error), &error, now());
    else
        set_grammar(on, command, number);
    fflush(stdout);
}

int main(int argument_count, char **arguments) {
    tool on = {0};
    if (argument_count < 2)
        return 2;
    on.trie = read_vocabulary(arguments[1]);
    on.words = gb_allocate(on.trie->word_count, sizeof *on.words);
    for (int i = 2; i < argument_count && i < 18; i++)
        on.end_tokens[on.end_token_count++] = (uint32_t)strtoul(arguments[i], NULL, 10);
    char line[100];
    while (on.words && fgets(line, sizeof line, stdin)) {
        char command[32] = "";
        unsigned long number = 0;
        sscanf(line, "%31s %lu", command, &number);
        run(&on, command, number);
    }
    gb_matcher_destroy(on.matcher);
    gb_grammar_destroy(on.grammar);
    gb_token_trie_destroy(on.trie);
    gb_free(on.words);
    return 0;
}
