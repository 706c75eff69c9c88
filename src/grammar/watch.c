/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/watch.h"

#include "base/clock.h"

/* Asking may be a system call. */
#define SECONDS_BETWEEN_QUESTIONS 0.005

void gb_watch_begin(gb_watch *watch) {
    watch->begin = watch->last_asked = gb_seconds();
}

static bool is_cancelled(gb_watch *watch, double now) {
    if (!watch->is_cancelled || now - watch->last_asked < SECONDS_BETWEEN_QUESTIONS)
        return false;
    watch->last_asked = now;
    return watch->is_cancelled(watch->user);
}

bool gb_watch_goes_on(gb_watch *watch, uint64_t steps) {
    if (!watch)
        return true;
    watch->steps += steps;
    if (watch->steps < GB_WATCH_STEPS || watch->error.status != GUMBEL_OK)
        return watch->error.status == GUMBEL_OK;
    watch->steps = 0;
    const double now = gb_seconds();
    if (now - watch->begin > watch->seconds)
        gb_fail(&watch->error, GUMBEL_ERROR_LIMIT,
                "grammar: compiling takes longer than %g seconds; make it smaller", watch->seconds);
    else if (is_cancelled(watch, now))
        gb_fail(&watch->error, GUMBEL_ERROR_CANCELLED, "grammar: compiling was cancelled");
    return watch->error.status == GUMBEL_OK;
}
