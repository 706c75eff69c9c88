/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a program and reading it back; what becomes of the file when that fails.
 */
#include "base/memory.h"
#include "program/file/file_size.h"
#include "program/file/reader.h"
#include "program/file/writer.h"
#include "support/programs/program_file.h"
#include "support/programs/tiny_program.h"
#include "support/temporary.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A new empty directory and a path in it, removed by leave_directory. */
static char directory[512], target[512];

static int enter_directory(void **state) {
    (void)state;
    snprintf(target, sizeof target, "%s", temporary_path("written/tiny.gumbel"));
    const size_t length = strlen(target) - strlen("/tiny.gumbel");
    memcpy(directory, target, length);
    directory[length] = '\0';
    return 0;
}

static int leave_directory(void **state) {
    (void)state;
    unlink(target);
    return rmdir(directory); /* fails when a temporary file was left behind */
}

static int files_in_directory(void) {
    int count = 0;
    DIR *listing = opendir(directory);
    assert_non_null(listing);
    for (const struct dirent *entry; (entry = readdir(listing));)
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(listing);
    return count;
}

static gb_program *read_back(const char *path) {
    gb_program *program;
    gumbel_error error;
    if (gb_program_read(path, &program, &error) != GUMBEL_OK)
        fail_msg("%s", error.message);
    return program;
}

/* ---- Round trip ---------------------------------------------------------------------------------------- */

static void assert_same_nodes(const gb_program *a, const gb_program *b) {
    assert_int_equal(a->node_count, b->node_count);
    for (uint32_t i = 0; i < a->node_count; i++) {
        const gb_node *x = &a->nodes[i], *y = &b->nodes[i];
        assert_int_equal(x->op, y->op);
        assert_int_equal(x->operand_count, y->operand_count);
        assert_int_equal(x->attribute_count, y->attribute_count);
        assert_memory_equal(x->operands, y->operands, x->operand_count * sizeof(gb_ref));
        assert_memory_equal(x->results, y->results, x->result_count * sizeof(gb_ref));
        assert_memory_equal(x->regions, y->regions, sizeof x->regions);
        for (uint32_t j = 0; j < x->attribute_count; j++) {
            assert_int_equal(x->attributes[j].key, y->attributes[j].key);
            assert_int_equal(x->attributes[j].type, y->attributes[j].type);
            assert_int_equal(x->attributes[j].i, y->attributes[j].i);
        }
    }
}

static void assert_same_graph(const gb_program *a, const gb_program *b) {
    assert_int_equal(a->value_count, b->value_count);
    for (uint32_t i = 0; i < a->value_count; i++) {
        assert_int_equal(a->values[i].kind, b->values[i].kind);
        assert_int_equal(a->values[i].index, b->values[i].index);
        assert_true(gb_type_equal(&a->values[i].type, &b->values[i].type));
    }
    assert_same_nodes(a, b);
    assert_int_equal(a->region_count, b->region_count);
    for (uint32_t i = 0; i < a->region_count; i++) {
        assert_int_equal(a->regions[i].first_node, b->regions[i].first_node);
        assert_int_equal(a->regions[i].node_count, b->regions[i].node_count);
        assert_int_equal(a->regions[i].yields[0], b->regions[i].yields[0]);
    }
    assert_int_equal(a->state_count, b->state_count);
    for (uint32_t i = 0; i < a->state_count; i++) {
        assert_string_equal(a->states[i].name, b->states[i].name);
        assert_int_equal(a->states[i].kind, b->states[i].kind);
        assert_int_equal(a->states[i].window, b->states[i].window);
    }
    assert_int_equal(a->input_count, b->input_count);
    assert_memory_equal(a->inputs, b->inputs, a->input_count * sizeof(gb_binding));
    assert_memory_equal(a->outputs, b->outputs, a->output_count * sizeof(gb_binding));
}

