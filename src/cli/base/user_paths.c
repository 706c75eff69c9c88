/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/user_paths.h"

#include "base/status.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* NULL: not known. A relative one is as good as none. */
static const char *home(void) {
    const char *variable = getenv("HOME");
    if (variable && variable[0] == '/')
        return variable;
    const struct passwd *user = getpwuid(getuid());
    return user && user->pw_dir && user->pw_dir[0] == '/' ? user->pw_dir : NULL;
}

void cli_add_user_path(gb_byte_buffer *text, const char *path) {
    bool is_home = path[0] == '~' && (path[1] == '\0' || path[1] == '/');
    const char *folder = is_home ? home() : NULL;
    if (folder)
        cli_append_string(text, folder);
    cli_append_string(text, folder ? path + 1 : path);
}

static gumbel_status make_folder(const char *path, gumbel_error *error) {
    bool is_there = mkdir(path, 0700) == 0 || errno == EEXIST || access(path, X_OK) == 0;
    return is_there ? GUMBEL_OK : gb_fail_errno(error, errno, "%s", path);
}

gumbel_status cli_make_folders(const char *path, gumbel_error *error) {
    char *part = cli_copy_text(path, strlen(path));
    gumbel_status status = GUMBEL_OK;
    for (char *slash = part; status == GUMBEL_OK && (slash = strchr(slash + 1, '/')); *slash = '/') {
        *slash = '\0';
        status = make_folder(part, error);
    }
    free(part);
    return status == GUMBEL_OK ? make_folder(path, error) : status;
}

bool cli_state_path(const char *name, gb_byte_buffer *text) {
    const char *state = getenv("XDG_STATE_HOME");
    bool is_given = state && state[0] == '/'; /* a relative one is to be ignored */
    const char *folder = is_given ? state : home();
    gb_byte_buffer path = {0};
    if (!folder)
        return false;
    cli_append_string(&path, folder);
    cli_append_string(&path, is_given ? "/gumbel" : "/.local/state/gumbel");
    bool is_there = cli_make_folders(path.text, NULL) == GUMBEL_OK;
    if (is_there) {
        cli_append_string(text, path.text);
        cli_append_string(text, "/");
        cli_append_string(text, name);
    }
    gb_buffer_free(&path);
    return is_there;
}
