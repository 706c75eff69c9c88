/* SPDX-License-Identifier: Apache-2.0
 *
 * Session files of a small program, with the program's id and a checksum that fits: any bytes, or a file that
 * was saved with some bytes changed or cut off. Refused, or the session goes on from it and saves what it
 * loads again.
 */
#include "support/programs/random_program.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VOCAB = 160, MOST_BYTES = 1 << 20, MOST_TOKENS = 8, ID_AT = 12, ID = 16, SUM = sizeof(uint64_t) };
enum { IS_SAVED = 1, IS_CUT = 2 };

typedef struct saved_file {
    uint8_t *bytes;
    size_t size;
} saved_file;

static gumbel_program *program;
static gumbel_engine *engine;
static gumbel_session *session;
static saved_file saved[MOST_TOKENS]; /* sessions of one token and more */

static void require(gumbel_status status, const gumbel_error *error) {
    if (status == GUMBEL_OK)
        return;
    fprintf(stderr, "%s\n", error->message);
    abort();
}

static saved_file read_whole(const char *path) {
    saved_file file = {malloc(MOST_BYTES), 0};
    FILE *stream = fopen(path, "rb");
    if (!stream || !file.bytes)
        abort();
    file.size = fread(file.bytes, 1, MOST_BYTES, stream);
    fclose(stream);
    return file;
}

static void save_each(void) {
    gumbel_error error;
    const char *path = temporary_path("saved.session");
    for (int32_t i = 0; i < MOST_TOKENS; i++) {
        const int32_t token = 3 + i;
        require(gumbel_session_append(session, &token, 1, &error), &error);
        require(gumbel_session_save(session, path, &error), &error);
        saved[i] = read_whole(path);
    }
}

static void begin(void) {
    const gumbel_engine_options options = {
        .size = sizeof options, .slots = 1, .threads = 1, .max_context = 32};
    gumbel_error error;
    program = open_random_program("small.json", false);
    require(gumbel_engine_create(program, &options, &engine, &error), &error);
    require(gumbel_session_create(engine, &session, &error), &error);
    save_each();
}

/* Offset and value, three bytes each; at last there may be the size to cut the file to. */
static size_t damage(uint8_t *bytes, size_t file_size, bool is_cut, const uint8_t *data, size_t size) {
    for (; size >= 3; data += 3, size -= 3)
        bytes[(data[0] | (size_t)data[1] << 8) % file_size] = data[2];
    return is_cut && size == 2 ? (data[0] | (size_t)data[1] << 8) % file_size : file_size;
}

static void fit(uint8_t *bytes, size_t size) {
    if (size < ID_AT + ID + SUM)
        return;
    memcpy(bytes + ID_AT, saved[0].bytes + ID_AT, ID);
    const uint64_t checksum = XXH3_64bits(bytes, size - SUM);
    memcpy(bytes + size - SUM, &checksum, SUM);
}

static void go_on(const char *path) {
    static const int32_t tokens[] = {5, 6};
    gumbel_error error;
    gumbel_result result = {.size = sizeof result};
    const int32_t *held;
    const uint32_t position = gumbel_session_position(session, &held);
    for (uint32_t i = 0; i < position; i++)
        if (held[i] < 0 || held[i] >= VOCAB)
            abort();
    require(gumbel_session_save(session, path, &error), &error);
    require(gumbel_session_load(session, path, &error), &error);
    const gumbel_request request = {
        .size = sizeof request, .session = session, .tokens = tokens, .token_count = 2, .result = &result};
    (void)gumbel_step(engine, &request, 1, &error); /* it may be full */
    gumbel_session_reset(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1 || size > MOST_BYTES)
        return 0;
    if (!session)
        begin();
    const uint8_t flags = data[0];
    const saved_file *file = &saved[flags / 4 % MOST_TOKENS];
    const bool is_saved = flags & IS_SAVED;
    size_t length = is_saved ? file->size : size - 1;
    uint8_t *bytes = malloc(length + 1);
    if (!bytes)
        return 0;
    memcpy(bytes, is_saved ? file->bytes : data + 1, length);
    if (is_saved)
        length = damage(bytes, length, flags & IS_CUT, data + 1, size - 1);
    fit(bytes, length);
    const char *path = temporary_path("fuzz.session");
    gumbel_error error;
    write_file(path, bytes, length);
    const gumbel_status status = gumbel_session_load(session, path, &error);
    if (status == GUMBEL_OK)
        go_on(path);
    else if (error.status != status || !error.message[0])
        abort();
    free(bytes);
    return 0;
}
