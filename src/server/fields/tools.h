/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions in namespaces (tools of type "namespace" in responses): the model knows them by one name, clients
 * by two.
 */
#ifndef GUMBEL_SERVER_FIELDS_TOOLS_H
#define GUMBEL_SERVER_FIELDS_TOOLS_H

#include "server/fields/request.h"

/* "crm" and "list_orders" as "crm__list_orders". */
json_t *server_join_name(const char *space, const char *name);

/* The parts of such a name; false: the request has no namespace with such a function. */
bool server_split_name(const server_request *request, const char *joined, const char **space,
                       const char **name);

#endif
