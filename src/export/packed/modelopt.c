/* SPDX-License-Identifier: Apache-2.0
 *
 * What NVIDIA's modelopt says of its 8-bit floats and NVFP4: in config.json or, of older checkpoints, in
 * hf_quant_config.json alone. Which modules stay floats is known by their tensors.
 */
#include "base/memory.h"
#include "export/checkpoint/checkpoint.h"
#include "export/packed/quantization_methods.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { NVFP4_GROUP = 16, FP8_BLOCK = 128 };

/* Blocks have a size that nothing says: modelopt writes no other. It spells their algorithms in small
 * letters.
 */
static const struct {
    const char *name;
    bool is_nvfp4, has_blocks;
} ALGORITHMS[] = {{.name = "FP8"},
                  {.name = "FP8_PER_CHANNEL_PER_TOKEN"},
                  {.name = "FP8_PB_WO", .has_blocks = true},
                  {.name = "FP8_PB_REAL", .has_blocks = true},
                  {.name = "NVFP4", .is_nvfp4 = true},
                  {.name = "W4A16_NVFP4", .is_nvfp4 = true}};
enum { ALGORITHM_COUNT = sizeof ALGORITHMS / sizeof *ALGORITHMS };

static void read_nvfp4(const gb_config *settings, gb_quantization *packing) {
    packing->method = GB_QUANTIZATION_NVFP4;
    packing->fp4_codes = ".weight";
    packing->fp4_global = ".weight_scale_2";
    if (gb_config_integer(settings, "group_size", NVFP4_GROUP, 0, 1 << 20) != NVFP4_GROUP)
        gb_config_fail(settings, "group_size", GUMBEL_ERROR_UNSUPPORTED, "expected %d", NVFP4_GROUP);
}

static void refuse_true(const gb_config *settings, const char *key, const char *what) {
    if (gb_config_bool(settings, key, false))
        gb_config_fail(settings, key, GUMBEL_ERROR_UNSUPPORTED,
                       "%s not supported in this version; expected false", what);
}

static void read_fp8(bool has_blocks, gb_quantization *packing) {
    packing->method = GB_QUANTIZATION_FP8;
    packing->fp8_scales = "_scale";
    packing->fp8_block[0] = packing->fp8_block[1] = has_blocks ? FP8_BLOCK : 0;
}

static void refuse_algorithm(const gb_config *settings, const char *algorithm) {
    gb_config_fail(settings, "quant_algo", GUMBEL_ERROR_UNSUPPORTED,
                   "\"%s\" is not supported in this version; expected \"FP8\", "
                   "\"FP8_PER_CHANNEL_PER_TOKEN\", \"FP8_PB_WO\", \"FP8_PB_REAL\", \"NVFP4\" or "
                   "\"W4A16_NVFP4\"",
                   algorithm);
}

static void read_algorithm(const gb_config *settings, gb_quantization *packing) {
    const char *algorithm = gb_config_string(settings, "quant_algo", "");
    size_t at = 0;
    while (at < ALGORITHM_COUNT && strcasecmp(algorithm, ALGORITHMS[at].name) != 0)
        at++;
    if (at == ALGORITHM_COUNT)
        refuse_algorithm(settings, algorithm);
    else if (ALGORITHMS[at].is_nvfp4)
        read_nvfp4(settings, packing);
    else
        read_fp8(ALGORITHMS[at].has_blocks, packing);
}

/* Caches may be all that is quantized: weights are then plain, and no algorithm is named. */
static bool has_caches_alone(const gb_config *settings) {
    return !gb_config_has(settings, "quant_algo") &&
           (gb_config_has(settings, "kv_cache_quant_algo") || gb_config_has(settings, "kv_cache_scheme"));
}

void gb_quantization_read_modelopt(const gb_config *quantization, gb_quantization *packing) {
    const gb_config nested = gb_config_child(quantization, "quantization");
    const gb_config *settings = gb_config_has(quantization, "quantization") ? &nested : quantization;
    *packing = (gb_quantization){.leaves_input_scales = true};
    if (has_caches_alone(settings))
        return;
    if (!gb_config_has(settings, "quant_algo"))
        gb_config_fail(settings, "quant_algo", GUMBEL_ERROR_FORMAT, "is missing");
    read_algorithm(settings, packing);
    refuse_true(settings, "has_zero_point", "zero points of floats are");
    refuse_true(settings, "pre_quant_scale", "scaled inputs are");
    gb_config_refuse_object(settings, "quantized_layers", "layers with settings of their own are");
    gb_config_refuse_object(settings, "transform_config", "rotated weights are");
}

static gumbel_status read_file(const char *path, gb_quantization *packing, gumbel_error *error) {
    static const char *const producers[] = {"modelopt"};
    gb_config_file *file = NULL;
    GB_TRY(gb_config_open(path, &file, error));
    const gb_config root = gb_config_root(file), producer = gb_config_child(&root, "producer");
    gb_config_expect_text(&producer, "name", producers, 1, "\"modelopt\"");
    gb_quantization_read_modelopt(&root, packing); /* which keeps nothing of the file */
    const gumbel_status status = gb_config_status(file, error);
    gb_config_close(file);
    return status;
}

gumbel_status gb_quantization_read_beside(const char *directory, gb_quantization *packing,
                                          gumbel_error *error) {
    struct stat information;
    gumbel_status status = GUMBEL_OK;
    char *path = gb_join_path(directory, "hf_quant_config.json");
    if (!path)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for its file names", directory);
    if (stat(path, &information) == 0)
        status = read_file(path, packing, error);
    else if (errno != ENOENT)
        status = gb_fail_errno(error, errno, "%s", path);
    gb_free(path);
    return status;
}
