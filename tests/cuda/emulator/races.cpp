/* SPDX-License-Identifier: Apache-2.0
 *
 * Vector clocks (Fidge 1988, Mattern 1989): every thread knows of each one up to which of its times that
 * one's accesses are ordered before its own. A word of shared memory has its last write, and each thread's
 * last read since then. Shared memory is the program's static variables; accesses of single bytes are left
 * out.
 */
#include "races.h"
#include "reports.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

extern "C" char __data_start, _end;

namespace {

constexpr size_t WORD_BYTES = 2;
constexpr int WARP = 32;

typedef std::vector<uint32_t> clock_vector; /* [thread] */

struct shared_word {
    unsigned meeting = 0; /* of the block; what was accessed before it is of no matter */
    int writer;           /* or NO_THREAD */
    uint32_t written;     /* when */
    bool is_atomic;
    const void *place;
    clock_vector reads; /* 0: none; empty: none at all */
};

thread_local int running = emulated::NO_THREAD; /* the host may have others */
unsigned meeting;
std::vector<clock_vector> clocks;
std::vector<bool> has_news; /* whether a thread did or learned something since its warp met */
std::map<const void *, clock_vector> barriers;
std::vector<shared_word> words;
std::vector<size_t> touched;

void learn(clock_vector &known, const clock_vector &other) {
    for (size_t t = 0; t < known.size(); t++)
        known[t] = std::max(known[t], other[t]);
}

/* ---- Accesses ------------------------------------------------------------------------------------------ */

shared_word &word_at(size_t index) {
    shared_word &word = words[index];
    if (word.meeting != meeting) {
        touched.push_back(index);
        word.meeting = meeting;
        word.writer = emulated::NO_THREAD;
        word.reads.clear();
    }
    return word;
}

/* Lanes of a warp that write a word by one instruction are taken to write the same. */
bool is_ordered_behind_write(const shared_word &word, bool is_atomic, const void *place) {
    return word.writer == emulated::NO_THREAD || word.written <= clocks[running][word.writer] ||
           (is_atomic && word.is_atomic) ||
           (place && word.place == place && word.writer / WARP == running / WARP);
}

int reader_not_ordered(const shared_word &word) {
    for (size_t t = 0; t < word.reads.size(); t++)
        if ((int)t != running && word.reads[t] > clocks[running][t])
            return (int)t;
    return emulated::NO_THREAD;
}

void read_word(shared_word &word, bool is_atomic) {
    if (!is_ordered_behind_write(word, is_atomic, nullptr))
        emulated::report("race: thread %d reads what thread %d writes", running, word.writer);
    if (word.reads.empty())
        word.reads.resize(clocks.size());
    word.reads[running] = clocks[running][running];
}

void write_word(shared_word &word, bool is_atomic, const void *place) {
    if (!is_ordered_behind_write(word, is_atomic, place))
        emulated::report("race: threads %d and %d write the same", running, word.writer);
    const int reader = reader_not_ordered(word);
    if (reader != emulated::NO_THREAD)
        emulated::report("race: thread %d writes what thread %d reads", running, reader);
    word.reads.clear();
    word.writer = running;
    word.written = clocks[running][running];
    word.is_atomic = is_atomic;
    word.place = place;
}

template <typename Access>
void each_word(const void *at, size_t size, Access access) {
    const uintptr_t begin = (uintptr_t)&__data_start, end = (uintptr_t)&_end, address = (uintptr_t)at;
    if (!emulated::order_is_followed || running == emulated::NO_THREAD || size < WORD_BYTES ||
        address < begin || address >= end)
        return;
    has_news[running] = true;
    if (words.empty())
        words.resize((end - begin) / WORD_BYTES + 1);
    for (size_t i = 0; i < size; i += WORD_BYTES)
        access(word_at((address + i - begin) / WORD_BYTES));
}

} // namespace

namespace emulated {

bool order_is_followed = false;

void check_read_order(const void *at, size_t size) {
    each_word(at, size, [](shared_word &word) { read_word(word, false); });
}

void check_write_order(const void *at, size_t size, const void *place) {
    each_word(at, size, [=](shared_word &word) { write_word(word, false, place); });
}

void check_atomic_order(const void *at, size_t size, bool is_write) {
    each_word(at, size, [=](shared_word &word) {
        if (is_write)
            write_word(word, true, nullptr);
        else
            read_word(word, true);
    });
}

/* ---- Order --------------------------------------------------------------------------------------------- */

void begin_block_order(unsigned threads) {
    order_is_followed = true;
    clocks.resize(threads);
    has_news.assign(threads, false);
    order_block();
}

void end_block_order() {
    order_is_followed = false;
    for (size_t index : touched)
        clock_vector().swap(words[index].reads);
    touched.clear();
}

void set_running_thread(int thread) {
    running = thread;
}

void order_block() {
    if (!order_is_followed)
        return;
    meeting++;
    barriers.clear();
    for (size_t t = 0; t < clocks.size(); t++) {
        clocks[t].assign(clocks.size(), 0);
        clocks[t][t] = 1;
    }
}

void order_warp(unsigned first, unsigned lanes) {
    const auto news = has_news.begin() + first, end = news + lanes;
    if (!order_is_followed || std::find(news, end, true) == end)
        return;
    std::fill(news, end, false);
    clock_vector all = clocks[first];
    for (unsigned t = first + 1; t < first + lanes; t++)
        learn(all, clocks[t]);
    for (unsigned t = first; t < first + lanes; t++) {
        clocks[t] = all;
        clocks[t][t]++;
    }
}

void release_order(const void *barrier) {
    if (!order_is_followed || running == NO_THREAD)
        return;
    clock_vector &known = barriers[barrier];
    known.resize(clocks.size());
    learn(known, clocks[running]);
    clocks[running][running]++;
}

void acquire_order(const void *barrier) {
    const auto known = barriers.find(barrier);
    if (!order_is_followed || running == NO_THREAD || known == barriers.end())
        return;
    learn(clocks[running], known->second);
    has_news[running] = true;
}

} // namespace emulated
