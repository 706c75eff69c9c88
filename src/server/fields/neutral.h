/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of other servers whose effect this one has not. Clients send them with values that change nothing,
 * and these are taken.
 */
#ifndef GUMBEL_SERVER_FIELDS_NEUTRAL_H
#define GUMBEL_SERVER_FIELDS_NEUTRAL_H

#include "server/base/json.h"

typedef struct server_neutral {
    const char *names;  /* separated by blanks, like the values */
    const char *values; /* JSON; "": null alone */
} server_neutral;

/* Ends in one without names. A name may be a field of another route. */
extern const server_neutral server_neutrals[];

/* The row of that name; NULL: there is none. */
const server_neutral *server_find_neutral(const char *name);

/* Takes null and the row's values. */
bool server_take_neutral(const server_neutral *neutral, const char *name, const json_t *value,
                         server_failure *failure);

#endif
