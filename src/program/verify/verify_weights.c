/* SPDX-License-Identifier: Apache-2.0 */
#include "program/verify/verifier.h"

/* Rule 43. The order of the bytes does not matter, so that packed constants are checked as they are. */
static gumbel_status check_group_bytes(const gb_constant *constant, gumbel_error *error) {
    gb_planes planes;
    uint64_t rows, columns;
    if (!gb_constant_planes(constant, &planes) || !gb_constant_matrix(constant, &rows, &columns))
        return GUMBEL_OK;
    const uint32_t bits = constant->format.bits;
    const uint8_t *bytes = constant->data + planes.scales.offset;
    const uint64_t count = rows * planes.scales.row_bytes, bad = gb_check_group_bytes(bits, bytes, count);
    if (bad == count)
        return GUMBEL_OK;
    const gb_group_integers found = gb_get_group_integers(bits, bytes[bad]);
    return gb_fail(
        error, GUMBEL_ERROR_FORMAT,
        "constant %s: byte %llu of its scales is 0x%02x: with a zero of %u the scale is %u, expected at "
        "most %u, so that weights have 8 bits",
        constant->name, (unsigned long long)bad, bytes[bad], found.zero, found.scale,
        gb_largest_group_scale(bits, found.zero));
}

gumbel_status gb_verify_weights(const gb_program *program, gumbel_error *error) {
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        if (constant->type.dtype == GB_QUANTIZED && constant->format.kind == GB_FORMAT_PROGRESSIVE &&
            constant->data)
            GB_TRY(check_group_bytes(constant, error));
    }
    return GUMBEL_OK;
}
