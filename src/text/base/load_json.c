/* SPDX-License-Identifier: Apache-2.0 */
#include "text/base/load_json.h"

#include <errno.h>

json_t *gb_decode_json(const char *text, size_t length, size_t flags, json_error_t *reason,
                       gumbel_status *status) {
    /* Where memory is short in the middle of a text, jansson calls the text wrong. Only errno tells. */
    errno = 0;
    json_t *value = json_loadb(text, length, flags, reason);
    const bool is_short = errno == ENOMEM || json_error_code(reason) == json_error_out_of_memory;
    *status = value ? GUMBEL_OK : is_short ? GUMBEL_ERROR_MEMORY : GUMBEL_ERROR_FORMAT;
    return value;
}

gumbel_status gb_load_json(const char *name, const char *text, size_t length, size_t flags, json_t **value,
                           gumbel_error *error) {
    json_error_t reason;
    gumbel_status status;
    *value = gb_decode_json(text, length, flags, &reason, &status);
    if (*value)
        return GUMBEL_OK;
    if (status == GUMBEL_ERROR_MEMORY)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory to read it", name);
    return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: line %d: %s", name, reason.line, reason.text);
}
