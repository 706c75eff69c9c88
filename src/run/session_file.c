/* SPDX-License-Identifier: Apache-2.0
 *
 * Session files: one session's tokens, seed and state, for the program that made it. Little-endian:
 *
 *     magic "gumbelSF" | u32 version = 4 | u8[16] program id | u32 position | i32 pending token |
 *     u32 has seed | u64 seed | u64 seed counter | u32 generated from | i32 drawn token |
 *     u32 held | u32 rewound | i32 tokens[position] | u8 generated[position] | state bytes of the
 *     backend | u64 XXH3 of all before
 *
 * The states are those before the `held` last tokens, a prompt's that wait for the rest of their block.
 * generated is 1 for a token that continued an answer and 0 for one of a prompt, which a backend may compute
 * by other kernels.
 */
#include "base/output_file.h"
#include "run/drawn_ahead.h"

#define XXH_STATIC_LINKING_ONLY /* the hash's state on the stack: saving must not allocate */
#include <xxhash.h>

#include <string.h>

enum { SESSION_FILE_VERSION = 4, BUFFER_BYTES = 16384 };
static const char magic[8] = {'g', 'u', 'm', 'b', 'e', 'l', 'S', 'F'};

typedef struct session_header {
    char magic[8];
    uint32_t version;
    uint8_t program_id[16];
    uint32_t position;
    int32_t pending_token;
    uint32_t has_seed;
    uint64_t seed, seed_counter;
    uint32_t generated_from;
    int32_t drawn_token;
    uint32_t held;
    uint32_t is_rewound;
} session_header;

_Static_assert(sizeof(bool) == 1, "the marks of tokens are written as they stand");
_Static_assert(sizeof(session_header) == 72, "the header is written as it stands");

typedef struct session_writer {
    gb_output_file file;
    XXH3_state_t hash;
} session_writer;

static gumbel_status write_bytes(void *user, const void *data, uint64_t size, gumbel_error *error) {
    session_writer *writer = user;
    XXH3_64bits_update(&writer->hash, data, (size_t)size);
    return gb_output_write(&writer->file, data, size, error);
}

static gumbel_status write_session(const gumbel_session *session, session_writer *writer,
                                   gumbel_error *error) {
    session_header header = {
        .version = SESSION_FILE_VERSION,
        .position = session->position,
        .pending_token = session->pending_token,
        .has_seed = session->has_seed,
        .seed = session->seed,
        .seed_counter = session->seed_counter,
        .generated_from = session->generated_from,
        .drawn_token = session->drawn_token,
        .held = session->held,
        .is_rewound = session->is_rewound,
    };
    memcpy(header.magic, magic, sizeof magic);
    memcpy(header.program_id, session->engine->program->id, sizeof header.program_id);
    GB_TRY(write_bytes(writer, &header, sizeof header, error));
    GB_TRY(write_bytes(writer, session->tokens, session->position * sizeof *session->tokens, error));
    GB_TRY(write_bytes(writer, session->generated, session->position, error));
    gb_backend *backend = session->engine->backend;
    GB_TRY(backend->functions->save_slot(backend, session->slot, gb_session_run_position(session),
                                         GB_SAVED_ALL, write_bytes, writer, error));
    uint64_t checksum = XXH3_64bits_digest(&writer->hash);
    GB_TRY(write_bytes(writer, &checksum, sizeof checksum, error));
    return gb_output_commit(&writer->file, NULL, 0, error);
}

gumbel_status gumbel_session_save(const gumbel_session *session, const char *path, gumbel_error *error) {
    gb_session_settle(&session->engine->sessions[session->slot]);
    uint8_t buffer[BUFFER_BYTES];
    gb_file_id program = session->engine->program->map.id;
    const gb_input_list inputs = {.files = &program, .count = 1};
    session_writer writer;
    XXH3_64bits_reset(&writer.hash);
    gumbel_status status = gb_output_create(&writer.file, path, &inputs, buffer, sizeof buffer, error);
    if (status == GUMBEL_OK)
        status = write_session(session, &writer, error);
    gb_output_close(&writer.file);
    return status;
}

typedef struct session_reader {
    const uint8_t *data;
    uint64_t left;
} session_reader;

static gumbel_status read_bytes(void *user, void *data, uint64_t size, gumbel_error *error) {
    session_reader *reader = user;
    if (size > reader->left)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the state is %llu bytes short",
                       (unsigned long long)(size - reader->left));
    memcpy(data, reader->data, (size_t)size);
    reader->data += size;
    reader->left -= size;
    return GUMBEL_OK;
}

