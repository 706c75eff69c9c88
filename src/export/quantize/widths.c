/* SPDX-License-Identifier: Apache-2.0 */
#include "export/quantize/widths.h"

bool gb_can_widen(const gb_format *format) {
    return format->kind == GB_FORMAT_PROGRESSIVE;
}

gb_format gb_wide_format(void) {
    return (gb_format){.kind = GB_FORMAT_ONE_LEVEL, .bits = 8, .scale = GB_F16};
}

void gb_widen(gb_quantize_choice *choice) {
    choice->format = gb_wide_format();
    choice->method = GB_METHOD_MIN_MAX;
}

static double gain_per_byte(const gb_widening *widening) {
    return widening->gain / (double)(widening->bytes > 0 ? widening->bytes : 1);
}

/* The best of those that are left and fit; NULL: there is none. */
static gb_widening *find_best(gb_widening *widenings, size_t count, uint64_t room) {
    gb_widening *best = NULL;
    for (size_t i = 0; i < count; i++) {
        gb_widening *w = &widenings[i];
        if (!w->is_taken && w->bytes <= room && (!best || gain_per_byte(w) > gain_per_byte(best)))
            best = w;
    }
    return best;
}

uint64_t gb_choose_widths(gb_widening *widenings, size_t count, uint64_t room) {
    uint64_t taken = 0;
    gb_widening *best;
    while ((best = find_best(widenings, count, room - taken)) != NULL) {
        best->is_taken = true;
        taken += best->bytes;
    }
    return taken;
}
