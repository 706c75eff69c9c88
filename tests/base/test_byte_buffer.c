/* SPDX-License-Identifier: Apache-2.0
 *
 * The growing buffer: text in it, and what it is where memory runs out.
 */
#include "base/byte_buffer.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void text_grows(void **state) {
    (void)state;
    gb_byte_buffer buffer = {0};
    assert_string_equal(gb_buffer_string(&buffer), "");
    gb_buffer_append_string(&buffer, "one ");
    gb_buffer_write(&buffer, "two!", 3);
    gb_buffer_print(&buffer, " %d", 3);
    memcpy(gb_buffer_extend(&buffer, 2), " 4", 2);
    assert_string_equal(gb_buffer_string(&buffer), "one two 3 4");
    assert_int_equal(buffer.size, 11);
    gb_buffer_clear(&buffer);
    assert_int_equal(buffer.size, 0);
    assert_string_equal(buffer.text, "");
    gb_buffer_free(&buffer);
    assert_null(buffer.text);
}

static bool refuse(void *user, size_t bytes) {
    (void)user, (void)bytes;
    return false;
}

/* It stays failed, so that nothing is missing in the middle. */
static void no_memory_is_remembered(void **state) {
    (void)state;
    gb_byte_buffer buffer = {0};
    gb_buffer_append_string(&buffer, "kept");
    gb_set_allocation_hook(refuse, NULL);
    assert_null(gb_buffer_extend(&buffer, 4096));
    gb_set_allocation_hook(NULL, NULL);
    gb_buffer_append_string(&buffer, "!");
    assert_true(buffer.failed && buffer.size == 4);
    assert_string_equal(gb_buffer_string(&buffer), "");
    gb_buffer_clear(&buffer);
    gb_buffer_append_string(&buffer, "again");
    assert_string_equal(gb_buffer_string(&buffer), "again");
    assert_null(gb_buffer_extend(&buffer, SIZE_MAX));
    gb_buffer_free(&buffer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_grows),
        cmocka_unit_test(no_memory_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
