/* SPDX-License-Identifier: Apache-2.0
 *
 * What config.json says of GPTQ, AWQ and AutoRound, which writes either. Group sizes, and bits where modules
 * have other ones (`dynamic`, `extra_config`), are read from the tensors; so is which modules stay floats.
 */
#include "export/packed/quantization_methods.h"

#include <string.h>

void gb_config_expect_text(const gb_config *config, const char *key, const char *const *known, size_t count,
                           const char *expected) {
    const char *found = gb_config_string(config, key, known[0]);
    for (size_t i = 0; i < count; i++)
        if (strcmp(found, known[i]) == 0)
            return;
    gb_config_fail(config, key, GUMBEL_ERROR_UNSUPPORTED,
                   "\"%s\" is not supported in this version; expected %s", found, expected);
}

void gb_config_refuse_object(const gb_config *config, const char *key, const char *what) {
    gb_config object = gb_config_child(config, key);
    if (gb_config_next_key(&object, NULL))
        gb_config_fail(config, key, GUMBEL_ERROR_UNSUPPORTED,
                       "%s not supported in this version; expected null or {}", what);
}

static void check_bits(const gb_config *quantization, const char *key, bool may_be_8) {
    const int64_t bits = gb_config_integer(quantization, key, 4, 1, 64);
    if (bits != 4 && !(may_be_8 && bits == 8))
        gb_config_fail(quantization, key, GUMBEL_ERROR_UNSUPPORTED,
                       "%d is not supported in this version; expected %s", (int)bits,
                       may_be_8 ? "4 or 8" : "4");
}

void gb_quantization_read_gptq(const gb_config *quantization, gb_quantization *packing) {
    static const char *const formats[] = {"gptq", "gptq_v2"};
    const char *key = gb_config_has(quantization, "checkpoint_format") ? "checkpoint_format" : "format";
    packing->method = GB_QUANTIZATION_GPTQ;
    check_bits(quantization, "bits", true);
    gb_config_expect_text(quantization, key, formats, 2, "\"gptq\" or \"gptq_v2\"");
    gb_config_expect_text(quantization, "pack_dtype", (const char *const[]){"int32"}, 1, "\"int32\"");
    gb_config_refuse_object(quantization, "adapter", "adapters are");
    packing->zeros_are_less_one = strcmp(gb_config_string(quantization, key, formats[0]), formats[0]) == 0;
    packing->may_sort_columns = gb_config_bool(quantization, "desc_act", false);
}

/* `backend` is what to compute with, but for one that has a layout of its own. */
void gb_quantization_read_awq(const gb_config *quantization, gb_quantization *packing) {
    static const char *const versions[] = {"gemm", "GEMM"};
    packing->method = GB_QUANTIZATION_AWQ;
    check_bits(quantization, gb_config_has(quantization, "w_bit") ? "w_bit" : "bits", false);
    gb_config_expect_text(quantization, gb_config_has(quantization, "version") ? "version" : "format",
                          versions, 2, "\"gemm\"");
    if (strcmp(gb_config_string(quantization, "backend", "auto"), "llm-awq") == 0)
        gb_config_fail(quantization, "backend", GUMBEL_ERROR_UNSUPPORTED,
                       "\"llm-awq\" is not supported in this version; expected \"autoawq\" or \"auto\"");
}

/* Names that AutoRound has or had for the same layout. */
typedef struct packing_format {
    const char *name;
    gb_quantization_method method;
    bool zeros_are_less_one;
} packing_format;

static const packing_format FORMATS[] = {
    {"auto_round:auto_gptq", GB_QUANTIZATION_GPTQ, true},
    {"auto_round:gptq", GB_QUANTIZATION_GPTQ, true},
    {"gptq", GB_QUANTIZATION_GPTQ, true},
    {"auto_gptq", GB_QUANTIZATION_GPTQ, true},
    {"auto_round", GB_QUANTIZATION_GPTQ, false},
    {"auto_round:gptqmodel", GB_QUANTIZATION_GPTQ, false},
    {"auto_round:auto_awq", GB_QUANTIZATION_AWQ, false},
    {"auto_round:awq", GB_QUANTIZATION_AWQ, false},
    {"awq", GB_QUANTIZATION_AWQ, false},
    {"auto_awq", GB_QUANTIZATION_AWQ, false},
};

void gb_quantization_read_auto_round(const gb_config *quantization, gb_quantization *packing) {
    const char *name = gb_config_string(quantization, "packing_format", FORMATS[0].name);
    const packing_format *found = NULL;
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
        if (strcmp(name, FORMATS[i].name) == 0)
            found = &FORMATS[i];
    packing->method = found ? found->method : GB_QUANTIZATION_GPTQ;
    packing->zeros_are_less_one = found && found->zeros_are_less_one;
    if (!found)
        gb_config_fail(quantization, "packing_format", GUMBEL_ERROR_UNSUPPORTED,
                       "\"%s\" is not supported in this version; expected \"auto_round:auto_gptq\", "
                       "\"auto_round:auto_awq\", \"auto_round\" or \"auto_round:gptqmodel\"",
                       name);
    check_bits(quantization, "bits", packing->method == GB_QUANTIZATION_GPTQ);
    gb_config_expect_text(quantization, "data_type", (const char *const[]){"int"}, 1, "\"int\"");
    if (gb_config_integer(quantization, "act_bits", 16, 1, 64) < 16)
        gb_config_fail(quantization, "act_bits", GUMBEL_ERROR_UNSUPPORTED,
                       "quantized activations are not supported in this version; expected 16");
    gb_config_refuse_object(quantization, "rotation_config", "rotated weights are");
}
