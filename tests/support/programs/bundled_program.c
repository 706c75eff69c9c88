/* SPDX-License-Identifier: Apache-2.0 */
#include "support/programs/bundled_program.h"

#include "support/assertions.h"
#include "support/paths.h"
#include "support/temporary.h"

gumbel_program *open_bundled_program(const char *model, const char *quantize) {
    gumbel_error error;
    gumbel_program *program;
    const char *path = temporary_path("bundled.gumbel");
    const gumbel_export_options options = {.size = sizeof options, .quantize = quantize};
    assert_ok(gumbel_export(bundled_model(model), path, &options, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    return program;
}
