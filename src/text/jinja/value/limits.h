/* SPDX-License-Identifier: Apache-2.0
 *
 * What one render may take. Steps bound its work whatever the machine; the time is for what they miss.
 */
#ifndef GUMBEL_TEXT_JINJA_VALUE_LIMITS_H
#define GUMBEL_TEXT_JINJA_VALUE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#define GB_JINJA_MAX_TEMPLATE ((size_t)1 << 20) /* bytes of a template */
#define GB_JINJA_MAX_NESTING 100  /* statements and brackets within each other in the template */
#define GB_JINJA_MAX_DEPTH 500    /* evaluations within each other, macro calls included */
#define GB_JINJA_MAX_RANGE 100000 /* items of range(), as in jinja2's sandbox */

typedef struct gb_jinja_limits {
    uint64_t steps; /* statements, expressions and items visited */
    size_t text;    /* bytes of the output, or of any one string */
    size_t memory;  /* bytes of everything that the render holds */
    double seconds;
} gb_jinja_limits;

static const gb_jinja_limits gb_jinja_default_limits = {
    .steps = 10000000,
    .text = (size_t)16 << 20,
    .memory = (size_t)256 << 20,
    .seconds = 10,
};

#endif
