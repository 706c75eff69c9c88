/* SPDX-License-Identifier: Apache-2.0
 *
 * A reply that is kept instead of printed, for a report in JSON.
 */
#ifndef GUMBEL_CLI_MODEL_RECORD_H
#define GUMBEL_CLI_MODEL_RECORD_H

#include "cli/base/storage.h"
#include "gumbel.h"

#include <jansson.h>

typedef struct cli_record {
    gb_byte_buffer text;
    json_t *logprobs; /* an array with an object for each token; NULL: none were wanted */
} cli_record;

/* Adds a token's log-probabilities, with the text that it completes. */
void cli_record_logprobs(cli_record *record, const gumbel_generated *generated, const char *text,
                         size_t length);

void cli_record_free(cli_record *record);

#endif
