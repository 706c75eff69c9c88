/* SPDX-License-Identifier: Apache-2.0
 *
 * Models from the hub into the cache of Hugging Face's tools (hub/cache.h): first a plan, which says what
 * there is and what is missing, then the download. A download that is interrupted at any point, even by
 * SIGKILL, leaves nothing half written in a snapshot, and the next one goes on where it ended. A file is put
 * in its place when its size and hash are those that the hub announced.
 */
#ifndef GUMBEL_HUB_PULL_H
#define GUMBEL_HUB_PULL_H

#include "gumbel.h"
#include "hub/listing.h"
#include "hub/names.h"
#include "hub/settings.h"

/* Called from the thread that plans or pulls; each may be NULL. */
typedef struct hub_callbacks {
    /* Several times a second; false cancels. what: a file's name, or what is waited for. */
    bool (*progress)(void *user, const char *what, uint64_t done, uint64_t total);
    void (*note)(void *user, const char *line); /* why it waits, and each file that is complete */
    void *user;
} hub_callbacks;

typedef struct hub_plan {
    hub_name name;
    hub_settings settings;
    hub_listing listing;     /* the files that the model needs */
    char folder[HUB_PATH];   /* of the repository */
    char snapshot[HUB_PATH]; /* where the files will be */
    char path[HUB_PATH];     /* what is opened: the snapshot, or the GGUF in it */
    uint64_t bytes;          /* of all files */
    uint64_t missing_bytes;  /* of those that are not there, without what an interrupted download has */
    size_t missing;          /* files that are not there */
} hub_plan;

/* Asks the hub for the files of a model and compares them with the cache. Free with hub_plan_free in any
 * case. Errors: UNSUPPORTED (a build without libcurl; HF_HUB_OFFLINE), ARGUMENT (no such repository, revision
 * or model, no access), IO (the network, the cache), FORMAT, LIMIT, MEMORY, CANCELLED. */
gumbel_status hub_plan_pull(const hub_name *name, const hub_callbacks *callbacks, hub_plan *plan,
                            gumbel_error *error);

/* Downloads what is missing over up to connections connections, and links it into the snapshot. One process
 * at a time works on a repository; others wait for it. Errors as above; LIMIT where the disk has no room. */
gumbel_status hub_pull(hub_plan *plan, unsigned connections, const hub_callbacks *callbacks,
                       gumbel_error *error);

void hub_plan_free(hub_plan *plan);

/* Whether this build can pull at all. */
bool hub_can_pull(void);

#endif
