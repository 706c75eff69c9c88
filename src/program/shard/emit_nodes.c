/* SPDX-License-Identifier: Apache-2.0 */
#include "program/shard/emit.h"
#include "program/shard/letters.h"

#include <string.h>

/* How an op's dims of one letter are cut. */
typedef struct cut {
    int32_t letter;
    bool is_possible;
    gb_shard shard; /* its dim is of no matter */
} cut;

enum { MOST_CUTS = 4 };

/* A node on its way. */
typedef struct emission {
    gb_emitter *emitter;
    const gb_node *node;
    gb_signature signature;
    cut cuts[MOST_CUTS];
    uint32_t cut_count;
} emission;

static const gb_value *value_of(const emission *m, gb_ref ref) {
    return &m->emitter->program->values[ref];
}

static int32_t rank_of(const emission *m, gb_ref ref) {
    return value_of(m, ref)->type.shape.rank;
}

/* Constants and states are cut as the values beside them are. */
static bool is_given(const emission *m, uint32_t operand) {
    const gb_value_kind kind = value_of(m, m->node->operands[operand])->kind;
    return kind == GB_VALUE_RESULT || kind == GB_VALUE_INPUT;
}

static int32_t letter_of_operand(const emission *m, uint32_t operand, int32_t dim) {
    return gb_letter_of(m->node->op, &m->signature.operands[operand], rank_of(m, m->node->operands[operand]),
                        dim);
}

static int32_t dim_in_operand(const emission *m, uint32_t operand, int32_t letter) {
    return gb_dim_of_letter(m->node->op, &m->signature.operands[operand],
                            rank_of(m, m->node->operands[operand]), letter);
}

/* ---- How a node is cut --------------------------------------------------------------------------------- */

static bool has_same_sections(const gb_shard *a, const gb_shard *b) {
    return a->section_count == b->section_count &&
           memcmp(a->sections, b->sections, a->section_count * sizeof *a->sections) == 0;
}

static cut *find_cut(emission *m, int32_t letter) {
    for (uint32_t i = 0; i < m->cut_count; i++)
        if (m->cuts[i].letter == letter)
            return &m->cuts[i];
    return NULL;
}

static void add_cut(emission *m, int32_t letter, const gb_shard *shard) {
    cut *found = find_cut(m, letter);
    if (found)
        found->is_possible = found->is_possible && has_same_sections(&found->shard, shard);
    else if (m->cut_count < MOST_CUTS)
        m->cuts[m->cut_count++] = (cut){letter, true, *shard};
}

/* As its operands are cut already: all that have the dim, and in the same way. */
static void find_given_cuts(emission *m) {
    for (uint32_t i = 0; i < m->node->operand_count; i++) {
        const gb_shard *shard = &m->emitter->values[m->node->operands[i]].shard;
        const int32_t letter =
            is_given(m, i) && shard->dim != GB_WHOLE ? letter_of_operand(m, i, shard->dim) : GB_LETTER_NONE;
        if (gb_op_cuts(m->node->op, letter))
            add_cut(m, letter, shard);
    }
    for (uint32_t c = 0; c < m->cut_count; c++)
        for (uint32_t i = 0; i < m->node->operand_count && m->cuts[c].is_possible; i++) {
            const int32_t dim = is_given(m, i) ? dim_in_operand(m, i, m->cuts[c].letter) : GB_WHOLE;
            m->cuts[c].is_possible =
                dim == GB_WHOLE || m->emitter->values[m->node->operands[i]].shard.dim == dim;
        }
}

static bool divides(const gb_emitter *e, const gb_shard *shard) {
    const int64_t ranks = e->options->ranks;
    for (uint32_t i = 0; i < shard->section_count; i++) {
        const gb_section *section = &shard->sections[i];
        if (section->units % ranks != 0 && (section->units == section->size || ranks % section->units != 0))
            return false;
    }
    return true;
}

/* Backends have kernels with other bits for matrices whose rows are no whole blocks, unless these are small.
 */
