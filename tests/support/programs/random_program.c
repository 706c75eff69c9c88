/* SPDX-License-Identifier: Apache-2.0 */
#include "support/programs/random_program.h"
#include "support/paths.h"

#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

const char *random_program_path(void) {
    return temporary_path("random.gumbel");
}

gumbel_program *open_random_program(const char *config, bool logits) {
    return export_random_program(config, (gumbel_export_options){.logits = logits});
}

gumbel_program *export_random_program(const char *config, gumbel_export_options options) {
    char source[512];
    gumbel_error error;
    gumbel_program *program;
    const char *path = random_program_path();
    snprintf(source, sizeof source, "%s/run/%s", test_data_folder, config);
    options.size = sizeof options;
    options.random_weights = true;
    options.random_seed = 5;
    assert_ok(gumbel_export(source, path, &options, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    return program;
}

void random_tokens(uint32_t seed, uint32_t vocab_size, int32_t *tokens, size_t count) {
    uint64_t state = seed * 2654435761u + 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        tokens[i] = (int32_t)((state >> 33) % vocab_size);
    }
}
