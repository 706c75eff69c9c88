/* SPDX-License-Identifier: Apache-2.0
 *
 * Downloads of files of one commit over several connections at once: each takes the next bytes that are
 * missing, of the first file that has some. Connections that break go on where they were.
 */
#ifndef GUMBEL_HUB_TRANSFER_H
#define GUMBEL_HUB_TRANSFER_H

#include "hub/pull.h"

/* Downloads the files of the plan that are not there to blobs, a folder. Cancelled or failed, what was
 * downloaded is kept there. Errors as hub_pull's. */
gumbel_status hub_transfer(hub_plan *plan, const char *blobs, unsigned connections,
                           const hub_callbacks *callbacks, gumbel_error *error);

#endif