static bool keeps_blocks(const emission *m, const gb_type *weight, const gb_shard *shard) {
    enum { BLOCK = 16, MOST_PADDED = 1024 };
    const gb_shape *shape = &weight->shape;
    const int64_t rows = shape->dims[shape->rank - 2];
    if (weight->dtype != GB_QUANTIZED || rows % BLOCK != 0 || (shape->rank == 2 && rows <= MOST_PADDED))
        return true;
    return gb_shard_size(shard, m->emitter->options->rank, m->emitter->options->ranks) % BLOCK == 0;
}

/* A product's columns are cut where that pays, or where they are heads. */
static void add_own_cut(emission *m) {
    enum { WEIGHT = 1 };
    gb_emitter *e = m->emitter;
    if (m->node->op != GB_OP_LINEAR && m->node->op != GB_OP_EXPERT_LINEAR)
        return;
    const gb_ref result = m->node->results[0];
    const gb_type *weight = &value_of(m, m->node->operands[WEIGHT])->type;
    uint64_t numbers = 0;
    const gb_shard shard =
        gb_demanded_shard(&e->demands[result], &value_of(m, result)->type, rank_of(m, result) - 1);
    const bool pays =
        gb_shape_elements(&weight->shape, &numbers) && (int64_t)numbers >= e->options->least_weights;
    if (shard.dim == GB_WHOLE || (!pays && !gb_demands_heads(&e->demands[result])))
        return;
    if (divides(e, &shard) && keeps_blocks(m, weight, &shard))
        add_cut(m, 'O', &shard);
    else if (numbers >= GB_LEAST_SHARDED_WEIGHTS)
        gb_builder_fail(e->builder, GUMBEL_ERROR_UNSUPPORTED, "%u devices do not divide the %lld rows of %s",
                        e->options->ranks, (long long)weight->shape.dims[weight->shape.rank - 2],
                        e->program->constants[value_of(m, m->node->operands[WEIGHT])->index].name);
}

/* Keys and values of another program are cut as that one's attention cuts them, which has them beside it; of
 * fewer heads than ranks each is had by several. */
static void add_cut_of_caches(emission *m) {
    enum { KEY_CACHE = 3 };
    if (m->node->op != GB_OP_ATTEND)
        return;
    const int64_t heads = value_of(m, m->node->operands[KEY_CACHE])->type.shape.dims[1],
                  ranks = m->emitter->options->ranks;
    const gb_shard shard = {.dim = 1, .section_count = 1, .sections = {{.size = heads, .units = heads}}};
    if (heads % ranks == 0 || ranks % heads == 0)
        add_cut(m, 'G', &shard);
}

/* ---- Building it --------------------------------------------------------------------------------------- */

/* How an operand goes in. */
static gb_shard operand_shard(emission *m, uint32_t operand) {
    gb_shard shard = {.dim = GB_WHOLE};
    for (uint32_t c = 0; c < m->cut_count; c++) {
        const int32_t dim = m->cuts[c].is_possible ? dim_in_operand(m, operand, m->cuts[c].letter) : GB_WHOLE;
        if (dim == GB_WHOLE)
            continue;
        shard = m->cuts[c].shard;
        shard.dim = dim;
    }
    return shard;
}

static gb_ref emit_operand(emission *m, uint32_t operand) {
    const gb_ref ref = m->node->operands[operand];
    const gb_shard shard = operand_shard(m, operand);
    switch (value_of(m, ref)->kind) {
    case GB_VALUE_CONSTANT:
        return gb_emit_constant(m->emitter, ref, &shard);
    case GB_VALUE_STATE:
        return gb_emit_state(m->emitter, ref, &shard);
    default:
        return shard.dim == GB_WHOLE ? gb_emit_whole(m->emitter, ref) : m->emitter->values[ref].own;
    }
}

