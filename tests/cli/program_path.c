/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program_path.h"

const char gumbel_command_path[] = GUMBEL_COMMAND;
const char gumbel_manual_pages[] = GUMBEL_MANUAL_PAGES;
