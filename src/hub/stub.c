/* SPDX-License-Identifier: Apache-2.0
 *
 * A build without libcurl: what is in the cache is found, and nothing can be downloaded.
 */
#include "base/status.h"
#include "hub/pull.h"
#include "hub/verify.h"

bool hub_can_pull(void) {
    return false;
}

gumbel_status hub_plan_pull(const hub_name *name, const hub_callbacks *callbacks, hub_plan *plan,
                            gumbel_error *error) {
    (void)callbacks;
    *plan = (hub_plan){.name = *name};
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                   "%s: this build cannot download: libcurl or libcrypto was not found (on Debian or Ubuntu: "
                   "libcurl4-openssl-dev libssl-dev); get it with: hf download %s",
                   name->repository, name->repository);
}

gumbel_status hub_pull(hub_plan *plan, unsigned connections, const hub_callbacks *callbacks,
                       gumbel_error *error) {
    (void)connections;
    return hub_plan_pull(&plan->name, callbacks, plan, error);
}

void hub_plan_free(hub_plan *plan) {
    *plan = (hub_plan){0};
}

gumbel_status hub_verify(const char *checkpoint, const hub_callbacks *callbacks, gumbel_error *error) {
    (void)checkpoint, (void)callbacks, (void)error;
    return GUMBEL_OK;
}
