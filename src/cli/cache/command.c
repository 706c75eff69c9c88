/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel cache: the programs that commands have made from checkpoints.
 */
#include "cli/command.h"
#include "cli/base/report.h"
#include "cli/base/units.h"
#include "cli/cache/folder.h"
#include "cli/cache/list.h"

#include <stdlib.h>
#include <string.h>

typedef struct cache_arguments {
    const char *action, *max_size;
    cli_words names;
    cli_number older_than;
    bool json, all, dry_run;
} cache_arguments;

static const cli_option list_table[] = {
    {.names = "--json",
     .help = "An array of objects, for programs.",
     .type = CLI_FLAG,
     .offset = offsetof(cache_arguments, json)},
    {0},
};

static const cli_option remove_table[] = {
    {.names = "--all", .help = "All programs.", .type = CLI_FLAG, .offset = offsetof(cache_arguments, all)},
    {0},
};

static const cli_option prune_table[] = {
    {.names = "--older-than",
     .argument = "DAYS",
     .help = "Also programs that were not used for so many days.",
     .type = CLI_NUMBER,
     .range = {.low = 0, .high = 100000},
     .offset = offsetof(cache_arguments, older_than)},
    {.names = "--max-size --keep-bytes",
     .argument = "SIZE",
     .help =
         "Also programs, those unused for longest first, until the others have this size at most, such as "
         "20GB or 512MiB.",
     .type = CLI_STRING,
     .offset = offsetof(cache_arguments, max_size)},
    {.names = "--dry-run",
     .help = "Only print what would be removed.",
     .type = CLI_FLAG,
     .offset = offsetof(cache_arguments, dry_run)},
    {0},
};

/* ---- Actions ------------------------------------------------------------------------------------------- */

typedef struct cache {
    const cache_arguments *arguments;
    char *path;
    cli_cache_entries entries;
} cache;

static gumbel_status list(cache *c, gumbel_error *error) {
    (void)error;
    if (c->arguments->json)
        cli_cache_show_json(&c->entries);
    else
        cli_cache_show(&c->entries, c->path);
    return GUMBEL_OK;
}

static gumbel_status rm(cache *c, gumbel_error *error) {
    GB_TRY(cli_cache_choose_named(&c->entries, &c->arguments->names, error));
    for (size_t i = 0; i < c->entries.count && c->arguments->all; i++)
        c->entries.items[i].is_chosen = true;
    return cli_cache_remove_chosen(&c->entries, c->arguments->dry_run, error);
}

static gumbel_status prune(cache *c, gumbel_error *error) {
    const cache_arguments *arguments = c->arguments;
    uint64_t most_size = UINT64_MAX;
    if (arguments->max_size)
        (void)cli_parse_bytes(arguments->max_size, &most_size);
    cli_cache_choose_old(&c->entries, arguments->older_than.given ? arguments->older_than.value : -1,
                         most_size);
    return cli_cache_remove_chosen(&c->entries, arguments->dry_run, error);
}

/* ---- The command --------------------------------------------------------------------------------------- */

typedef gumbel_status (*action)(cache *c, gumbel_error *error);

static action find_action(const char *name) {
    static const struct {
        const char *name;
        action run;
    } actions[] = {{"list", list}, {"ls", list}, {"rm", rm}, {"prune", prune}};
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(name, actions[i].name) == 0)
            return actions[i].run;
    return NULL;
}

/* Options and names belong to one action each. */
static int check(const cache_arguments *arguments, action run) {
    bool has_names = arguments->names.count > 0;
    uint64_t bytes;
    if (!run)
        return cli_fail_usage("cache %.40s: expected list, rm or prune", arguments->action);
    if (has_names && run != rm)
        return cli_fail_usage("cache %s takes no names (found \"%.100s\")", arguments->action,
                              arguments->names.list[0]);
    if (run == rm && has_names == arguments->all)
        return cli_fail_usage("cache rm needs the NAMEs of what to remove, or --all");
    if (run != list && arguments->json)
        return cli_fail_usage("--json is an option of cache list");
    if (run != rm && arguments->all)
        return cli_fail_usage("--all is an option of cache rm");
    if (run != prune && (arguments->max_size || arguments->older_than.given))
        return cli_fail_usage("--older-than and --max-size are options of cache prune");
    if (run == list && arguments->dry_run)
        return cli_fail_usage("--dry-run is an option of cache rm and cache prune");
    if (arguments->max_size && !cli_parse_bytes(arguments->max_size, &bytes))
        return cli_fail_usage("--max-size %.40s: expected a size such as 20GB or 512MiB",
                              arguments->max_size);
    return CLI_OK;
}

static int run_cache(void *given) {
    const cache_arguments *arguments = given;
    cache c = {.arguments = arguments};
    action run = find_action(arguments->action ? arguments->action : "list");
    int wrong = check(arguments, run);
    if (wrong)
        return wrong;
    gumbel_error error;
    gumbel_status status = cli_cache_folder(&c.path, &error);
    if (status == GUMBEL_OK)
        status = cli_cache_list(c.path, &c.entries, &error);
    if (status == GUMBEL_OK)
        status = run(&c, &error);
    cli_cache_entries_free(&c.entries);
    free(c.path);
    return status == GUMBEL_OK ? CLI_OK : cli_fail_with(&error);
}

const cli_command cli_command_cache = {
    .name = "cache",
    .summary = "list and remove the programs made from checkpoints",
    .synopsis = "[list] [--json]\n"
                "rm NAME... | --all\n"
                "prune [--older-than DAYS] [--max-size SIZE] [--dry-run]",
    .description =
        "Commands that are given a checkpoint export it once into ~/.cache/gumbel ($XDG_CACHE_HOME/gumbel) "
        "and use that program from then on. Any of them may be removed at any time: the next command makes "
        "it again. One that runs stays whole until it ends; one that is being exported is left alone.\n"
        "list shows each with its size, when it was last used, the recipe and the checkpoint it was made "
        "from, "
        "and its state: current; stale, where the checkpoint, the recipe or gumbel has changed since; "
        "orphaned, "
        "where the checkpoint is gone; unreadable; unfinished, what an export has left that was killed; "
        "exporting. prune removes those that are stale, orphaned, unreadable or unfinished, and more where "
        "options say so.",
    .operands = (const cli_operand[]){{"ACTION", offsetof(cache_arguments, action), false,
                                       "list, which is the default, rm or prune."},
                                      {0}},
    .rest = &(const cli_operand){"NAME", offsetof(cache_arguments, names), false,
                                 "With rm: an entry's name, as list has it; or a model's or the path of a "
                                 "checkpoint, which stand for all of its entries: google/gemma-4-31B-it."},
    .groups = (const cli_option_group[]){{.title = "List", .options = list_table},
                                         {.title = "Remove", .options = remove_table},
                                         {.title = "Prune", .options = prune_table},
                                         {0}},
    .examples = (const cli_example[]){{"gumbel cache", "What is there."},
                                      {"gumbel cache prune --older-than 30",
                                       "Removes what is of no use, and what was not used for a month."},
                                      {0}},
    .arguments_size = sizeof(cache_arguments),
    .run = run_cache,
};
