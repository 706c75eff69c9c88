/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/user_paths.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add(cli_text *text, const char *added) {
    cli_text_add(text, added, strlen(added));
}

/* NULL: not known. A relative one is as good as none. */
static const char *home(void) {
    const char *variable = getenv("HOME");
    if (variable && variable[0] == '/')
        return variable;
    const struct passwd *user = getpwuid(getuid());
    return user && user->pw_dir && user->pw_dir[0] == '/' ? user->pw_dir : NULL;
}

void cli_add_user_path(cli_text *text, const char *path) {
    bool is_home = path[0] == '~' && (path[1] == '\0' || path[1] == '/');
    const char *folder = is_home ? home() : NULL;
    if (folder)
        add(text, folder);
    add(text, folder ? path + 1 : path);
}

/* Makes each folder of a path that is missing. */
static bool make_folders(char *path) {
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        bool is_there = mkdir(path, 0700) == 0 || errno == EEXIST || access(path, X_OK) == 0;
        if (slash)
            *slash = '/';
        if (!is_there || !slash)
            return is_there;
    }
}

bool cli_state_path(const char *name, cli_text *text) {
    const char *state = getenv("XDG_STATE_HOME");
    bool is_given = state && state[0] == '/'; /* a relative one is to be ignored */
    const char *folder = is_given ? state : home();
    cli_text path = {0};
    if (!folder)
        return false;
    add(&path, folder);
    add(&path, is_given ? "/gumbel" : "/.local/state/gumbel");
    bool is_there = make_folders(path.bytes);
    if (is_there) {
        add(text, path.bytes);
        add(text, "/");
        add(text, name);
    }
    cli_text_free(&path);
    return is_there;
}
