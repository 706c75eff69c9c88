/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/devices.h"

#include "base/status.h"
#include "cli/base/report.h"
#include "cli/base/units.h"

#include <stdarg.h>
#include <string.h>

_Static_assert((int)CLI_MOST_INTEGERS >= (int)GUMBEL_MOST_DEVICES, "all devices have room");

/* ---- What was chosen ----------------------------------------------------------------------------------- */

static void append(char *text, const char *format, ...) CLI_PRINTF(2, 3);
static void append(char *text, const char *format, ...) {
    const size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, CLI_ADVICE_TEXT - length, format, arguments);
    va_end(arguments);
}

static void append_numbers(const gumbel_device_advice *advice, char *text) {
    append(text, advice->device_count > 1 ? "devices " : "device ");
    for (uint32_t i = 0; i < advice->device_count; i++)
        append(text, "%s%d", i > 0 ? "," : "", advice->devices[i]);
}

/* Of as many devices as were chosen, and of the next fewer ones. */
static const gumbel_device_estimate *find_chosen(const gumbel_device_advice *advice,
                                                 const gumbel_device_estimate **fewer) {
    uint32_t i = 0;
    *fewer = NULL;
    while (advice->estimates[i].devices != advice->device_count)
        *fewer = &advice->estimates[i++];
    return &advice->estimates[i];
}

static void append_reason(const gumbel_device_advice *advice, char *text) {
    char needed[CLI_BYTES_TEXT], there[CLI_BYTES_TEXT];
    const gumbel_device_estimate *fewer, *chosen = find_chosen(advice, &fewer);
    cli_describe_bytes(fewer ? fewer->bytes : chosen->bytes, needed);
    cli_describe_bytes(fewer ? fewer->room_bytes : chosen->room_bytes, there);
    if (fewer && !fewer->fits)
        append(text, "weights and conversations take %s on %s%u, where there is room for %s", needed,
               fewer->devices > 1 ? "each of " : "", fewer->devices, there);
    else if (fewer)
        append(text, "faster than fewer");
    else if (advice->estimate_count > 1)
        append(text, "there is room, and two are not a tenth faster");
    else
        append(text, "it is the only one that can be used");
}

static void append_times(const gumbel_device_advice *advice, char *text) {
    const double milliseconds = 1e3;
    if (advice->estimates[0].step_seconds <= 0)
        return;
    append(text, "; a decode step is predicted to take ");
    for (uint32_t i = 0; i < advice->estimate_count; i++)
        append(text, "%s%.2f ms on %u", i > 0 ? ", " : "", milliseconds * advice->estimates[i].step_seconds,
               advice->estimates[i].devices);
}

const char *cli_describe_advice(const gumbel_device_advice *advice, char *text) {
    text[0] = '\0';
    append_numbers(advice, text);
    append(text, ": ");
    append_reason(advice, text);
    append_times(advice, text);
    return text;
}

/* ---- The engine's -------------------------------------------------------------------------------------- */

/* A command that opens a model several times says once what is chosen. */
static void note_once(const gumbel_device_advice *advice) {
    static char last[CLI_ADVICE_TEXT];
    char text[CLI_ADVICE_TEXT];
    if (strcmp(cli_describe_advice(advice, text), last) == 0)
        return;
    memcpy(last, text, sizeof last);
    cli_note("--devices auto takes %s", text);
}

static gumbel_status choose(const gumbel_program *program, int *numbers, gumbel_engine_options *options,
                            gumbel_error *error) {
    gumbel_device_advice advice = {.size = sizeof advice};
    GB_TRY(gumbel_advise_devices(program, options, &advice, error));
    if (advice.estimate_count > 0)
        note_once(&advice);
    memcpy(numbers, advice.devices, advice.device_count * sizeof *numbers);
    options->device_count = advice.device_count;
    return GUMBEL_OK;
}

gumbel_status cli_use_devices(const cli_integers *given, const gumbel_program *program,
                              int numbers[CLI_MOST_INTEGERS], gumbel_engine_options *options,
                              gumbel_error *error) {
    options->devices = numbers;
    options->device_count = (uint32_t)given->count;
    for (size_t i = 0; i < given->count; i++)
        numbers[i] = (int)given->values[i];
    return given->word ? choose(program, numbers, options, error) : GUMBEL_OK;
}
