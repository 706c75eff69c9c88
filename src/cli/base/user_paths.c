/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/user_paths.h"

#include "hub/cache.h"

#include <pwd.h>
#include <stdlib.h>
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

bool cli_state_path(const char *name, gb_byte_buffer *text) {
    const char *state = getenv("XDG_STATE_HOME");
    bool is_given = state && state[0] == '/'; /* a relative one is to be ignored */
    const char *folder = is_given ? state : home();
    gb_byte_buffer path = {0};
    if (!folder)
        return false;
    cli_append_string(&path, folder);
    cli_append_string(&path, is_given ? "/gumbel" : "/.local/state/gumbel");
    bool is_there = hub_make_folder(path.text, 0700, NULL) == GUMBEL_OK;
    if (is_there) {
        cli_append_string(text, path.text);
        cli_append_string(text, "/");
        cli_append_string(text, name);
    }
    gb_buffer_free(&path);
    return is_there;
}