static void assert_same_metadata(const gb_metadata *a, const gb_metadata *b) {
    assert_string_equal(a->architecture, b->architecture);
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->vocab_size, b->vocab_size);
    assert_int_equal(a->max_context, b->max_context);
    assert_int_equal(a->prefill_chunk, b->prefill_chunk);
    assert_int_equal(a->use_sampling, b->use_sampling);
    assert_int_equal(a->stop_tokens.count, b->stop_tokens.count);
    assert_memory_equal(a->stop_tokens.ids, b->stop_tokens.ids, a->stop_tokens.count * sizeof(int32_t));
    assert_true(b->has_bos_token && b->bos_token == a->bos_token);
    assert_true(b->has_top_p && b->top_p == a->top_p);
    assert_true(b->has_temperature && b->temperature == a->temperature);
    assert_false(b->has_recipe);
    assert_string_equal(b->recipe, "");
}

static void assert_predicted_size(const gb_program *program) {
    gb_file_size size;
    struct stat file;
    assert_true(gb_program_file_size(program, &size));
    assert_int_equal(stat(target, &file), 0);
    assert_int_equal(size.bytes, file.st_size);
}

static void what_is_written_is_read_back(void **state) {
    (void)state;
    gb_program *program = tiny_program_build(true);
    static const uint8_t tokenizer[] = {1, 2, 3};
    program->tokenizer = (gb_blob){tokenizer, sizeof tokenizer};
    gumbel_error error;
    if (tiny_program_write(program, target, &error) != GUMBEL_OK)
        fail_msg("%s", error.message);
    assert_predicted_size(program);
    gb_program *again = read_back(target);
    assert_same_graph(program, again);
    assert_same_metadata(&program->metadata, &again->metadata);
    assert_memory_equal(program->id, again->id, sizeof program->id);
    assert_int_equal(again->tokenizer.size, 3);
    assert_memory_equal(again->tokenizer.data, tokenizer, 3);
    assert_null(again->chat.data);
    for (uint32_t i = 0; i < again->constant_count; i++) {
        assert_string_equal(again->constants[i].name, program->constants[i].name);
        assert_int_equal((uintptr_t)again->constants[i].data % 64, 0);
    }
    float first;
    memcpy(&first, again->constants[0].data, sizeof first);
    assert_true(first > -0.5f && first < 0.5f);
    assert_int_equal(gb_check_weights(again, &error), GUMBEL_OK);
    gb_program_destroy(again);
    gb_program_destroy(program);
}

static void the_same_program_has_the_same_bytes(void **state) {
    (void)state;
    program_file a = tiny_program_file(true), b = tiny_program_file(true), c = tiny_program_file(false);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.bytes, b.bytes, (size_t)a.size);
    assert_memory_not_equal(a.bytes + GB_HEADER_ID, c.bytes + GB_HEADER_ID, 16);
    gb_free(a.bytes);
    gb_free(b.bytes);
    gb_free(c.bytes);
}

/* ---- With a draft head --------------------------------------------------------------------------------- */

/* Shared constants lie in one place, the head's own behind the program's. */
static void assert_placed(const gb_program *program) {
    const gb_program *head = program->head;
    const gb_constant *last = &program->constants[program->constant_count - 1];
    uint32_t shared = 0;
    for (uint32_t i = 0; i < head->constant_count; i++) {
        const gb_constant *constant = &head->constants[i];
        shared += constant->same != NULL;
        if (constant->same)
            assert_ptr_equal(constant->data, constant->same->data);
        else
            assert_true(constant->offset >= last->offset + last->size);
    }
    assert_int_equal(shared, 2); /* the embedding and the last norm */
}

static void a_head_is_read_back(void **state) {
    (void)state;
    gb_program *program = tiny_pair_build();
    static const uint8_t tokenizer[] = {1, 2, 3};
    program->tokenizer = (gb_blob){tokenizer, sizeof tokenizer};
    gumbel_error error;
    if (tiny_program_write(program, target, &error) != GUMBEL_OK)
        fail_msg("%s", error.message);
    assert_predicted_size(program);
    gb_program *again = read_back(target);
    assert_non_null(again->head);
    assert_same_graph(program->head, again->head);
    assert_same_metadata(&program->head->metadata, &again->head->metadata);
    assert_memory_equal(program->head->id, again->head->id, sizeof again->id);
    assert_memory_not_equal(again->id, again->head->id, sizeof again->id);
    assert_ptr_equal(again->head->tokenizer.data, again->tokenizer.data);
    assert_placed(again);
    assert_int_equal(gb_check_weights(again, &error), GUMBEL_OK);
    gb_program_destroy(again);
    gb_program_destroy(program);
}

