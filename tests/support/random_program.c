/* SPDX-License-Identifier: Apache-2.0 */
#include "support/random_program.h"

#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

const char *random_program_path(void) {
    return temporary_path("random.gumbel");
}

gumbel_program *open_random_program(const char *config, bool logits) {
    return open_quantized_program(config, NULL, logits);
}

gumbel_program *open_quantized_program(const char *config, const char *recipe, bool logits) {
    char source[512];
    gumbel_error error;
    gumbel_program *program;
    const char *path = random_program_path();
    snprintf(source, sizeof source, "%s/run/%s", GUMBEL_TEST_DATA, config);
    gumbel_export_options options = {.size = sizeof options,
                                     .random_weights = true,
                                     .random_seed = 5,
                                     .logits = logits,
                                     .quantize = recipe};
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
