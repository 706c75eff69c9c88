/* SPDX-License-Identifier: Apache-2.0
 *
 * Scalings of rotary embedding that stand where a model's configuration is not read: they are refused by name
 * rather than ignored.
 */
#ifndef GUMBEL_EXPORT_MODELS_ROPE_UNREAD_H
#define GUMBEL_EXPORT_MODELS_ROPE_UNREAD_H

#include "export/checkpoint/config.h"

/* Makes it the file's error, UNSUPPORTED, where the object has another type than "default". */
void gb_refuse_rope_type(const gb_config *object);

/* The same of the object under key (rope_scaling or rope_parameters), and of each kind of layer's in it. */
void gb_refuse_rope(const gb_config *config, const char *key);

/* The same of the object under key beside the one under read, unless both are equal, and of a rope_theta
 * that the latter does not have. */
void gb_refuse_rope_beside(const gb_config *config, const char *key, const char *read);

/* The same as gb_refuse_rope of a wrapper's own keys, unless its text_config has equal ones. */
void gb_refuse_rope_of_wrapper(const gb_config *root);

#endif