static gumbel_status check_token(int32_t token, int32_t least, uint64_t vocab_size, gumbel_error *error) {
    if (token < least || (int64_t)token >= (int64_t)vocab_size)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "token %d is not in the vocabulary", token);
    return GUMBEL_OK;
}

static gumbel_status check_marks(const uint8_t *generated, uint32_t count, gumbel_error *error) {
    for (uint32_t i = 0; i < count; i++)
        if (generated[i] > 1)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "token %u is marked %u: expected 0 or 1", i,
                           generated[i]);
    return GUMBEL_OK;
}

/* Everything that can be checked before the session is touched. Advances reader past the header. */
static gumbel_status check_file(const gumbel_session *session, session_reader *reader, session_header *header,
                                gumbel_error *error) {
    uint64_t checksum;
    if (reader->left < sizeof *header + sizeof checksum || memcmp(reader->data, magic, sizeof magic) != 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "not a session file");
    reader->left -= sizeof checksum;
    memcpy(&checksum, reader->data + reader->left, sizeof checksum);
    if (XXH3_64bits(reader->data, (size_t)reader->left) != checksum)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "truncated or corrupt: the checksum does not match");
    GB_TRY(read_bytes(reader, header, sizeof *header, error));
    const gumbel_engine *engine = session->engine;
    if (header->version != SESSION_FILE_VERSION)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "session file version %u: this version reads %d",
                       header->version, SESSION_FILE_VERSION);
    if (memcmp(header->program_id, engine->program->id, sizeof header->program_id) != 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "saved from another program, or with other caches (--cache)");
    if (header->position > engine->max_context)
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "%u positions: this engine's context holds %u",
                       header->position, engine->max_context);
    uint64_t vocab_size = engine->program->metadata.vocab_size;
    GB_TRY(check_token(header->pending_token, -1, vocab_size, error));
    GB_TRY(check_token(header->drawn_token, GB_ANY_TOKEN, vocab_size, error));
    if (header->generated_from > header->position)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "generated from position %u on: it ends at %u",
                       header->generated_from, header->position);
    if (header->held > header->position)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%u of %u tokens are to be run", header->held,
                       header->position);
    const uint64_t token_bytes = header->position * sizeof *session->tokens;
    if (token_bytes + header->position > reader->left)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "its tokens are missing");
    for (uint32_t i = 0; i < header->position; i++) {
        int32_t token;
        memcpy(&token, reader->data + i * sizeof token, sizeof token);
        GB_TRY(check_token(token, 0, vocab_size, error));
    }
    return check_marks(reader->data + token_bytes, header->position, error);
}

/* Tokens that were held when the file was written: an engine with other blocks may run some of them now. */
static gumbel_status run_held(gumbel_session *session, uint32_t count, gumbel_error *error) {
    return gb_session_run(session, session->tokens + session->position, count, NULL, error);
}

static gumbel_status load_state(gumbel_session *session, const session_header *header, session_reader *reader,
                                gumbel_error *error) {
    gb_backend *backend = session->engine->backend;
    GB_TRY(read_bytes(reader, session->tokens, header->position * sizeof *session->tokens, error));
    GB_TRY(read_bytes(reader, session->generated, header->position, error));
    const uint32_t run = header->position - header->held;
    GB_TRY(
        backend->functions->load_slot(backend, session->slot, run, GB_SAVED_ALL, read_bytes, reader, error));
    if (reader->left != 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%llu bytes more than the state needs",
                       (unsigned long long)reader->left);
    session->position = session->written_end = session->whole_position = run;
    GB_TRY(run_held(session, header->held, error));
    session->pending_token = header->pending_token;
    session->generated_from = header->generated_from;
    session->drawn_token = header->drawn_token;
    session->is_rewound = header->is_rewound != 0;
    session->has_seed = header->has_seed != 0;
    session->seed = header->seed;
    session->seed_counter = header->seed_counter;
    return GUMBEL_OK;
}

gumbel_status gumbel_session_load(gumbel_session *session, const char *path, gumbel_error *error) {
    gb_file_map map;
    GB_TRY(gb_map_file(path, &map, error));
    session_reader reader = {map.data, map.size};
    session_header header;
    gumbel_status status = check_file(session, &reader, &header, error);
    if (status == GUMBEL_OK) {
        gb_session_clear(session);
        status = load_state(session, &header, &reader, error);
        if (status != GUMBEL_OK)
            gb_session_clear(session);
    }
    gb_unmap_file(&map);
    return status == GUMBEL_OK ? status : gb_prefix(error, status, "%s", path);
}
