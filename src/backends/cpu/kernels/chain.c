/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/chain.h"

/* Bytes of scratch that tokens which go through a chain together have at most. */
enum { CHAIN_BYTES = 128 * 1024, ALIGNMENT = 64 };

_Static_assert((int)CHAIN_BYTES <= (int)GB_LINEAR_SCRATCH, "the scratch holds a token");

/* ---- What is a chain ----------------------------------------------------------------------------------- */

static bool is_live(const gb_fused *fused, uint32_t part) {
    return fused->live >> part & 1u;
}

static size_t padded(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Of a token of a result of the graph. */
static size_t planned_bytes(const gb_plan *plan, const gb_node *node) {
    const gb_shape *shape = &plan->program->values[node->results[0]].type.shape;
    size_t bytes = sizeof(float);
    for (int32_t i = 1; i < shape->rank; i++)
        bytes *= (size_t)shape->dims[i];
    return padded(bytes);
}

/* A chain whose results are all read by others saves nothing. Heads are turned by several threads even where
 * there is one token. */
bool gb_chain_supports(const gb_plan *plan, const gb_step *step) {
    const gb_fused *fused = step->fused;
    size_t bytes = 0;
    for (uint32_t i = 0; i < fused->node_count; i++) {
        if (fused->nodes[i]->op == GB_OP_ROPE)
            return false;
        bytes += is_live(fused, i) ? 0 : planned_bytes(plan, fused->nodes[i]);
    }
    return bytes > 0 && bytes <= CHAIN_BYTES;
}

/* ---- Making one ---------------------------------------------------------------------------------------- */

/* Whether the operand is the result of a part that stays in scratch. */
static bool find_source(const gb_plan *plan, const gb_fused *fused, gb_ref operand, uint8_t *part) {
    for (uint32_t i = 0; i < fused->node_count; i++)
        if (!is_live(fused, i) && fused->nodes[i]->results[0] == plan->places[operand].storage) {
            *part = (uint8_t)i;
            return true;
        }
    return false;
}

static gb_chain_part make_part(const gb_plan *plan, const gb_fused *fused, uint32_t index,
                               const gb_cpu_tensor *tensors, const gb_vector_kernels *vector) {
    const gb_node *node = fused->nodes[index];
    gb_kernel before;
    gb_chain_part part = {.call = {.node = node, .vector = vector, .split = GB_SPLIT_ALONE},
                          .by_token = gb_op_operand_roles(node->op).by_token,
                          .is_kept = is_live(fused, index)};
    part.kernel = gb_find_kernel(&part.call, &before);
    part.call.results[0] = &tensors[node->results[0]];
    for (uint32_t i = 0; i < node->operand_count; i++) {
        part.call.operands[i] = &tensors[node->operands[i]];
        if (find_source(plan, fused, node->operands[i], &part.sources[i]))
            part.is_made |= 1u << i;
    }
    return part;
}

void gb_chain_make(const gb_plan *plan, const gb_step *step, const gb_cpu_tensor *tensors, gb_chain *chain,
                   gb_kernel_call *call) {
    uint32_t kept = 0;
    chain->count = step->fused->node_count;
    for (uint32_t i = 0; i < chain->count; i++) {
        chain->parts[i] = make_part(plan, step->fused, i, tensors, call->vector);
        if (chain->parts[i].is_kept)
            call->results[kept++] = chain->parts[i].call.results[0];
    }
    call->chain = chain;
}

/* ---- Traits -------------------------------------------------------------------------------------------- */

static bool has_shape(const gb_cpu_tensor *tensor, const gb_cpu_tensor *as) {
    return tensor->rank == 2 && as->rank == 2 && tensor->dims[1] == as->dims[1];
}

/* Whether column k of all that the part touches depends on column k alone. */
static bool is_by_column(const gb_chain_part *part, const gb_cpu_tensor *as) {
    bool is = (gb_find_traits(part->call.node->op, false).splits & GB_SPLIT_COLUMNS) != 0 &&
              has_shape(part->call.results[0], as);
    for (uint32_t i = 0; i < part->call.node->operand_count; i++)
        is = is && (part->by_token >> i & 1u) && has_shape(part->call.operands[i], as);
    return is;
}

/* The call's operands of which a part needs more than its own token. */
static unsigned shared_operands(const gb_kernel_call *call, const gb_chain_part *part) {
    unsigned shared = 0;
    for (uint32_t i = 0; i < part->call.node->operand_count; i++)
        for (uint32_t o = 0; o < GB_MAX_STEP_OPERANDS && !(part->by_token >> i & 1u); o++)
            shared |= (unsigned)(part->call.operands[i] == call->operands[o]) << o;
    return shared;
}

gb_kernel_traits gb_chain_traits(const gb_kernel_call *call) {
    const gb_chain *chain = call->chain;
    gb_kernel_traits traits = {.splits = GB_SPLIT_TOKENS, .own_tokens = ~0u};
    bool is_columns = true;
    for (uint32_t i = 0; i < chain->count; i++) {
        traits.own_tokens &= ~shared_operands(call, &chain->parts[i]);
        is_columns = is_columns && is_by_column(&chain->parts[i], call->results[0]);
    }
    if (is_columns) {
        traits.splits |= GB_SPLIT_COLUMNS;
        traits.own_columns = ~0u;
    }
    return traits;
}

/* ---- Running one --------------------------------------------------------------------------------------- */

/* Some tokens, and of each some columns. */
typedef struct piece {
    size_t first, tokens;
    gb_share columns;
    bool is_whole; /* all columns */
    uint8_t *scratch[GB_MOST_ROWS];
} piece;

static size_t row_bytes(const gb_cpu_tensor *tensor) {
    return gb_elements(tensor) / tensor->dims[0] * gb_dtype_size(tensor->dtype);
}

/* The piece of a tensor, in place or in scratch. */
static gb_cpu_tensor piece_of(const piece *p, const gb_cpu_tensor *tensor, uint8_t *scratch) {
    gb_cpu_tensor some = *tensor;
    some.data = scratch ? scratch : (uint8_t *)tensor->data + p->first * row_bytes(tensor);
    some.dims[0] = p->tokens;
    if (p->is_whole)
        return some;
    some.dims[1] = p->columns.end - p->columns.first;
    if (!scratch)
        some.data = (uint8_t *)some.data + p->columns.first * gb_dtype_size(tensor->dtype);
    return some;
}

static void run_part(const gb_chain *chain, uint32_t index, const piece *p, const gb_worker *worker) {
    const gb_chain_part *part = &chain->parts[index];
    gb_cpu_tensor operands[GB_MAX_OPERANDS];
    gb_kernel_call call = part->call;
    for (uint32_t i = 0; i < call.node->operand_count; i++) {
        if (!(part->by_token >> i & 1u))
            continue;
        const bool is_made = part->is_made >> i & 1u;
        operands[i] = piece_of(p, part->call.operands[i], is_made ? p->scratch[part->sources[i]] : NULL);
        call.operands[i] = &operands[i];
    }
    const gb_cpu_tensor result = piece_of(p, part->call.results[0], part->is_kept ? NULL : p->scratch[index]);
    call.results[0] = &result;
    part->kernel(&call, worker);
}

/* Places the results of so many tokens in scratch; returns the bytes. */
static size_t place_results(const gb_chain *chain, size_t tokens, uint8_t *scratch, piece *p) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < chain->count; i++) {
        if (chain->parts[i].is_kept)
            continue;
        p->scratch[i] = scratch + bytes;
        bytes += padded(row_bytes(chain->parts[i].call.results[0])) * tokens;
    }
    return bytes;
}

void gb_kernel_chain(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *y = call->results[0];
    const gb_chain *chain = call->chain;
    const gb_worker own = {0, 1, worker->scratch, worker->shared};
    piece p = {.is_whole = call->split != GB_SPLIT_COLUMNS, .columns = gb_columns_of(worker, y->dims[1])};
    const gb_share tokens = p.is_whole ? gb_tokens_of(worker, y->dims[0]) : (gb_share){0, y->dims[0]};
    if (tokens.first == tokens.end || (!p.is_whole && p.columns.first == p.columns.end))
        return;
    const size_t most = p.is_whole ? CHAIN_BYTES / place_results(chain, 1, worker->scratch, &p) : 1;
    place_results(chain, most, worker->scratch, &p);
    for (p.first = tokens.first; p.first < tokens.end; p.first += p.tokens) {
        p.tokens = tokens.end - p.first < most ? tokens.end - p.first : most;
        for (uint32_t i = 0; i < chain->count; i++)
            run_part(chain, i, &p, &own);
    }
}
