/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of all slots. A state is one MLX array that the next step's array replaces; MLX writes in place
 * where nothing else holds the old one, so that a copy or a snapshot is a second reference until then.
 *
 * In memory a cache or ring of the program's shape [C,G,D] is [1,G,rows,D], the layout that attention reads
 * without a copy; rows grow with the positions used, up to C. A history [C] is [rows]. Of the recurrent ones
 * a memory [H,D,E] is [1,H,E,D], as gated_delta_update has it, and a tail [S,C] is as it is. Rows of q8 and
 * q4 are bytes, as codes.hpp has them, and are read as float32.
 */
#ifndef GUMBEL_RUN_MLX_SLOTS_HPP
#define GUMBEL_RUN_MLX_SLOTS_HPP

#include "backends/mlx/arrays.hpp"

#include <optional>
#include <vector>

namespace gb_mlx {

/* From rows of tokens [n,H,D] to the layout of attention, [1,H,n,D], and back. */
mx::array by_head(const mx::array &x);
mx::array by_token(const mx::array &x);

/* Rows of a cache that hold positions first .. end - 1. */
struct cache_view {
    mx::array rows;             /* [1,G,L,D] or [L] */
    std::vector<int> positions; /* [L] where the rows are not just those positions in order: of each row the
                                 * latest position that it can hold, negative if none */
};

class slots {
  public:
    slots(const gb_program &of_program, uint32_t count, uint32_t context, bool with_snapshots);

    /* Rows [n,G,D] or [n] as the state stores them, [n,G,bytes] where it has codes: what append and join
     * take. */
    mx::array rounded(uint32_t state, const mx::array &rows) const;

    /* Stores rounded rows at positions start .. start + n - 1; of a ring the last ones that fit. */
    void append(uint32_t slot, uint32_t state, const mx::array &rows, int start);

    /* The rows of positions first .. end - 1, which have been stored: in order where they lie so, otherwise
     * all rows of the ring. */
    cache_view read(uint32_t slot, uint32_t state, int first, int end) const;

    /* Gives a cache rows up to position end - 1, so that they can be read; those not stored are zero. */
    void reserve(uint32_t slot, uint32_t state, int end);

    /* Whether storing so many rows would overwrite some that the first of them reads. */
    bool overwrites(uint32_t state, int count) const;

    /* The rows of positions first .. start - 1, which are stored, and then rounded rows, which are not, as
     * read would give both: a view in order. */
    cache_view join(uint32_t slot, uint32_t state, int first, const mx::array &rows, int start) const;

    /* A recurrent state; zeros at first. */
    mx::array recurrent(uint32_t slot, uint32_t state) const;
    void set_recurrent(uint32_t slot, uint32_t state, mx::array value);

    /* The recurrent states of a slot, which put_back makes the slot's again. */
    std::vector<std::optional<mx::array>> recurrent_states(uint32_t slot) const;
    void put_back(uint32_t slot, const std::vector<std::optional<mx::array>> &recurrent);

    /* Checks that the slot holds all tokens before start: it does not after a step that failed. */
    void check(uint32_t slot, int start) const;
    void advance(uint32_t slot, int end);

    /* Bytes of a slot's caches and rings. */
    size_t cache_bytes(uint32_t slot) const;

    /* All arrays of a slot, to be evaluated. */
    void collect(uint32_t slot, std::vector<mx::array> &arrays) const;

    /* See backend.h. A slot whose step failed is reset too. */
    void reset(uint32_t slot);
    void copy(uint32_t from, uint32_t to);
    void take_snapshot(uint32_t slot);
    void restore_snapshot(uint32_t slot);
    void save(uint32_t slot, uint32_t position, gb_save_stream write, void *user) const;
    void load(uint32_t slot, uint32_t position, gb_load_stream next, void *user);

  private:
    /* What one slot holds. end is one more than the highest position whose rows are in it. */
    struct content {
        std::vector<std::optional<mx::array>> states;
        int end = 0;
    };
    const gb_program &program;
    uint32_t max_context;
    std::vector<content> contents, snapshots;

    int capacity(uint32_t state) const;
    mx::Shape block(uint32_t state, int rows) const;
    mx::array numbers(uint32_t state, const mx::array &stored) const;
    void make_room(content &slot, uint32_t state, int rows) const;
    void put(content &slot, uint32_t state, const mx::array &rows, int start) const;
    void clear_stale(content &slot, uint32_t state, int end) const;
    mx::array saved_rows(const content &slot, uint32_t state, uint32_t position) const;
};

} // namespace gb_mlx

#endif
