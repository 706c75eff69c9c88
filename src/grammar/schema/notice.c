/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/notice.h"

#include "base/byte_buffer.h"
#include "base/status.h"
#include "grammar/schema/reader/keywords.h"

#include <string.h>

enum { MOST_NAMES = 20 };

void gb_note_unknown(const json_t *unknown, gumbel_log_callback log, void *user) {
    gb_byte_buffer names = {0};
    const char *name;
    json_t *value;
    size_t count = 0;
    json_object_foreach(gb_mutable(unknown), name, value) {
        if (count++ == MOST_NAMES)
            break;
        gb_buffer_append(&names, ", ", count > 1 ? 2 : 0);
        gb_buffer_append(&names, name, strlen(name));
    }
    if (count > 0 && !names.failed) {
        gumbel_error line; /* as which it is escaped */
        gb_fail(&line, GUMBEL_ERROR_UNSUPPORTED, "schema: not known, and so taken as annotations: %.*s%s",
                (int)names.size, (const char *)names.data, count > MOST_NAMES ? " and more" : "");
        log(user, GUMBEL_LOG_INFO, line.message);
    }
    gb_buffer_free(&names);
}
