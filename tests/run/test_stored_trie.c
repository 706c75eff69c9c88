/* SPDX-License-Identifier: Apache-2.0
 *
 * The trie that a program stores: it is the one that its tokenizer makes, and what is damaged is an error of
 * the grammar that needs it.
 */
#include "base/memory.h"
#include "run/handles.h"
#include "support/assertions.h"
#include "support/paths.h"
#include "support/temporary.h"
#include "text/trie/section.h"
#include "text/trie/tokenizer_trie.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static gumbel_error error;

typedef struct opened {
    gumbel_program *program;
    gb_program graph; /* the same with another trie */
    uint8_t *copy;    /* of the stored one, to be damaged */
    gumbel_program changed;
} opened;

static int open_program(void **state) {
    static opened o;
    const char *path = temporary_path("trie.gumbel");
    assert_ok(gumbel_export(bundled_model("gemma4-tiny"), path, NULL, &error), &error);
    assert_ok(gumbel_program_open(path, &o.program, &error), &error);
    o.graph = *o.program->program;
    assert_non_null(o.graph.trie.data);
    o.copy = gb_allocate(o.graph.trie.size, 1);
    assert_non_null(o.copy);
    memcpy(o.copy, o.graph.trie.data, (size_t)o.graph.trie.size);
    o.graph.trie.data = o.copy;
    o.changed = *o.program;
    o.changed.program = &o.graph;
    *state = &o;
    return 0;
}

static int close_program(void **state) {
    opened *o = *state;
    gb_free(o->copy);
    gumbel_program_close(o->program);
    return 0;
}

static const gb_token_trie *trie_of(gumbel_tokenizer *tokenizer) {
    const gb_token_trie *trie;
    assert_ok(gb_tokenizer_trie(tokenizer, &trie, &error), &error);
    return trie;
}

static void test_it_is_what_the_tokenizer_makes(void **state) {
    const opened *o = *state;
    gb_byte_buffer made = {0};
    gumbel_tokenizer *tokenizer;
    assert_ok(gumbel_tokenizer_create(o->program, &tokenizer, &error), &error);
    assert_ok(gb_write_tokenizer_trie(tokenizer, &made, &error), &error);
    const gb_blob *stored = &o->program->program->trie;
    assert_int_equal(made.size, stored->size);
    assert_memory_equal(made.data, stored->data, made.size);
    assert_ptr_equal(trie_of(tokenizer)->nodes, stored->data + sizeof(gb_trie_header));
    gb_buffer_free(&made);
    gumbel_tokenizer_destroy(tokenizer);
}

static gumbel_status compile_with(const opened *o) {
    const gumbel_grammar_options options = {
        .size = sizeof options, .kind = GUMBEL_GRAMMAR_REGEX, .text = "a+"};
    gumbel_tokenizer *tokenizer;
    gumbel_grammar *grammar;
    assert_ok(gumbel_tokenizer_create(&o->changed, &tokenizer, &error), &error);
    const gumbel_status status = gumbel_grammar_create(tokenizer, &options, &grammar, &error);
    gumbel_grammar_destroy(grammar);
    gumbel_tokenizer_destroy(tokenizer);
    return status;
}

static void test_a_damaged_one_is_an_error(void **state) {
    opened *o = *state;
    gb_trie_header *header = (gb_trie_header *)(void *)o->copy;
    header->node_count++;
    assert_int_equal(compile_with(o), GUMBEL_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "token trie: its arrays do not fill it"));
    header->node_count--;
    assert_ok(compile_with(o), &error);
}

static void test_that_of_fewer_tokens_is_an_error(void **state) {
    opened *o = *state;
    o->graph.metadata.vocab_size += 32;
    assert_int_equal(compile_with(o), GUMBEL_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "tokens, the tokenizer "));
    o->graph.metadata.vocab_size -= 32;
}

static void test_another_version_or_none_is_made_anew(void **state) {
    opened *o = *state;
    gb_trie_header *header = (gb_trie_header *)(void *)o->copy;
    const gb_blob stored = o->graph.trie;
    header->version++;
    assert_ok(compile_with(o), &error);
    header->version--;
    o->graph.trie = (gb_blob){0};
    assert_ok(compile_with(o), &error);
    o->graph.trie = stored;
}

static void test_minimal_programs_store_none(void **state) {
    (void)state;
    const char *path = temporary_path("minimal.gumbel");
    const gumbel_export_options export = {.size = sizeof export, .sampler = "minimal"};
    gumbel_program *program;
    assert_ok(gumbel_export(bundled_model("gemma4-tiny"), path, &export, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    assert_null(program->program->trie.data);
    gumbel_program_close(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_what_the_tokenizer_makes),
        cmocka_unit_test(test_a_damaged_one_is_an_error),
        cmocka_unit_test(test_that_of_fewer_tokens_is_an_error),
        cmocka_unit_test(test_another_version_or_none_is_made_anew),
        cmocka_unit_test(test_minimal_programs_store_none),
    };
    return cmocka_run_group_tests(tests, open_program, close_program);
}