static gb_shard result_shard(emission *m, uint32_t result) {
    const gb_ref ref = m->node->results[result];
    gb_shard shard = {.dim = GB_WHOLE};
    for (uint32_t c = 0; c < m->cut_count; c++) {
        const int32_t dim =
            gb_dim_of_letter(m->node->op, &m->signature.results[result], rank_of(m, ref), m->cuts[c].letter);
        if (!m->cuts[c].is_possible || dim == GB_WHOLE)
            continue;
        shard = m->cuts[c].shard;
        shard.dim = dim;
    }
    return shard;
}

static void set_result(gb_emitter *e, gb_ref result, gb_ref own, const gb_shard *shard) {
    e->values[result] = (gb_emitted){own, shard->dim == GB_WHOLE ? own : GB_NO_VALUE, *shard};
}

static void emit_cut(emission *m) {
    const gb_node *node = m->node;
    gb_ref operands[GB_MAX_OPERANDS], results[GB_MAX_RESULTS];
    for (uint32_t i = 0; i < node->operand_count; i++)
        operands[i] = emit_operand(m, i);
    gb_build_op_results(m->emitter->builder, node->op, operands, node->operand_count, node->attributes,
                        node->attribute_count, results, node->result_count);
    for (uint32_t i = 0; i < node->result_count; i++) {
        const gb_shard shard = result_shard(m, i);
        set_result(m->emitter, node->results[i], results[i], &shard);
    }
}

/* Whether key head g stays with its query or value heads: those beside it, or where tiled those of each G. */
static bool have_heads_together(emission *m) {
    enum { KEY = 1 };
    const bool is_tiled = m->node->op == GB_OP_GATED_DELTA && gb_node_int(m->node, GB_ATTRIBUTE_TILED);
    const int64_t keys = value_of(m, m->node->operands[KEY])->type.shape.dims[1];
    bool are = true;
    for (uint32_t c = 0; c < m->cut_count; c++)
        for (uint32_t i = 0; i < m->cuts[c].shard.section_count; i++)
            are = are && (is_tiled ? m->cuts[c].shard.sections[i].size == keys
                                   : m->cuts[c].shard.section_count == 1);
    return are;
}

/* What keeps conversations in its states must be cut, or every device would hold all of them. */
static void check_heads(emission *m) {
    const bool has_columns = m->node->op == GB_OP_CAUSAL_CONV;
    bool is_cut = has_columns ? m->cut_count == 1 : m->cut_count == 2 && have_heads_together(m);
    for (uint32_t c = 0; c < m->cut_count; c++)
        is_cut = is_cut && m->cuts[c].is_possible;
    if (!is_cut)
        gb_builder_fail(m->emitter->builder, GUMBEL_ERROR_UNSUPPORTED,
                        "%u devices do not divide the heads of %s", m->emitter->options->ranks,
                        gb_op_find(m->node->op)->name);
}

/* ---- Ops that change dims ------------------------------------------------------------------------------ */

/* Sections of another unit; false where one is no whole number of those. */
static bool scale_sections(const gb_shard *from, int64_t numerator, int64_t denominator, gb_shard *to) {
    *to = *from;
    for (uint32_t i = 0; i < to->section_count; i++) {
        gb_section *section = &to->sections[i];
        if (section->size * numerator % denominator != 0)
            return false;
        section->size = section->size * numerator / denominator;
        if (section->units > section->size || section->size % section->units != 0)
            return false;
    }
    return true;
}

static void emit_split_heads(gb_emitter *e, const gb_node *node) {
    const int64_t width = e->program->values[node->results[0]].type.shape.dims[2];
    gb_shard shard = {.dim = GB_WHOLE};
    gb_ref x = e->values[node->operands[0]].own;
    int64_t heads = gb_node_int(node, GB_ATTRIBUTE_HEADS);
    const gb_shard *given = &e->values[node->operands[0]].shard;
    if (given->dim != 1 || !scale_sections(given, 1, width, &shard)) {
        shard.dim = GB_WHOLE;
        x = gb_emit_whole(e, node->operands[0]);
    } else {
        heads = gb_shard_size(&shard, e->options->rank, e->options->ranks);
    }
    const gb_attribute attribute = gb_int(GB_ATTRIBUTE_HEADS, heads);
    set_result(e, node->results[0], gb_build_op(e->builder, GB_OP_SPLIT_HEADS, &x, 1, &attribute, 1), &shard);
}

