/* SPDX-License-Identifier: Apache-2.0 */
#include "outputs.h"

#include "cases.h"
#include "lives.h"
#include "support/temporary.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    bool is_removed_first;
} files[LIFE_OUTPUTS] = {{"exported.gumbel", true},
                         {"packed.gumbel", true},
                         {"life.session", false},
                         {"chat.session", true},
                         {"logits.npy", true}};

static uint64_t hash_file(const char *path) {
    uint64_t hash = 0xcbf29ce484222325u;
    char bytes[65536];
    ssize_t count;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    while ((count = read(file, bytes, sizeof bytes)) > 0)
        hash_bytes(&hash, bytes, (size_t)count);
    close(file);
    return hash;
}

life_outputs read_outputs(void) {
    life_outputs outputs;
    for (size_t i = 0; i < LIFE_OUTPUTS; i++)
        outputs.hashes[i] = hash_file(temporary_path(files[i].name));
    return outputs;
}

static void check_temporaries(const char *what, uint64_t nth) {
    DIR *folder = opendir(temporary_directory());
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (strncmp(entry->d_name, ".gumbel-temporary-", 18) == 0)
            fail_case("%s %" PRIu64 ": %s is left", what, nth, entry->d_name);
    if (folder)
        closedir(folder);
}

void check_outputs(const life_outputs *before, const life_outputs *whole, const char *what, uint64_t nth) {
    const life_outputs now = read_outputs();
    for (size_t i = 0; i < LIFE_OUTPUTS; i++) {
        const uint64_t hash = now.hashes[i];
        const bool may_be = hash == before->hashes[i] || hash == whole->hashes[i];
        if (!may_be && (hash != 0 || !files[i].is_removed_first))
            fail_case("%s %" PRIu64 ": %s is neither the old file nor the whole one", what, nth,
                      files[i].name);
    }
    check_temporaries(what, nth);
}

void check_written(const life_outputs *whole, const char *what, uint64_t nth) {
    const life_outputs now = read_outputs();
    for (size_t i = 0; i < LIFE_OUTPUTS; i++)
        if (whole->hashes[i] != 0 && now.hashes[i] != whole->hashes[i])
            fail_case("%s %" PRIu64 ": no error, and %s is not what it is otherwise", what, nth,
                      files[i].name);
}