/* The last is the head's own; the program's first is one that the head shares. */
static void a_heads_own_constants_are_awaited(void **state) {
    (void)state;
    gb_program *program = tiny_pair_build();
    const uint32_t own = program->constant_count;
    gb_writer *writer;
    gumbel_error error;
    assert_non_null(program->head->constants[0].same);
    assert_int_equal(gb_writer_create(target, NULL, program, &writer, &error), GUMBEL_OK);
    assert_int_equal(gb_writer_begin_constant(writer, own, &error), GUMBEL_ERROR_ARGUMENT);
    for (uint32_t i = 0; i < own; i++) {
        uint8_t *bytes = gb_allocate((size_t)program->constants[i].size, 1);
        assert_int_equal(gb_writer_begin_constant(writer, i, &error), GUMBEL_OK);
        assert_int_equal(gb_writer_write(writer, bytes, program->constants[i].size, &error), GUMBEL_OK);
        gb_free(bytes);
    }
    assert_int_equal(gb_writer_finish(writer, &error), GUMBEL_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "constants written"));
    gb_program_destroy(program);
}

/* ---- The writer ---------------------------------------------------------------------------------------- */

static void a_file_appears_only_when_whole(void **state) {
    (void)state;
    gb_program *program = tiny_program_build(false);
    gb_writer *writer;
    gumbel_error error;
    assert_int_equal(gb_writer_create(target, NULL, program, &writer, &error), GUMBEL_OK);
    assert_in_range(files_in_directory(), 0, 1); /* 0 where a file can be without a name until it is whole */
    assert_int_equal(access(target, F_OK), -1);
    gb_writer_abort(writer);
    assert_int_equal(files_in_directory(), 0);

    assert_int_equal(gb_writer_create(target, NULL, program, &writer, &error), GUMBEL_OK);
    assert_int_equal(gb_writer_finish(writer, &error), GUMBEL_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "0 constants written"));
    assert_int_equal(files_in_directory(), 0);
    gb_program_destroy(program);
}

static void the_writer_keeps_its_order(void **state) {
    (void)state;
    gb_program *program = tiny_program_build(false);
    uint32_t last = program->constant_count - 1;
    uint64_t size = program->constants[last].size;
    uint8_t *bytes = gb_allocate((size_t)size, 1);
    gb_writer *writer;
    gumbel_error error;
    assert_int_equal(gb_writer_create(target, NULL, program, &writer, &error), GUMBEL_OK);
    assert_int_equal(gb_writer_write(writer, bytes, 1, &error), GUMBEL_ERROR_ARGUMENT);
    assert_int_equal(gb_writer_begin_constant(writer, last + 1, &error), GUMBEL_ERROR_ARGUMENT);
    assert_int_equal(gb_writer_begin_constant(writer, last, &error), GUMBEL_OK);
    assert_int_equal(gb_writer_begin_constant(writer, 0, &error), GUMBEL_ERROR_ARGUMENT);
    assert_int_equal(gb_writer_write(writer, bytes, size + 1, &error), GUMBEL_ERROR_ARGUMENT);
    assert_int_equal(gb_writer_write(writer, bytes, size, &error), GUMBEL_OK);
    assert_int_equal(gb_writer_begin_constant(writer, last, &error), GUMBEL_ERROR_ARGUMENT);
    gb_writer_abort(writer);
    gb_free(bytes);
    gb_program_destroy(program);
}

