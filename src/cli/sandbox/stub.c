/* SPDX-License-Identifier: Apache-2.0
 *
 * For builds without libseccomp, and for those with sanitizers, whose runtimes trace the process.
 */
#include "cli/sandbox/sandbox.h"

void cli_sandbox_enter(const cli_sandbox_options *options, const cli_sandbox_needs *needs) {
    (void)options;
    (void)needs;
}
