/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a request is refused or has failed: an HTTP status, and what the protocols' error objects say.
 */
#ifndef GUMBEL_SERVER_BASE_FAILURE_H
#define GUMBEL_SERVER_BASE_FAILURE_H

#include "gumbel.h"

enum { SERVER_PARAM = 64 };

typedef struct server_failure {
    int status;                         /* of HTTP */
    const char *type;                   /* as OpenAI has it: "invalid_request_error" */
    const char *code;                   /* "context_length_exceeded"; NULL: none */
    char param[SERVER_PARAM];           /* the field; "": none */
    char message[GUMBEL_MESSAGE_BYTES]; /* one sentence */
    int retry_seconds;                  /* when to try again; 0: nothing to say */
} server_failure;

#define SERVER_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))

/* Status 400: the field param (NULL: none) is wrong. Returns false, so that a failing check can end in it. */
bool server_refuse(server_failure *failure, const char *param, const char *format, ...) SERVER_PRINTF(3, 4);

/* Any other status; type and code follow from it. Returns false. */
bool server_fail(server_failure *failure, int status, const char *format, ...) SERVER_PRINTF(3, 4);

/* What the library refused, with the status that its reason asks for. param may be NULL. Returns false. */
bool server_fail_with(server_failure *failure, const char *param, const gumbel_error *error);

#endif
