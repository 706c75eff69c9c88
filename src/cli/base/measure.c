/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/measure.h"

#include "base/clock.h"
#include "cli/base/storage.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20, MEASURED_PIECES = 128 };

double cli_peak_megabytes(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
#if defined(__APPLE__)
    return (double)usage.ru_maxrss / 1e6; /* bytes there, KiB elsewhere */
#else
    return (double)usage.ru_maxrss * 1024 / 1e6;
#endif
}

void cli_forget_peak(void) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file)
        return;
    fputs("5", file); /* Linux: the peak becomes what is resident now */
    fclose(file);
}

/* A new file in the directory of path that has lost its name already; -1 on failure. */
static int open_nameless(const char *path) {
    gb_byte_buffer name = {0};
    const char *slash = strrchr(path, '/');
    cli_append(&name, path, slash ? (size_t)(slash - path) + 1 : 0);
    cli_append_string(&name, ".gumbel-disk-XXXXXX");
    int descriptor = mkstemp(name.text);
    if (descriptor >= 0)
        unlink(name.text);
    gb_buffer_free(&name);
    return descriptor;
}

/* Fills piece from the file, beginning anew at its end. */
static bool read_piece(FILE *file, char *piece) {
    size_t filled = 0;
    while (filled < PIECE_BYTES) {
        size_t count = fread(piece + filled, 1, PIECE_BYTES - filled, file);
        if (count == 0 && (ferror(file) || ftell(file) <= 0))
            return false;
        if (count == 0)
            rewind(file);
        filled += count;
    }
    return true;
}

static bool write_piece(int descriptor, const char *piece, double *seconds) {
    double begin = gb_seconds();
    bool good = write(descriptor, piece, PIECE_BYTES) == PIECE_BYTES;
    *seconds += gb_seconds() - begin;
    return good;
}

double cli_disk_write_rate(const char *path) {
    FILE *file = fopen(path, "rb");
    int descriptor = file ? open_nameless(path) : -1;
    char *piece = cli_allocate(PIECE_BYTES, 1);
    bool good = descriptor >= 0;
    double seconds = 0;
    for (int i = 0; good && i < MEASURED_PIECES; i++)
        good = read_piece(file, piece) && write_piece(descriptor, piece, &seconds);
    double begin = gb_seconds();
    good = good && fsync(descriptor) == 0;
    seconds += gb_seconds() - begin;
    if (descriptor >= 0)
        close(descriptor);
    if (file)
        fclose(file);
    free(piece);
    return good && seconds > 0 ? (double)PIECE_BYTES * (double)MEASURED_PIECES / seconds : 0;
}
