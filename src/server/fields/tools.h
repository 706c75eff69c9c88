/* SPDX-License-Identifier: Apache-2.0
 *
 * Tools that the model gets: functions in namespaces (tools of type "namespace" in responses), which it knows
 * by one name and clients by two; none where the chat template knows none.
 */
#ifndef GUMBEL_SERVER_FIELDS_TOOLS_H
#define GUMBEL_SERVER_FIELDS_TOOLS_H

#include "server/fields/request.h"

/* "crm" and "list_orders" as "crm__list_orders". */
json_t *server_join_name(const char *space, const char *name);

/* The parts of such a name; false: the request has no namespace with such a function. */
bool server_split_name(const server_request *request, const char *joined, const char **space,
                       const char **name);

/* Once the request has its tools: leaves them out where the chat template has no place for them, unless a
 * call is required: then they stand in a message. */
void server_settle_tools(server_request *request, const server_model *model);

#endif
