/* SPDX-License-Identifier: Apache-2.0
 *
 * For lists of some of the settings of roles.def: GB_OF_DRAW(kind)(text) is text where a setting of that kind
 * has a part in the draw, being the temperature or a mask, and nothing otherwise. Likewise masks and
 * penalties.
 */
#ifndef GUMBEL_PROGRAM_SETTING_KINDS_H
#define GUMBEL_PROGRAM_SETTING_KINDS_H

#include "tensor/dtype.h"

#define GB_OF_DRAW(kind) GB_OF_DRAW_##kind
#define GB_OF_DRAW_TEMPERATURE(...) __VA_ARGS__
#define GB_OF_DRAW_MASK(...) __VA_ARGS__
#define GB_OF_DRAW_PENALTY(...)

#define GB_OF_MASKS(kind) GB_OF_MASKS_##kind
#define GB_OF_MASKS_TEMPERATURE(...)
#define GB_OF_MASKS_MASK(...) __VA_ARGS__
#define GB_OF_MASKS_PENALTY(...)

#define GB_OF_PENALTIES(kind) GB_OF_PENALTIES_##kind
#define GB_OF_PENALTIES_TEMPERATURE(...)
#define GB_OF_PENALTIES_MASK(...)
#define GB_OF_PENALTIES_PENALTY(...) __VA_ARGS__

#endif
