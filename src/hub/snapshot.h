/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a revision lies in the cache, and putting it there once its blobs are complete.
 */
#ifndef GUMBEL_HUB_SNAPSHOT_H
#define GUMBEL_HUB_SNAPSHOT_H

#include "hub/pull.h"

/* Sets file->is_here: the file's bytes are there, as a blob, or in the snapshot itself where a tool could not
 * link. A damaged blob is not there, and a note says so. Errors: those of hub_verify_blob. */
gumbel_status hub_look_for(const hub_plan *plan, hub_file *file, const hub_callbacks *callbacks,
                           gumbel_error *error);

/* Links the files of the plan, whose blobs are all there, into its snapshot, and then lets the revision's ref
 * name the commit. Errors: IO. */
gumbel_status hub_publish(const hub_plan *plan, gumbel_error *error);

#endif
