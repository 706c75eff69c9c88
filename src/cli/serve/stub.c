/* SPDX-License-Identifier: Apache-2.0
 *
 * A build without libmicrohttpd, or for another system than Linux.
 */
#include "cli/base/report.h"
#include "cli/serve/serve.h"

int serve_run(const serve_arguments *arguments) {
    (void)arguments;
    return cli_fail("this build has no server, which needs Linux and libmicrohttpd (on Debian or Ubuntu: "
                    "libmicrohttpd-dev)");
}
