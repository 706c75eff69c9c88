/* SPDX-License-Identifier: Apache-2.0
 *
 * What the routes share.
 */
#ifndef GUMBEL_SERVER_STATE_H
#define GUMBEL_SERVER_STATE_H

#include "server/http/access.h"
#include "server/http/listener.h"
#include "server/metrics.h"
#include "server/models.h"
#include "server/options.h"
#include "server/protocols/responses_store.h"

#include <stdatomic.h>

struct server {
    server_options options;
    server_models models;
    int64_t started; /* seconds since 1970 */
    uint16_t port;
    atomic_bool is_draining, has_failed;
    server_access access;
    server_http http;
    server_metrics metrics;
    server_responses responses;
};

#endif