static void targets_that_are_no_files_are_refused(void **state) {
    (void)state;
    gb_program *program = tiny_program_build(false);
    gb_writer *writer;
    gumbel_error error;
    assert_int_equal(gb_writer_create(directory, NULL, program, &writer, &error), GUMBEL_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, directory));
    assert_int_equal(gb_writer_create("/dev/null", NULL, program, &writer, &error), GUMBEL_ERROR_ARGUMENT);
    assert_int_equal(gb_writer_create("/tmp/", NULL, program, &writer, &error), GUMBEL_ERROR_ARGUMENT);
    assert_int_equal(gb_writer_create("/nowhere/x.gumbel", NULL, program, &writer, &error), GUMBEL_ERROR_IO);
    assert_non_null(strstr(error.message, "/nowhere/x.gumbel: cannot be written: "));
    assert_null(writer);
    gb_program_destroy(program);
}

/* A file that may not grow past its first page stands for a full disk. */
static void failed_writes_are_reported(void **state) {
    (void)state;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 4096, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    gb_program *program = tiny_program_build(true);
    gumbel_error error;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    gumbel_status status = tiny_program_write(program, target, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, GUMBEL_ERROR_IO);
    assert_non_null(strstr(error.message, target));
    assert_non_null(strstr(error.message, ": cannot be written: File too large"));
    assert_int_equal(files_in_directory(), 0);
    gb_program_destroy(program);
}

/* A weight that no disk holds: the numbers stand in the message, and not a byte is written for it. */
static void a_disk_without_room_is_reported_first(void **state) {
    (void)state;
    gb_program *program = tiny_program_build(true);
    gb_writer *writer;
    gumbel_error error;
    program->constants[0].size = UINT64_C(1) << 60;
    assert_int_equal(gb_writer_create(target, NULL, program, &writer, &error), GUMBEL_ERROR_LIMIT);
    assert_non_null(strstr(error.message, target));
    assert_non_null(strstr(error.message, ": it needs 1.2 EB, and its disk has "));
    assert_int_equal(strcmp(error.message + strlen(error.message) - 5, " free"), 0);
    assert_null(writer);
    assert_int_equal(files_in_directory(), 0);
    gb_program_destroy(program);
}

static bool count_down(void *user, size_t bytes) {
    int *left = user;
    (void)bytes;
    return (*left)-- > 0;
}

static void every_failed_allocation_is_reported(void **state) {
    (void)state;
    gb_program *program = tiny_program_build(true);
    gumbel_status status = GUMBEL_ERROR_MEMORY;
    for (int allowed = 0; status != GUMBEL_OK; allowed++) {
        int left = allowed;
        gb_set_allocation_hook(count_down, &left);
        status = tiny_program_write(program, target, NULL);
        gb_set_allocation_hook(NULL, NULL);
        assert_true(status == GUMBEL_OK || status == GUMBEL_ERROR_MEMORY);
        assert_int_equal(files_in_directory(), status == GUMBEL_OK);
    }
    gb_program_destroy(program);
}

static void an_older_file_is_replaced(void **state) {
    (void)state;
    gumbel_error error;
    for (int sampling = 0; sampling < 2; sampling++) {
        gb_program *program = tiny_program_build(sampling);
        assert_int_equal(tiny_program_write(program, target, &error), GUMBEL_OK);
        gb_program *again = read_back(target);
        assert_int_equal(again->metadata.use_sampling, sampling);
        gb_program_destroy(again);
        gb_program_destroy(program);
    }
    assert_int_equal(files_in_directory(), 1);
    struct stat information;
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat(target, &information), 0);
    assert_int_equal(information.st_mode & 0777, 0666 & ~mask);
}

int main(void) {
#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, enter_directory, leave_directory)
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(what_is_written_is_read_back),
        IN_DIRECTORY(a_head_is_read_back),
        IN_DIRECTORY(a_heads_own_constants_are_awaited),
        cmocka_unit_test(the_same_program_has_the_same_bytes),
        IN_DIRECTORY(a_file_appears_only_when_whole),
        IN_DIRECTORY(the_writer_keeps_its_order),
        IN_DIRECTORY(targets_that_are_no_files_are_refused),
        IN_DIRECTORY(a_disk_without_room_is_reported_first),
        IN_DIRECTORY(failed_writes_are_reported),
        IN_DIRECTORY(every_failed_allocation_is_reported),
        IN_DIRECTORY(an_older_file_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
