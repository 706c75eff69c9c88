/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of encoding single lines of 250 KB and 1 MB, and how much longer the longer one takes (4 is linear):
 * words, one repeated letter, spaces, characters that have no token, and marks that normalizing puts in order
 * (byte-level tokenizers normalize); and of decoding the words again.
 *
 *     bench_tokenizer CHECKPOINT_DIRECTORY
 */
#include "gumbel.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 250 << 10, LONG = 1000 << 10, REPEATS = 5 };

typedef struct bench {
    gumbel_tokenizer *tokenizer;
    char *text;      /* [LONG] */
    int32_t *tokens; /* [LONG] */
    size_t count;
} bench;

/* Repeats the samples in a fixed disorder. */
static void fill(char *text, const char *const *samples, size_t count) {
    uint32_t state = 1;
    for (size_t at = 0; at < LONG;) {
        state = state * 1664525u + 1013904223u;
        const char *sample = samples[(state >> 16) % count];
        size_t size = strlen(sample), left = LONG - at;
        if (size > left) {
            memset(text + at, ' ', left);
            return;
        }
        memcpy(text + at, sample, size);
        at += size;
    }
}

/* The best of some runs, in seconds. */
static double time_encode(bench *b, size_t length) {
    double best = 1e9;
    for (int i = 0; i < REPEATS; i++) {
        gumbel_error error;
        double start = gb_seconds();
        if (gumbel_encode(b->tokenizer, b->text, length, NULL, b->tokens, LONG, &b->count, &error)) {
            fprintf(stderr, "%s\n", error.message);
            exit(1);
        }
        double taken = gb_seconds() - start;
        best = taken < best ? taken : best;
    }
    return best;
}

static void report_encode(bench *b, const char *name, const char *const *samples, size_t count) {
    fill(b->text, samples, count);
    double shorter = time_encode(b, SHORT), longer = time_encode(b, LONG);
    printf("encode %-10s %8.1f MB/s at 250 KB %8.1f MB/s at 1 MB  ratio %.2f  %zu tokens\n", name,
           SHORT / shorter * 1e-6, LONG / longer * 1e-6, longer / shorter, b->count);
}

static void report_decode(const bench *b) {
    gumbel_detokenizer *detokenizer;
    size_t total = 0;
    if (gumbel_detokenizer_create(b->tokenizer, false, &detokenizer, NULL))
        exit(1);
    double start = gb_seconds();
    for (size_t i = 0; i < b->count; i++) {
        const char *text;
        size_t length;
        if (gumbel_detokenize(detokenizer, b->tokens[i], &text, &length, NULL) == GUMBEL_OK)
            total += length;
    }
    double taken = gb_seconds() - start;
    printf("decode %-10s %8.1f MB/s  %.0f ns a token\n", "words", (double)total / taken * 1e-6,
           taken / (double)b->count * 1e9);
    gumbel_detokenizer_destroy(detokenizer);
}

int main(int argc, char **argv) {
    static const char *const words[] = {
        "the ",   "quick ", "brown ", "fox ",   "jumps, ",     "over ",
        "a ",     "lazy ",  "dog; ",  "3.14 ",  "murciélago ", "日本語の文章 ",
        "Zwölf ", "🙂 ",  "token ", "(x+y) ", "unusual ",    "русский "};
    static const char *const letter[] = {"a"}, *const spaces[] = {" "},
                             *const unknown[] = {"\U0001FAE8", "ꙮ"}, *const marks[] = {"\u0301", "\u0323"};
    bench b = {.text = malloc(LONG), .tokens = malloc(LONG * sizeof(int32_t))};
    gumbel_error error;
    if (argc != 2 || !b.text || !b.tokens) {
        fprintf(stderr, "usage: bench_tokenizer CHECKPOINT_DIRECTORY\n");
        return 2;
    }
    double start = gb_seconds();
    if (gumbel_export_tokenizer(argv[1], &b.tokenizer, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("tokenizer.json read in %.0f ms\n", (gb_seconds() - start) * 1e3);
    report_encode(&b, "letters", letter, 1);
    report_encode(&b, "spaces", spaces, 1);
    report_encode(&b, "unknown", unknown, 2);
    report_encode(&b, "marks", marks, 2);
    report_encode(&b, "words", words, sizeof words / sizeof words[0]);
    report_decode(&b);
    gumbel_tokenizer_destroy(b.tokenizer);
    free(b.text);
    free(b.tokens);
    return 0;
}
