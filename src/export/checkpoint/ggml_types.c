/* SPDX-License-Identifier: Apache-2.0 */
#include "export/checkpoint/ggml_types.h"

/* Types that no program can hold are here for their sizes: the tensors after them are to be found, and the
 * message about them has a name. Numbers that are missing were withdrawn. */
static const gb_ggml_type TYPES[] = {
    {GB_GGML_F32, "F32", 1, 4, GB_F32},
    {GB_GGML_F16, "F16", 1, 2, GB_F16},
    {GB_GGML_Q4_0, "Q4_0", 32, 18, GB_DTYPE_NONE},
    {GB_GGML_Q4_1, "Q4_1", 32, 20, GB_DTYPE_NONE},
    {GB_GGML_Q5_0, "Q5_0", 32, 22, GB_DTYPE_NONE},
    {GB_GGML_Q5_1, "Q5_1", 32, 24, GB_DTYPE_NONE},
    {GB_GGML_Q8_0, "Q8_0", 32, 34, GB_DTYPE_NONE},
    {9, "Q8_1", 32, 36, GB_DTYPE_NONE},
    {10, "Q2_K", 256, 84, GB_DTYPE_NONE},
    {11, "Q3_K", 256, 110, GB_DTYPE_NONE},
    {GB_GGML_Q4_K, "Q4_K", 256, 144, GB_DTYPE_NONE},
    {GB_GGML_Q5_K, "Q5_K", 256, 176, GB_DTYPE_NONE},
    {GB_GGML_Q6_K, "Q6_K", 256, 210, GB_DTYPE_NONE},
    {15, "Q8_K", 256, 292, GB_DTYPE_NONE},
    {16, "IQ2_XXS", 256, 66, GB_DTYPE_NONE},
    {17, "IQ2_XS", 256, 74, GB_DTYPE_NONE},
    {18, "IQ3_XXS", 256, 98, GB_DTYPE_NONE},
    {19, "IQ1_S", 256, 50, GB_DTYPE_NONE},
    {20, "IQ4_NL", 32, 18, GB_DTYPE_NONE},
    {21, "IQ3_S", 256, 110, GB_DTYPE_NONE},
    {22, "IQ2_S", 256, 82, GB_DTYPE_NONE},
    {23, "IQ4_XS", 256, 136, GB_DTYPE_NONE},
    {24, "I8", 1, 1, GB_DTYPE_NONE},
    {25, "I16", 1, 2, GB_DTYPE_NONE},
    {26, "I32", 1, 4, GB_I32},
    {27, "I64", 1, 8, GB_DTYPE_NONE},
    {28, "F64", 1, 8, GB_DTYPE_NONE},
    {29, "IQ1_M", 256, 56, GB_DTYPE_NONE},
    {GB_GGML_BF16, "BF16", 1, 2, GB_BF16},
    {34, "TQ1_0", 256, 54, GB_DTYPE_NONE},
    {35, "TQ2_0", 256, 66, GB_DTYPE_NONE},
    {39, "MXFP4", 32, 17, GB_DTYPE_NONE},
    {40, "NVFP4", 64, 36, GB_DTYPE_NONE},
    {41, "Q1_0", 128, 18, GB_DTYPE_NONE},
    {42, "Q2_0", 64, 18, GB_DTYPE_NONE},
};

const gb_ggml_type *gb_ggml_type_find(uint32_t number) {
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++)
        if (TYPES[i].number == number)
            return &TYPES[i];
    return NULL;
}
