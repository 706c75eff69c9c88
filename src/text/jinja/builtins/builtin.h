/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters, tests, methods and global functions: tables of C functions with the names of their parameters.
 */
#ifndef GUMBEL_TEXT_JINJA_BUILTINS_BUILTIN_H
#define GUMBEL_TEXT_JINJA_BUILTINS_BUILTIN_H

#include "text/jinja/value/value.h"

typedef struct gb_jinja_arguments {
    gb_jinja_array positional;
    gb_jinja_dict keywords;
} gb_jinja_arguments;

/* Computes *result from the subject (what is filtered or tested, or a method's object; NULL for a function)
 * and one argument for each parameter, GB_JINJA_ABSENT where none was given. */
typedef gumbel_status (*gb_jinja_function)(gb_jinja_state *state, const gb_jinja_value *subject,
                                           const gb_jinja_value *arguments, gb_jinja_value *result);

/* The same with the arguments as they are, for functions that take any number of them. */
typedef gumbel_status (*gb_jinja_variadic_function)(gb_jinja_state *state, const gb_jinja_value *subject,
                                                    const gb_jinja_arguments *arguments,
                                                    gb_jinja_value *result);

/* Defines a gb_jinja_function that is a call of another one. */
#define GB_JINJA_DEFINE(name, call)                                                                          \
    static gumbel_status name(gb_jinja_state *state, const gb_jinja_value *subject,                          \
                              const gb_jinja_value *arguments, gb_jinja_value *result) {                     \
        (void)arguments;                                                                                     \
        return call;                                                                                         \
    }

#define GB_JINJA_MAX_PARAMETERS 4

/* A row of a table; the last row of each has no name. One of run and run_variadic is set, or neither for a
 * method that would change its object: looking that up gives undefined. */
struct gb_jinja_builtin {
    const char *name;
    gb_jinja_function run;
    const char *parameters[GB_JINJA_MAX_PARAMETERS];
    size_t required; /* how many of them must be given */
    gb_jinja_variadic_function run_variadic;
};

/* Rows by name; NULL when there is none. */
const gb_jinja_builtin *gb_jinja_find_builtin(const gb_jinja_builtin *table, gb_jinja_text name);
const gb_jinja_builtin *gb_jinja_find_filter(gb_jinja_text name);

extern const gb_jinja_builtin gb_jinja_value_filters[];
extern const gb_jinja_builtin gb_jinja_text_filters[];
extern const gb_jinja_builtin gb_jinja_item_filters[];
extern const gb_jinja_builtin gb_jinja_select_filters[];
extern const gb_jinja_builtin gb_jinja_tests[];
extern const gb_jinja_builtin gb_jinja_string_methods[];
extern const gb_jinja_builtin gb_jinja_dict_methods[];
extern const gb_jinja_builtin gb_jinja_globals[];

/* Binds the arguments to the parameters and runs it. kind ("filter", "test", ...) is for messages. */
gumbel_status gb_jinja_run_builtin(gb_jinja_state *state, const char *kind, const gb_jinja_builtin *builtin,
                                   const gb_jinja_value *subject, const gb_jinja_arguments *arguments,
                                   gb_jinja_value *result);

/* Filters and tests by name. UNSUPPORTED, naming it, when there is none. */
gumbel_status gb_jinja_apply_filter(gb_jinja_state *state, gb_jinja_text name, const gb_jinja_value *subject,
                                    const gb_jinja_arguments *arguments, gb_jinja_value *result);
gumbel_status gb_jinja_apply_test(gb_jinja_state *state, gb_jinja_text name, const gb_jinja_value *subject,
                                  const gb_jinja_arguments *arguments, bool *result);

/* Reading an argument: the one given, or else otherwise. FORMAT, naming the parameter, for the wrong type. */
gumbel_status gb_jinja_text_argument(gb_jinja_state *state, const gb_jinja_value *argument, const char *name,
                                     gb_jinja_text otherwise, gb_jinja_text *text);
gumbel_status gb_jinja_integer_argument(gb_jinja_state *state, const gb_jinja_value *argument,
                                        const char *name, int64_t otherwise, int64_t *integer);
bool gb_jinja_boolean_argument(const gb_jinja_value *argument, bool otherwise);

#endif
