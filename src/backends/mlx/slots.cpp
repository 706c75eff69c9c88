/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/mlx/slots.hpp"

#include "backends/mlx/codes.hpp"

extern "C" {
#include "backends/states/saved_rows.h"
}

#include <algorithm>

namespace gb_mlx {

enum { GROWTH = 256 }; /* rows are reserved in multiples of this */

slots::slots(const gb_program &of_program, uint32_t count, uint32_t context, bool with_snapshots)
    : program(of_program), max_context(context) {
    content empty;
    empty.states.resize(program.state_count);
    contents.assign(count, empty);
    if (with_snapshots)
        snapshots.assign(count, empty);
}

/* Rows that a state has at most. */
int slots::capacity(uint32_t state) const {
    const gb_state &s = program.states[state];
    const auto rows = static_cast<int>(s.type.shape.dims[0]);
    return s.kind == GB_STATE_CACHE ? std::min(rows, static_cast<int>(max_context)) : rows;
}

/* Elements of a head of a cache or ring, and how many numbers or bytes its row has in memory. */
static int head_size(const gb_state &state) {
    return static_cast<int>(state.type.shape.dims[2]);
}

static int stored_size(const gb_state &state) {
    const gb_dtype dtype = state.type.dtype;
    return gb_dtype_has_codes(dtype) ? coded_bytes(dtype, head_size(state)) : head_size(state);
}

/* The shape in memory of that many rows. */
mx::Shape slots::block(uint32_t state, int rows) const {
    const gb_state &s = program.states[state];
    if (s.type.shape.rank == 1)
        return {rows};
    return {1, static_cast<int>(s.type.shape.dims[1]), rows, stored_size(s)};
}

mx::array by_head(const mx::array &x) {
    if (x.shape(0) == 1)
        return mx::reshape(x, {1, x.shape(1), 1, x.shape(2)});
    return mx::expand_dims(mx::swapaxes(x, 0, 1), 0);
}

mx::array by_token(const mx::array &x) {
    if (x.shape(2) == 1)
        return mx::reshape(x, {1, x.shape(1), x.shape(3)});
    return mx::swapaxes(mx::squeeze(x, 0), 0, 1);
}

static int row_axis(const mx::array &block) {
    return block.ndim() == 1 ? 0 : 2;
}

/* ---- Caches -------------------------------------------------------------------------------------------- */

/* Gives the state at least that many rows; new ones are zero. */
void slots::make_room(content &slot, uint32_t state, int rows) const {
    std::optional<mx::array> &data = slot.states[state];
    const int have = data ? data->shape(row_axis(*data)) : 0;
    if (have >= rows)
        return;
    int wanted = std::max(rows, have + have / 2);
    wanted = std::min((wanted + GROWTH - 1) / GROWTH * GROWTH, capacity(state));
    const mx::array added =
        mx::zeros(block(state, wanted - have), dtype_of(program.states[state].type.dtype));
    data = data ? mx::concatenate({*data, added}, row_axis(*data)) : added;
}

/* Writes rows, in the layout of memory, at positions start and on, around the end of a ring. */
void slots::put(content &slot, uint32_t state, const mx::array &rows, int start) const {
    std::optional<mx::array> &data = slot.states[state];
    const int axis = row_axis(*data), count = rows.shape(axis), most = capacity(state);
    for (int done = 0; done < count;) {
        const int at = (start + done) % most, together = std::min(count - done, most - at);
        mx::Shape first(data->ndim(), 0), end = data->shape();
        first[static_cast<size_t>(axis)] = at;
        end[static_cast<size_t>(axis)] = at + together;
        const mx::array old = *std::exchange(data, std::nullopt);
        data = mx::slice_update(old, part(rows, axis, done, done + together), first, end);
        done += together;
    }
}

/* Rows of a ring that tokens wrote which the session has taken back lie where masked rows are read: a NaN
 * among them would spread. */
void slots::clear_stale(content &slot, uint32_t state, int end) const {
    const int stale = std::min(slot.end - end, capacity(state));
    if (stale > 0 && program.states[state].kind == GB_STATE_RING)
        put(slot, state, mx::zeros(block(state, stale), slot.states[state]->dtype()), slot.end - stale);
}

mx::array slots::rounded(uint32_t state, const mx::array &rows) const {
    const gb_dtype dtype = program.states[state].type.dtype;
    return gb_dtype_has_codes(dtype) ? round_to_codes(rows, dtype) : mx::astype(rows, dtype_of(dtype));
}

mx::array slots::numbers(uint32_t state, const mx::array &stored) const {
    const gb_state &s = program.states[state];
    return gb_dtype_has_codes(s.type.dtype) ? numbers_of_codes(stored, s.type.dtype, head_size(s)) : stored;
}

void slots::append(uint32_t slot, uint32_t state, const mx::array &rows, int start) {
    content &to = contents[slot];
    const int count = rows.shape(0), most = capacity(state), left_out = std::max(0, count - most);
    make_room(to, state, std::min(start + count, most));
    clear_stale(to, state, start + count);
    const mx::array kept = left_out > 0 ? part(rows, 0, left_out, count) : rows;
    put(to, state, rows.ndim() == 1 ? kept : by_head(kept), start + left_out);
}

void slots::reserve(uint32_t slot, uint32_t state, int end) {
    make_room(contents[slot], state, end);
}

bool slots::overwrites(uint32_t state, int count) const {
    const gb_state &s = program.states[state];
    return s.kind == GB_STATE_RING && count > capacity(state) - static_cast<int>(s.window) + 1;
}

cache_view slots::join(uint32_t slot, uint32_t state, int first, const mx::array &rows, int start) const {
    const mx::array moved = by_head(rows);
    const int most = capacity(state), axis = row_axis(moved);
    std::vector<mx::array> parts;
    for (int at = first; at < start;) {
        const int row = at % most, count = std::min(start - at, most - row);
        parts.push_back(part(*contents[slot].states[state], axis, row, row + count));
        at += count;
    }
    parts.push_back(moved);
    return {numbers(state, mx::concatenate(parts, axis)), {}};
}

cache_view slots::read(uint32_t slot, uint32_t state, int first, int end) const {
    const mx::array &data = *contents[slot].states[state];
    const int axis = row_axis(data), most = capacity(state);
    if (first / most == (end - 1) / most)
        return {numbers(state, part(data, axis, first % most, (end - 1) % most + 1)), {}};
    cache_view view = {numbers(state, data), std::vector<int>(static_cast<size_t>(most))};
    for (int row = 0; row < most; row++)
        view.positions[static_cast<size_t>(row)] = end - 1 - ((end - 1 - row) % most + most) % most;
    return view;
}

/* ---- Recurrent states ---------------------------------------------------------------------------------- */

mx::array slots::recurrent(uint32_t slot, uint32_t state) const {
    const std::optional<mx::array> &data = contents[slot].states[state];
    if (data)
        return *data;
    const gb_shape &shape = program.states[state].type.shape;
    mx::Shape dims;
    for (int32_t i = 0; i < shape.rank; i++)
        dims.push_back(static_cast<int>(shape.dims[i]));
    if (shape.rank == 3)
        dims = {1, dims[0], dims[2], dims[1]};
    return mx::zeros(dims, mx::float32);
}

void slots::set_recurrent(uint32_t slot, uint32_t state, mx::array value) {
    contents[slot].states[state] = std::move(value);
}

/* ---- Slots --------------------------------------------------------------------------------------------- */

void slots::check(uint32_t slot, int start) const {
    if (start > contents[slot].end)
        throw failure(GUMBEL_ERROR_BACKEND, "mlx: the state of slot " + std::to_string(slot) +
                                                " was lost when a step failed; reset the session");
}

void slots::advance(uint32_t slot, int end) {
    contents[slot].end = end;
}

size_t slots::cache_bytes(uint32_t slot) const {
    size_t bytes = 0;
    for (uint32_t i = 0; i < program.state_count; i++)
        if (program.states[i].kind != GB_STATE_RECURRENT && contents[slot].states[i])
            bytes += contents[slot].states[i]->nbytes();
    return bytes;
}

void slots::collect(uint32_t slot, std::vector<mx::array> &arrays) const {
    for (const auto &state : contents[slot].states)
        if (state)
            arrays.push_back(*state);
}

void slots::reset(uint32_t slot) {
    for (auto &state : contents[slot].states)
        state.reset();
    contents[slot].end = 0;
}

void slots::copy(uint32_t from, uint32_t to) {
    contents[to] = contents[from];
}

std::vector<std::optional<mx::array>> slots::recurrent_states(uint32_t slot) const {
    std::vector<std::optional<mx::array>> kept(program.state_count);
    for (uint32_t i = 0; i < program.state_count; i++)
        if (program.states[i].kind == GB_STATE_RECURRENT)
            kept[i] = contents[slot].states[i];
    return kept;
}

void slots::put_back(uint32_t slot, const std::vector<std::optional<mx::array>> &recurrent) {
    for (uint32_t i = 0; i < program.state_count; i++)
        if (program.states[i].kind == GB_STATE_RECURRENT)
            contents[slot].states[i] = recurrent[i];
}

/* Caches are left out: their rows below the snapshot's position stay as they are until the slot goes back. */
void slots::take_snapshot(uint32_t slot) {
    snapshots[slot] = contents[slot];
    for (uint32_t i = 0; i < program.state_count; i++)
        if (program.states[i].kind == GB_STATE_CACHE)
            snapshots[slot].states[i].reset();
}

void slots::restore_snapshot(uint32_t slot) {
    for (uint32_t i = 0; i < program.state_count; i++)
        if (program.states[i].kind != GB_STATE_CACHE)
            contents[slot].states[i] = snapshots[slot].states[i];
    contents[slot].end = snapshots[slot].end;
}

/* ---- Saving and loading -------------------------------------------------------------------------------- */

static gb_saved_rows rows_to_save(const gb_state &state, int capacity, uint32_t position) {
    return gb_rows_to_save(state.kind, static_cast<uint64_t>(capacity), state.window, position);
}

/* The program's shape of that many rows, or bytes where they have codes; of a recurrent state its own. */
static mx::Shape saved_shape(const gb_state &state, uint64_t rows) {
    if (gb_dtype_has_codes(state.type.dtype))
        return {static_cast<int>(rows), static_cast<int>(state.type.shape.dims[1]) * stored_size(state)};
    mx::Shape dims;
    for (int32_t i = 0; i < state.type.shape.rank; i++)
        dims.push_back(static_cast<int>(state.type.shape.dims[i]));
    if (state.kind != GB_STATE_RECURRENT)
        dims[0] = static_cast<int>(rows);
    return dims;
}

/* What is saved of a state, in the program's layout. */
mx::array slots::saved_rows(const content &slot, uint32_t state, uint32_t position) const {
    const gb_state &s = program.states[state];
    const std::optional<mx::array> &data = slot.states[state];
    const gb_saved_rows saved = rows_to_save(s, capacity(state), position);
    if (!data)
        return mx::zeros(saved_shape(s, saved.count), dtype_of(s.type.dtype));
    if (s.kind == GB_STATE_RECURRENT)
        return data->ndim() == 4 ? mx::swapaxes(mx::squeeze(*data, 0), 1, 2) : *data;
    std::vector<int> rows(saved.count);
    for (size_t i = 0; i < rows.size(); i++)
        rows[i] = static_cast<int>((saved.first + i) % static_cast<uint64_t>(capacity(state)));
    const mx::array index(rows.begin(), {static_cast<int>(rows.size())}, mx::int32);
    const mx::array taken = mx::take(*data, index, row_axis(*data));
    if (gb_dtype_has_codes(s.type.dtype))
        return to_saved(by_token(taken), s.type.dtype, head_size(s));
    return taken.ndim() == 1 ? taken : by_token(taken);
}

/* Rows that were saved, as append takes them. */
static mx::array rows_of_saved(const gb_state &state, const mx::array &saved) {
    const gb_dtype dtype = state.type.dtype;
    return gb_dtype_has_codes(dtype) ? from_saved(saved, dtype, head_size(state)) : saved;
}

/* A stream's failure has left its message in the caller's error. */
static void pass(gumbel_status status, const gumbel_error &error) {
    if (status != GUMBEL_OK)
        throw failure(status, error.message);
}

void slots::save(uint32_t slot, uint32_t position, gb_save_stream write, void *user) const {
    for (uint32_t i = 0; i < program.state_count; i++) {
        if (rows_to_save(program.states[i], capacity(i), position).count == 0)
            continue;
        mx::array rows = mx::contiguous(saved_rows(contents[slot], i, position));
        rows.eval();
        gumbel_error error;
        pass(write(user, rows.data<void>(), rows.nbytes(), &error), error);
    }
}

void slots::load(uint32_t slot, uint32_t position, gb_load_stream next, void *user) {
    reset(slot);
    for (uint32_t i = 0; i < program.state_count; i++) {
        const gb_state &state = program.states[i];
        const gb_saved_rows saved = rows_to_save(state, capacity(i), position);
        if (saved.count == 0)
            continue;
        mx::array rows = mx::zeros(saved_shape(state, saved.count), dtype_of(state.type.dtype));
        rows.eval();
        gumbel_error error;
        pass(next(user, rows.data<void>(), rows.nbytes(), &error), error);
        if (state.kind != GB_STATE_RECURRENT)
            append(slot, i, rows_of_saved(state, rows), static_cast<int>(saved.first));
        else
            set_recurrent(slot, i,
                          rows.ndim() == 3 ? mx::expand_dims(mx::contiguous(mx::swapaxes(rows, 1, 2)), 0)
                                           : rows);
    }
    std::vector<mx::array> loaded;
    collect(slot, loaded);
    mx::eval(loaded);
    advance(slot, static_cast<int>(position));
}

} // namespace gb_mlx
