/* SPDX-License-Identifier: Apache-2.0
 *
 * Any text as the value of an option: sizes, numbers, seeds, lists of numbers, of tokens and of biases,
 * origins of other sites. Refused, or within its range.
 */
#include "base/memory.h"
#include "cli/base/units.h"
#include "cli/options/values.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be(bool holds) {
    if (!holds)
        abort();
}

static void read_size(const char *text) {
    char described[CLI_BYTES_TEXT];
    uint64_t bytes;
    if (cli_parse_bytes(text, &bytes))
        must_be(bytes <= UINT64_C(1) << 60 && cli_describe_bytes(bytes, described)[0]);
}

static void read_numbers(const char *text) {
    const cli_range range = {.low = -5, .high = 1e6, .has_also = true, .also_value = -7};
    int64_t integer;
    double number;
    uint64_t seed;
    bool is_drawn, is_on;
    cli_integers integers = {0};
    if (cli_parse_integer(text, &range, &integer))
        must_be(integer == -7 || (integer >= -5 && integer <= 1000000));
    if (cli_parse_number(text, &range, &number))
        must_be(number == -7 || (number >= -5 && number <= 1e6));
    if (cli_parse_integers(text, &range, &integers))
        must_be(integers.count > 0 && integers.count <= CLI_MOST_INTEGERS);
    (void)cli_parse_seed(text, &is_drawn, &seed);
    (void)cli_parse_switch(text, &is_on);
}

static void read_tokens(const char *text) {
    cli_tokens tokens = {0};
    if (cli_parse_tokens(text, &tokens))
        must_be(tokens.count > 0);
    else
        must_be(tokens.ids == NULL);
    for (size_t i = 0; i < tokens.count; i++)
        must_be(tokens.ids[i] >= 0);
    cli_tokens_free(&tokens);
}

static void read_biases(const char *text) {
    static cli_biases biases;
    biases.count = 0;
    (void)cli_parse_biases(text, &biases);
    must_be(biases.count <= CLI_MOST_BIASES);
    for (size_t i = 0; i < biases.count; i++) {
        must_be(biases.list[i].token >= 0 && !isnan(biases.list[i].value) && biases.list[i].value != 0);
        for (size_t j = 0; j < i; j++)
            must_be(biases.list[i].token != biases.list[j].token);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = gb_copy_string((const char *)data, size);
    if (!text)
        return 0;
    read_size(text);
    read_numbers(text);
    read_tokens(text);
    read_biases(text);
    gb_free(text);
    return 0;
}
