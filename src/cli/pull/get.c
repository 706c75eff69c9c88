/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pull/get.h"

#include "cli/pull/pull.h"
#include "hub/cache.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CONNECTIONS = 4 };

static bool may_pull(int mode) {
    if (mode == CLI_PULL_ON_TERMINALS)
        return hub_can_pull() && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    return mode == CLI_PULL;
}

/* Whether weights are missing in a snapshot that was found; what a user's own folder lacks is theirs. */
static bool lacks_weights(const char *given, const cli_checkpoint *checkpoint) {
    const char *path = checkpoint->path;
    return path && !hub_ends_with(path, ".gguf") && checkpoint->repository && access(given, F_OK) != 0 &&
           !hub_has_weights(path);
}

/* What looks like a name of the hub may be a path that was mistyped. */
static void add_path_note(gumbel_error *error) {
    size_t used = strlen(error->message);
    snprintf(error->message + used, sizeof error->message - used, "; and no file or folder has this name");
}

gumbel_status cli_checkpoint_get(const char *given, int mode, cli_checkpoint *checkpoint,
                                 gumbel_error *error) {
    gumbel_status status = cli_checkpoint_find(given, checkpoint, error);
    bool is_absent = status == GUMBEL_OK ? lacks_weights(given, checkpoint) : checkpoint->is_absent;
    hub_name name;
    hub_plan plan;
    if (!is_absent || !may_pull(mode) || !hub_parse_name(given, &name))
        return status;
    status = cli_pull(&name, CONNECTIONS, &plan, error);
    if (status != GUMBEL_OK && plan.listing.count == 0)
        add_path_note(error);
    hub_plan_free(&plan);
    if (status != GUMBEL_OK)
        return status;
    cli_checkpoint_free(checkpoint);
    return cli_checkpoint_find(given, checkpoint, error);
}
