/* SPDX-License-Identifier: Apache-2.0
 *
 * The shape that a reply format gives a value: JSON with placeholders. "{content}" or "{name.key}", as a
 * whole string, stands for a value, or for what it has under the key.
 */
#ifndef GUMBEL_TEXT_REPLY_TRANSFORM_H
#define GUMBEL_TEXT_REPLY_TRANSFORM_H

#include "gumbel.h"

#include <jansson.h>

/* Errors: FORMAT where a string mixes a placeholder with other text. where is told in the message. */
gumbel_status gb_check_transform(const json_t *transform, const char *where, gumbel_error *error);

/* The shape with its placeholders replaced by members of scope, an object. The caller owns it; NULL where a
 * placeholder has no value. */
json_t *gb_apply_transform(const json_t *transform, const json_t *scope);

#endif
