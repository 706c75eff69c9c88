/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices that --devices names, or that --devices auto chooses.
 */
#ifndef GUMBEL_CLI_MODEL_DEVICES_H
#define GUMBEL_CLI_MODEL_DEVICES_H

#include "cli/options/values.h"
#include "gumbel.h"

/* Gives the engine of a program its devices, whose numbers go to numbers; what it is given besides is filled
 * in. A note says what was chosen and why. Errors: those of gumbel_advise_devices. */
gumbel_status cli_use_devices(const cli_integers *given, const gumbel_program *program,
                              int numbers[CLI_MOST_INTEGERS], gumbel_engine_options *options,
                              gumbel_error *error);

/* "devices 0,1: faster than fewer; a decode step is predicted to take 5.49 ms on 1, 4.77 ms on 2". text has
 * room for CLI_ADVICE_TEXT bytes and is returned. */
enum { CLI_ADVICE_TEXT = 512 };
const char *cli_describe_advice(const gumbel_device_advice *advice, char *text);

#endif
