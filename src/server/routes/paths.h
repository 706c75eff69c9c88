/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrong paths: base URLs with /v1 too often or not at all, slashes too many, other servers' names.
 */
#ifndef GUMBEL_SERVER_ROUTES_PATHS_H
#define GUMBEL_SERVER_ROUTES_PATHS_H

#include <stdbool.h>

/* Whether a request to path is likely to mean the route. */
bool server_is_path_meant(const char *path, const char *route);

#endif
