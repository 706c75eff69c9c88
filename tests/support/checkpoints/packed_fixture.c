/* SPDX-License-Identifier: Apache-2.0 */
#include "support/checkpoints/packed_fixture.h"

#include "support/assertions.h"
#include "support/checkpoints/safetensors_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

packed_fixture open_packed_fixture(const char *config, const char *header, size_t data_size) {
    packed_fixture f = {0};
    gumbel_error error;
    char text[2048];
    assert_true(strlen(header) < sizeof text);
    for (size_t i = 0; i <= strlen(header); i++)
        text[i] = header[i] == '\'' ? '"' : header[i];
    f.bytes = make_safetensors(text, data_size, &f.size);
    f.data_begin = f.size - data_size;
    assert_ok(gb_checkpoint_parse("file", f.bytes, f.size, &f.checkpoint, &error), &error);
    json_t *root = json_loads(config, 0, NULL);
    assert_ok(gb_config_from_json("config.json", root, &f.config, &error), &error);
    json_decref(root);
    gb_config object = gb_config_root(f.config);
    assert_ok(gb_quantization_read(&object, &f.packing, &error), &error);
    return f;
}

void close_packed_fixture(packed_fixture *f) {
    gb_checkpoint_close(f->checkpoint);
    gb_config_close(f->config);
    free(f->bytes);
}
