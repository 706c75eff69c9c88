/* SPDX-License-Identifier: Apache-2.0
 *
 * What the emulated device finds wrong with kernels: reported once for each chain of calls, and in the end
 * the program's status is 99.
 */
#ifndef GUMBEL_TESTS_EMULATED_REPORTS_H
#define GUMBEL_TESTS_EMULATED_REPORTS_H

namespace emulated {

__attribute__((format(printf, 1, 2))) void report(const char *format, ...);

}

#endif
