/* SPDX-License-Identifier: Apache-2.0
 *
 * A build without libmicrohttpd.
 */
#include "cli/base/report.h"
#include "cli/serve/serve.h"

int serve_run(const serve_arguments *arguments) {
    (void)arguments;
    return cli_fail("this build has no server: libmicrohttpd was not found (on Debian or Ubuntu: "
                    "libmicrohttpd-dev)");
}
