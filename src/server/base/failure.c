/* SPDX-License-Identifier: Apache-2.0 */
#include "server/base/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { RETRY_SECONDS = 1 };

static const char *type_of(int status) {
    switch (status) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 404:
        return "not_found_error";
    case 429:
        return "rate_limit_error";
    default:
        return status < 500 ? "invalid_request_error" : "server_error";
    }
}

static const char *code_of(int status) {
    switch (status) {
    case 401:
        return "invalid_api_key";
    case 413:
        return "request_too_large";
    case 429:
        return "queue_full";
    case 503:
        return "unavailable";
    default:
        return NULL;
    }
}

static void fill(server_failure *failure, int status, const char *param, const char *format, va_list values) {
    *failure = (server_failure){.status = status, .type = type_of(status), .code = code_of(status)};
    failure->retry_seconds = status == 429 || status == 503 ? RETRY_SECONDS : 0;
    snprintf(failure->param, sizeof failure->param, "%s", param ? param : "");
    vsnprintf(failure->message, sizeof failure->message, format, values);
}

bool server_refuse(server_failure *failure, const char *param, const char *format, ...) {
    va_list values;
    va_start(values, format);
    fill(failure, 400, param, format, values);
    va_end(values);
    return false;
}

bool server_fail(server_failure *failure, int status, const char *format, ...) {
    va_list values;
    va_start(values, format);
    fill(failure, status, NULL, format, values);
    va_end(values);
    return false;
}

static int status_of(gumbel_status status) {
    switch (status) {
    case GUMBEL_ERROR_ARGUMENT:
    case GUMBEL_ERROR_FORMAT:
    case GUMBEL_ERROR_UNSUPPORTED:
        return 400;
    case GUMBEL_ERROR_LIMIT:
        return 429;
    case GUMBEL_ERROR_MEMORY:
    case GUMBEL_ERROR_CANCELLED:
    case GUMBEL_ERROR_BACKEND:
        return 503;
    case GUMBEL_ERROR_DEADLINE:
        return 504;
    default:
        return 500;
    }
}

bool server_fail_with(server_failure *failure, const char *param, const gumbel_error *error) {
    server_fail(failure, status_of(error->status), "%s", error->message);
    snprintf(failure->param, sizeof failure->param, "%s", param ? param : "");
    return false;
}
