/* SPDX-License-Identifier: Apache-2.0 */
#include "export/expert_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool gb_expert_member_name(const char *stack, uint64_t member, char *text, size_t size) {
    static const char *const marks[] = {".experts.switch_glu.", ".switch_mlp."};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        const char *at = strstr(stack, marks[i]);
        if (!at)
            continue;
        int length = snprintf(text, size, "%.*s.experts.%" PRIu64 ".%s", (int)(at - stack), stack, member,
                              at + strlen(marks[i]));
        return length > 0 && (size_t)length < size;
    }
    return false;
}
