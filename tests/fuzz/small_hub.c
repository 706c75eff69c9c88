/* SPDX-License-Identifier: Apache-2.0 */
#include "small_hub.h"

#include "cases.h"
#include "hub/hash.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum { LARGEST = 700000 };

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

typedef struct hub_content {
    const char *name;
    size_t size;
    char hash[HUB_HASH];
} hub_content;

/* Of one chunk, of several, and of none. */
static hub_content files[SMALL_HUB_FILES] = {{.name = "config.json", .size = 300},
                                             {.name = "model.safetensors", .size = LARGEST},
                                             {.name = "additional_chat_templates/use.jinja", .size = 40},
                                             {.name = "generation_config.json", .size = 0}};

static bool is_large(const hub_content *file) {
    return file->size == LARGEST;
}

/* The same bytes every time, others for each file. */
static const unsigned char *bytes_of(const hub_content *file) {
    static unsigned char bytes[LARGEST];
    random_source source = {file->size};
    for (size_t i = 0; i < file->size; i++)
        bytes[i] = (unsigned char)random_bits(&source);
    return bytes;
}

static void hash_content(hub_content *file) {
    hub_file hashed = {.size = file->size};
    memset(hashed.hash, '0', is_large(file) ? HUB_SHA256 : HUB_SHA1);
    hub_hash *hash = hub_hash_begin(&hashed);
    if (!hash || !hub_hash_add(hash, bytes_of(file), file->size))
        fail_case("%s: no hash", file->name);
    hub_hash_end(hash, file->hash);
}

/* ---- Answers ------------------------------------------------------------------------------------------- */

static void send_all(int client, const void *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        const ssize_t sent = send(client, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        done += (size_t)sent;
    }
}

static void send_head(int client, const char *status, size_t size, const char *more) {
    char head[512];
    const int length =
        snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n%s\r\n",
                 status, size, more);
    send_all(client, head, (size_t)length);
}

static void send_listing(int client) {
    char text[2048] = "{\"sha\":\"" COMMIT "\",\"siblings\":[";
    for (size_t i = 0; i < SMALL_HUB_FILES; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used,
                 is_large(&files[i])
                     ? "%s{\"rfilename\":\"%s\",\"size\":%zu,\"lfs\":{\"sha256\":\"%s\",\"size\":%zu}}"
                     : "%s{\"rfilename\":\"%s\",\"size\":%zu,\"blobId\":\"%s\"}",
                 i ? "," : "", files[i].name, files[i].size, files[i].hash, files[i].size);
    }
    strcat(text, "]}");
    send_head(client, "200 OK", strlen(text), "");
    send_all(client, text, strlen(text));
}

static void send_content(int client, const hub_content *file, const char *range) {
    size_t first, last;
    char more[128] = "";
    if (!range || sscanf(range, "\r\nRange: bytes=%zu-%zu", &first, &last) != 2 || last >= file->size) {
        send_head(client, "200 OK", file->size, more);
        send_all(client, bytes_of(file), file->size);
        return;
    }
    snprintf(more, sizeof more, "Content-Range: bytes %zu-%zu/%zu\r\n", first, last, file->size);
    send_head(client, "206 Partial Content", last + 1 - first, more);
    send_all(client, bytes_of(file) + first, last + 1 - first);
}

static void answer(int client) {
    char request[4096], path[256];
    size_t length = 0;
    ssize_t count = 1;
    request[0] = '\0';
    while (!strstr(request, "\r\n\r\n") && length < sizeof request - 1 &&
           (count = recv(client, request + length, sizeof request - 1 - length, 0)) > 0) {
        length += (size_t)count;
        request[length] = '\0';
    }
    if (count <= 0)
        return;
    if (strncmp(request, "GET /api/", 9) == 0)
        send_listing(client);
    for (size_t i = 0; i < SMALL_HUB_FILES; i++) {
        snprintf(path, sizeof path, "GET /org/name/resolve/" COMMIT "/%s ", files[i].name);
        if (strncmp(request, path, strlen(path)) == 0)
            send_content(client, &files[i], strstr(request, "\r\nRange: "));
    }
}

static _Noreturn void serve(int listener) {
    const struct timeval limit = {.tv_sec = 2};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        const int client = accept(listener, NULL, NULL);
        if (client < 0)
            continue;
        setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        answer(client);
        close(client);
    }
}

void start_small_hub(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    char url[64];
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    for (size_t i = 0; i < SMALL_HUB_FILES; i++)
        hash_content(&files[i]);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        fail_case("the hub has no port");
    snprintf(url, sizeof url, "http://127.0.0.1:%u", ntohs(address.sin_port));
    setenv("HF_ENDPOINT", url, 1);
    fflush(NULL);
    if (fork() == 0)
        serve(listener);
    close(listener);
}

/* ---- The cache ----------------------------------------------------------------------------------------- */

typedef enum place_state { ABSENT, WHOLE, WRONG } place_state;

static place_state compare(const char *path, const void *bytes, size_t size) {
    static char found[LARGEST + 1];
    struct stat information;
    if (lstat(path, &information) != 0)
        return ABSENT;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t count;
    while (file >= 0 && (count = read(file, found + length, sizeof found - length)) > 0)
        length += (size_t)count;
    const bool is_whole = file >= 0 && length == size && memcmp(found, bytes, size) == 0;
    if (file >= 0)
        close(file);
    return is_whole ? WHOLE : WRONG;
}

static bool is_whole(const char *path, const void *bytes, size_t size, bool must_be, const char *what,
                     size_t nth) {
    const place_state state = compare(path, bytes, size);
    if (state == WRONG || (must_be && state == ABSENT))
        fail_case("%s %zu: %s is %s", what, nth, path, state == WRONG ? "wrong" : "not there");
    return state == WHOLE;
}

void check_hub_cache(const char *home, bool must_be_whole, const char *what, size_t nth) {
    char path[1024];
    bool has_all = true;
    for (size_t i = 0; i < SMALL_HUB_FILES; i++) {
        const unsigned char *bytes = bytes_of(&files[i]);
        snprintf(path, sizeof path, "%s/hub/models--org--name/blobs/%s", home, files[i].hash);
        (void)is_whole(path, bytes, files[i].size, must_be_whole, what, nth);
        snprintf(path, sizeof path, "%s/hub/models--org--name/snapshots/" COMMIT "/%s", home, files[i].name);
        has_all &= is_whole(path, bytes, files[i].size, must_be_whole, what, nth);
    }
    snprintf(path, sizeof path, "%s/hub/models--org--name/refs/main", home);
    if (is_whole(path, COMMIT, sizeof COMMIT - 1, must_be_whole, what, nth) && !has_all)
        fail_case("%s %zu: refs/main is there before its files", what, nth);
}
