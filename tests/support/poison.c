/* SPDX-License-Identifier: Apache-2.0 */
#include "support/poison.h"

#include "program/file/reader.h"
#include "program/program.h"
#include "support/programs/random_program.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const gb_constant *embedding_of(const gb_program *program) {
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (strstr(program->constants[i].name, "embed_tokens"))
            return &program->constants[i];
    fail_msg("the program has no embedding");
    return NULL;
}

/* Overwrites the first number of a token's row, which is float32 or bfloat16. */
static void write_nan(const char *path, const gb_constant *embedding, int32_t token) {
    static const uint32_t nan_bits = 0x7fc07fc0; /* of float32, and twice of bfloat16 */
    const size_t size = embedding->type.dtype == GB_F32 ? 4 : 2;
    const uint64_t row_bytes = (uint64_t)embedding->type.shape.dims[1] * size;
    const int file = open(path, O_WRONLY);
    assert_int_equal(pwrite(file, &nan_bits, size, (off_t)(embedding->offset + (uint64_t)token * row_bytes)),
                     size);
    close(file);
}

gumbel_program *open_poisoned_program(const char *config, int32_t token) {
    gumbel_error error;
    gumbel_program *program;
    gb_program *read;
    gumbel_program_close(open_random_program(config, false));
    assert_ok(gb_program_read(random_program_path(), &read, &error), &error);
    write_nan(random_program_path(), embedding_of(read), token);
    gb_program_destroy(read);
    assert_ok(gumbel_program_open(random_program_path(), &program, &error), &error);
    return program;
}
