/* SPDX-License-Identifier: Apache-2.0
 *
 * A gated convolution over the last few tokens in attention's place: out(c * conv(b * x)), of which b, c and
 * x are products of the input. (LFM2 technical report, Liquid AI, 2025)
 */
#ifndef GUMBEL_EXPORT_NN_SHORT_CONV_H
#define GUMBEL_EXPORT_NN_SHORT_CONV_H

#include "export/nn/graph.h"

/* x f32[N, hidden] -> f32[N, hidden], or f32[B, hidden] with rows_only: only the rows whose next token is
 * wanted go on once the convolution has seen all. width: tokens, the current one included. Weights of the
 * scope: in_proj (b above c above x), conv and out_proj. The state NAME.conv is float32. */
gb_ref gb_short_conv(const gb_scope *scope, int64_t width, const char *name, gb_ref x, bool rows_only);

#endif
