/* SPDX-License-Identifier: Apache-2.0
 *
 * For builds without libseccomp, and for those with sanitizers, whose runtimes trace the process.
 */
#include "cli/sandbox/sandbox.h"

const bool cli_has_sandbox = false;

void cli_sandbox_enter(const cli_sandbox_options *options, const cli_sandbox_needs *needs) {
    (void)options;
    (void)needs;
}
