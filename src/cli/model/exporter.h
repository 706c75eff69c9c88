/* SPDX-License-Identifier: Apache-2.0
 *
 * One export as the command line does it: progress on a terminal, notices as notes, and Ctrl-C, SIGTERM,
 * SIGHUP and SIGPIPE end it with nothing left behind. The export command and the cache of programs use it.
 */
#ifndef GUMBEL_CLI_MODEL_EXPORTER_H
#define GUMBEL_CLI_MODEL_EXPORTER_H

#include "gumbel.h"

/* Exports checkpoint to path with the options, whose log, progress and size are set here, and notes what was
 * written. Blobs of the hub's cache are verified first. quiet: only warnings are reported. Errors as
 * gumbel_export's and hub_verify's. */
gumbel_status cli_export(const char *checkpoint, const char *path, gumbel_export_options options, bool quiet,
                         gumbel_error *error);

#endif