static void emit_merge_heads(gb_emitter *e, const gb_node *node) {
    const int64_t width = e->program->values[node->operands[0]].type.shape.dims[2];
    gb_shard shard = {.dim = GB_WHOLE};
    gb_ref x = e->values[node->operands[0]].own;
    const gb_shard *given = &e->values[node->operands[0]].shard;
    if (given->dim != 1 || !scale_sections(given, width, 1, &shard)) {
        shard.dim = GB_WHOLE;
        x = gb_emit_whole(e, node->operands[0]);
    }
    set_result(e, node->results[0], gb_build_op(e->builder, GB_OP_MERGE_HEADS, &x, 1, NULL, 0), &shard);
}

/* The sections that a slice takes, *start in what the rank has of the row; false where it takes parts of one.
 */
static bool take_sections(const gb_emitter *e, const gb_shard *given, int64_t first, int64_t count,
                          gb_shard *taken, int64_t *start) {
    int64_t at = 0;
    uint32_t i = 0;
    *start = 0;
    for (; i < given->section_count && at < first; i++) {
        at += given->sections[i].size;
        *start += gb_shard_range_of(&given->sections[i], e->options->rank, e->options->ranks).count;
    }
    const bool is_aligned = at == first;
    *taken = (gb_shard){.dim = given->dim};
    for (; is_aligned && i < given->section_count && at < first + count; i++) {
        at += given->sections[i].size;
        taken->sections[taken->section_count++] = given->sections[i];
    }
    return at == first + count && taken->section_count > 0;
}

static void emit_slice(gb_emitter *e, const gb_node *node) {
    const gb_emitted *given = &e->values[node->operands[0]];
    int64_t start = gb_node_int(node, GB_ATTRIBUTE_START), count = gb_node_int(node, GB_ATTRIBUTE_COUNT),
            own_start;
    const int32_t last = e->program->values[node->operands[0]].type.shape.rank - 1;
    gb_shard shard = given->shard;
    gb_ref x = given->own;
    if (given->shard.dim == last && take_sections(e, &given->shard, start, count, &shard, &own_start)) {
        start = own_start;
        count = gb_shard_size(&shard, e->options->rank, e->options->ranks);
    } else if (given->shard.dim == last) {
        shard = (gb_shard){.dim = GB_WHOLE};
        x = gb_emit_whole(e, node->operands[0]);
    }
    const gb_attribute attributes[] = {gb_int(GB_ATTRIBUTE_START, start), gb_int(GB_ATTRIBUTE_COUNT, count)};
    set_result(e, node->results[0], gb_build_op(e->builder, GB_OP_SLICE, &x, 1, attributes, 2), &shard);
}

static void emit_other(gb_emitter *e, const gb_node *node) {
    emission m = {.emitter = e, .node = node};
    if (!gb_signature_parse(gb_op_find(node->op), &m.signature))
        return;
    find_given_cuts(&m);
    add_own_cut(&m);
    add_cut_of_caches(&m);
    if (node->op == GB_OP_ATTENTION || node->op == GB_OP_ATTEND || node->op == GB_OP_GATED_DELTA ||
        node->op == GB_OP_CAUSAL_CONV)
        check_heads(&m);
    emit_cut(&m);
}

void gb_emit_node(gb_emitter *e, const gb_node *node) {
    if (node->op == GB_OP_SPLIT_HEADS)
        emit_split_heads(e, node);
    else if (node->op == GB_OP_MERGE_HEADS)
        emit_merge_heads(e, node);
    else if (node->op == GB_OP_SLICE)
        emit_slice(e, node);
    else if (node->op == GB_OP_ALL_GATHER) /* of a program that is not sharded: its operand */
        e->values[node->results[0]] = e->values[node->operands[0]];
    else
        emit_other(e, node);
}
