/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/lowering/lowering.h"

const gb_cuda_class gb_cuda_classes[GB_CUDA_CLASSES] = {
    {GB_CUDA_ONE_ROW, GB_CUDA_ONE_ROW},        {GB_CUDA_FEW_ROWS, GB_CUDA_FEW_ROWS},
    {GB_CUDA_MANY_ROWS, GB_CUDA_MANY_ROWS},    {GB_CUDA_FEW_OF_PROMPT, GB_CUDA_ONE_ROW},
    {GB_CUDA_FEW_OF_PROMPT, GB_CUDA_FEW_ROWS}, {GB_CUDA_SHORT_PROMPT, GB_CUDA_ONE_ROW},
    {GB_CUDA_SHORT_PROMPT, GB_CUDA_FEW_ROWS},  {GB_CUDA_SHORT_PROMPT, GB_CUDA_MANY_ROWS},
    {GB_CUDA_LONG_PROMPT, GB_CUDA_ONE_ROW},    {GB_CUDA_LONG_PROMPT, GB_CUDA_FEW_ROWS},
    {GB_CUDA_LONG_PROMPT, GB_CUDA_MANY_ROWS},
};

uint32_t gb_cuda_class_of(bool is_prompt, uint32_t tokens, uint32_t rows) {
    const gb_cuda_row_class of_tokens = gb_cuda_row_class_of(is_prompt, tokens),
                            of_rows = is_prompt ? gb_cuda_row_class_of(false, rows) : of_tokens;
    uint32_t class = 0;
    while (gb_cuda_classes[class].tokens != of_tokens || gb_cuda_classes[class].rows != of_rows)
        class ++;
    return class;
}

/* The fewest and the most rows of a row class, of `limit` or fewer. */
static bool find_range(gb_cuda_row_class class, uint32_t limit, uint32_t *fewest, uint32_t *most) {
    static const struct {
        uint32_t fewest, most;
    } ranges[GB_CUDA_ROW_CLASSES] = {
        [GB_CUDA_ONE_ROW] = {1, 1},
        [GB_CUDA_FEW_ROWS] = {2, GB_CUDA_MOST_FEW_ROWS},
        [GB_CUDA_MANY_ROWS] = {GB_CUDA_MOST_FEW_ROWS + 1, UINT32_MAX},
        [GB_CUDA_FEW_OF_PROMPT] = {1, GB_CUDA_MOST_FEW_ROWS},
        [GB_CUDA_SHORT_PROMPT] = {GB_CUDA_MOST_FEW_ROWS + 1, GB_CUDA_MOST_SHORT_PROMPT_ROWS},
        [GB_CUDA_LONG_PROMPT] = {GB_CUDA_MOST_SHORT_PROMPT_ROWS + 1, UINT32_MAX}};
    *fewest = ranges[class].fewest;
    *most = ranges[class].most < limit ? ranges[class].most : limit;
    return *fewest <= limit;
}

bool gb_cuda_class_find_range(gb_cuda_class class, const gb_backend_options *options,
                              gb_cuda_class_range *range) {
    const bool is_prompt = class.tokens >= GB_CUDA_FEW_OF_PROMPT;
    const uint32_t most_rows = gb_most_rows(options);
    if (!find_range(class.tokens, options->step_tokens, &range->tokens, &range->most_tokens))
        return false;
    if (is_prompt)
        return find_range(class.rows, most_rows, &range->rows, &range->most_rows);
    range->rows = 1;
    range->most_rows = range->most_tokens < most_rows ? range->most_tokens : most_rows;
    return true;
}
