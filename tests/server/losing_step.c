/* SPDX-License-Identifier: Apache-2.0
 *
 * In the place of gumbel_step: from when the file $LOST_DEVICE is there no step succeeds. A step takes a
 * while, so that a test can do something amid an answer.
 */
#include "gumbel.h"

#include "base/status.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

gumbel_status __real_gumbel_step(gumbel_engine *engine, const gumbel_request *requests, size_t count,
                                 gumbel_error *error);
gumbel_status __wrap_gumbel_step(gumbel_engine *engine, const gumbel_request *requests, size_t count,
                                 gumbel_error *error);

gumbel_status __wrap_gumbel_step(gumbel_engine *engine, const gumbel_request *requests, size_t count,
                                 gumbel_error *error) {
    const char *file = getenv("LOST_DEVICE");
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    if (file && access(file, F_OK) == 0)
        return gb_fail(error, GUMBEL_ERROR_BACKEND, "device 1: lost");
    return __real_gumbel_step(engine, requests, count, error);
}
