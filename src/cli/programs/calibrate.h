/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a checkpoint over a text, for an export whose quantization knows what its products take in.
 */
#ifndef GUMBEL_CLI_PROGRAMS_CALIBRATE_H
#define GUMBEL_CLI_PROGRAMS_CALIBRATE_H

#include "gumbel.h"

typedef struct cli_calibrate_options {
    const char *checkpoint;       /* a path */
    const char *output;           /* of the export: beside it the program that is run lies meanwhile */
    const char *file;             /* the text; "built-in": cli_calibration_text */
    gumbel_export_options export; /* of which the calibrated model keeps what says which weights it has */
    bool quiet;
} cli_calibrate_options;

/* Exports the checkpoint as it is to a temporary file, runs it over the text in windows of 256 tokens, and
 * removes the file. Free with gumbel_calibration_destroy. Errors: those of exporting, running and reading the
 * text; ARGUMENT where it has fewer than two tokens. */
gumbel_status cli_calibrate(const cli_calibrate_options *options, gumbel_calibration **calibration,
                            gumbel_error *error);

/* The text that is used where there is no other: prose, law and code, of the public domain or this project's.
 */
extern const unsigned char cli_calibration_text[];
extern const size_t cli_calibration_text_length;

#endif
