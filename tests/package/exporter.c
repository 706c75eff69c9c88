/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports a checkpoint and opens what came out:  exporter CHECKPOINT PROGRAM
 */
#include <gumbel.h>
#include <stdio.h>

int main(int argc, char **argv) {
    gumbel_program *program = NULL;
    gumbel_error error = {GUMBEL_OK, "usage: exporter CHECKPOINT PROGRAM"};
    if (argc != 3 || gumbel_export(argv[1], argv[2], NULL, &error) ||
        gumbel_program_open(argv[2], &program, &error))
        return fprintf(stderr, "%s\n", error.message), 1;
    gumbel_program_close(program);
    return 0;
}
