/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plain decoder's layers have: which slide, which rotate, and which have experts.
 */
#ifndef GUMBEL_EXPORT_MODELS_DENSE_LAYERS_H
#define GUMBEL_EXPORT_MODELS_DENSE_LAYERS_H

#include "export/models/dense_family.h"

enum { GB_MAX_DENSE_LAYERS = 1024 };

/* Fills the config->layer_count items of config->layers, which are zero, and sets config->sliding_window.
 * Errors are the configuration's: FORMAT; UNSUPPORTED naming the key where implementations differ. */
void gb_dense_layers_read(const gb_config *text, const gb_dense_family *family, gb_dense_config *config);

#endif
