/* SPDX-License-Identifier: Apache-2.0 */
#include "program/shard/shard.h"

#include "base/memory.h"
#include "program/file/storage.h"
#include "program/shard/emit.h"

#include <stdio.h>
#include <string.h>

/* ---- Regions ------------------------------------------------------------------------------------------- */

/* Gathers what the regions of an if read, since what is built in one is not there outside. */
static void gather_for(gb_emitter *e, uint32_t region) {
    const gb_region *r = &e->program->regions[region];
    for (uint32_t n = 0; n < r->node_count; n++) {
        const gb_node *node = &e->program->nodes[r->first_node + n];
        for (uint32_t i = 0; i < node->operand_count; i++)
            if (e->values[node->operands[i]].own != GB_NO_VALUE)
                gb_emit_whole(e, node->operands[i]);
        for (uint32_t i = 0; i < 2 && node->regions[i] != GB_NO_REGION; i++)
            gather_for(e, node->regions[i]);
    }
    for (uint32_t i = 0; i < r->yield_count; i++)
        if (e->values[r->yields[i]].own != GB_NO_VALUE)
            gb_emit_whole(e, r->yields[i]);
}

static void emit_region(gb_emitter *e, uint32_t region);

static void emit_if(gb_emitter *e, const gb_node *node) {
    if (node->result_count != 1) {
        gb_builder_fail(e->builder, GUMBEL_ERROR_UNSUPPORTED, "an if of %u results is not sharded",
                        (unsigned)node->result_count);
        return;
    }
    gather_for(e, node->regions[0]);
    gather_for(e, node->regions[1]);
    gb_build_if_begin(e->builder, gb_emit_whole(e, node->operands[0]));
    emit_region(e, node->regions[0]);
    gb_build_if_else(e->builder, gb_emit_whole(e, e->program->regions[node->regions[0]].yields[0]));
    emit_region(e, node->regions[1]);
    const gb_ref result =
        gb_build_if_end(e->builder, gb_emit_whole(e, e->program->regions[node->regions[1]].yields[0]));
    e->values[node->results[0]] = (gb_emitted){result, result, {.dim = GB_WHOLE}};
}

static void emit_region(gb_emitter *e, uint32_t region) {
    const gb_region *r = &e->program->regions[region];
    for (uint32_t n = 0; n < r->node_count && gb_builder_status(e->builder, NULL) == GUMBEL_OK; n++) {
        const gb_node *node = &e->program->nodes[r->first_node + n];
        if (node->op == GB_OP_IF)
            emit_if(e, node);
        else
            gb_emit_node(e, node);
    }
}

/* ---- The program --------------------------------------------------------------------------------------- */

static void emit_inputs(gb_emitter *e) {
    for (uint32_t i = 0; i < e->program->input_count; i++) {
        const gb_ref input = gb_build_input(e->builder, e->program->inputs[i].role);
        e->values[e->program->inputs[i].value] = (gb_emitted){input, input, {.dim = GB_WHOLE}};
    }
}

static void emit_outputs(gb_emitter *e) {
    for (uint32_t i = 0; i < e->program->output_count; i++)
        gb_build_output(e->builder, e->program->outputs[i].role,
                        gb_emit_whole(e, e->program->outputs[i].value));
}

/* Rows of a packed matrix are cut between blocks; otherwise the part is canonical. */
static gb_packing packing_of_part(const gb_constant_part *part) {
    const gb_packing *packing = &part->whole->packing;
    const int64_t rows = packing->block_rows;
    bool is_whole = rows > 0 && part->whole->type.shape.dims[part->dim] % rows == 0;
    for (uint32_t i = 0; i < part->range_count && is_whole; i++)
        is_whole = part->ranges[i].first % rows == 0 && part->ranges[i].count % rows == 0;
    return is_whole ? *packing : (gb_packing){0};
}

static gumbel_status add_part(const gb_emitter *e, gb_program *program, uint32_t constant,
                              gumbel_error *error) {
    const gb_emitted_constant *emitted = &e->constants[constant];
    gb_constant_part *part = gb_storage_take(program->storage, 1, sizeof *part);
    if (!part)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the constants of a rank");
    part->whole = &e->program->constants[emitted->whole];
    part->dim = emitted->shard.dim;
    int64_t at = 0;
    for (; part->range_count < emitted->shard.section_count; part->range_count++) {
        const gb_section *section = &emitted->shard.sections[part->range_count];
        part->ranges[part->range_count] = gb_shard_range_of(section, e->options->rank, e->options->ranks);
        part->ranges[part->range_count].first += at;
        at += section->size;
    }
    program->constants[constant].part = part;
    program->constants[constant].packing = packing_of_part(part);
    return GUMBEL_OK;
}

static gumbel_status give_data(const gb_emitter *e, gb_program *program, gumbel_error *error) {
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *whole = &e->program->constants[e->constants[i].whole];
        if (e->constants[i].shard.dim != GB_WHOLE) {
            GB_TRY(add_part(e, program, i, error));
            continue;
        }
        program->constants[i].data = whole->data;
        program->constants[i].packing = whole->packing;
        program->constants[i].checksum = whole->checksum;
    }
    return GUMBEL_OK;
}

static gb_state with_all_heads(const gb_emitter *e, uint32_t index, gb_state state) {
    const gb_shape *whole = &e->program->states[index].type.shape;
    if (state.kind != GB_STATE_RECURRENT && whole->rank == 3)
        state.all_heads = (uint32_t)whole->dims[1];
    return state;
}

/* States are built when an op needs them; they get the order that they have in the whole program. */
static gumbel_status order_states(const gb_emitter *e, gb_program *program, gumbel_error *error) {
    gb_state *states = gb_storage_take(program->storage, program->state_count, sizeof *states);
    if (!states)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the states of a rank");
    if (program->state_count != e->program->state_count)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "states that no op has: %u",
                       e->program->state_count - program->state_count);
    for (uint32_t i = 0; i < program->state_count; i++)
        states[e->state_order[i]] = with_all_heads(e, e->state_order[i], program->states[i]);
    for (gb_ref v = 0; v < program->value_count; v++)
        if (program->values[v].kind == GB_VALUE_STATE)
            program->values[v].index = e->state_order[program->values[v].index];
    program->states = states;
    return GUMBEL_OK;
}

static gumbel_status build(gb_emitter *e, gb_program **program, gumbel_error *error) {
    *gb_builder_metadata(e->builder) = e->program->metadata;
    gb_builder_set_ranks(e->builder, e->options->ranks);
    emit_inputs(e);
    gb_find_demands(e->program, e->demands);
    emit_region(e, 0);
    emit_outputs(e);
    GB_TRY(gb_builder_finish(e->builder, program, error));
    memcpy((*program)->id, e->program->id, sizeof(*program)->id);
    GB_TRY(give_data(e, *program, error));
    return order_states(e, *program, error);
}

static gumbel_status shard_once(const gb_program *program, const gb_shard_options *options,
                                gb_sharded *sharded, gumbel_error *error) {
    *sharded = (gb_sharded){.states = gb_allocate(program->state_count + 1, sizeof *sharded->states)};
    gb_emitter e = {.program = program,
                    .options = options,
                    .builder = gb_builder_create(),
                    .demands = gb_allocate(program->value_count + 1, sizeof *e.demands),
                    .values = gb_allocate(program->value_count + 1, sizeof *e.values),
                    .states = sharded->states,
                    .state_order = gb_allocate(program->state_count + 1, sizeof *e.state_order)};
    const bool has_memory = e.builder && e.demands && e.values && e.states && e.state_order;
    for (gb_ref v = 0; v < program->value_count && has_memory; v++)
        e.values[v] = (gb_emitted){GB_NO_VALUE, GB_NO_VALUE, {.dim = GB_WHOLE}};
    const gumbel_status status = has_memory
                                     ? build(&e, &sharded->program, error)
                                     : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a rank's graph");
    gb_builder_destroy(e.builder);
    gb_free(e.demands);
    gb_free(e.values);
    gb_free(e.state_order);
    gb_free(e.constants);
    return status;
}

/* " (1, 2 or 4 do)" */
static void tell_counts(const gb_program *program, const gb_shard_options *options, size_t size, char *text) {
    enum { MOST = 16 };
    size_t length = (size_t)snprintf(text, size, " (these counts do: 1");
    for (uint32_t ranks = 2; ranks <= MOST && length < size; ranks++) {
        gb_shard_options other = *options;
        gb_sharded sharded;
        gumbel_error ignored;
        other.rank = 0;
        other.ranks = ranks;
        if (shard_once(program, &other, &sharded, &ignored) == GUMBEL_OK)
            length += (size_t)snprintf(text + length, size - length, ", %u", ranks);
        gb_sharded_free(&sharded);
    }
    if (length < size)
        snprintf(text + length, size - length, ")");
}

gumbel_status gb_program_shard(const gb_program *program, const gb_shard_options *options,
                               gb_sharded *sharded, gumbel_error *error) {
    gumbel_error reason;
    char counts[128] = "";
    const gumbel_status status = shard_once(program, options, sharded, &reason);
    if (status == GUMBEL_OK)
        return status;
    if (status == GUMBEL_ERROR_UNSUPPORTED)
        tell_counts(program, options, sizeof counts, counts);
    return gb_fail(error, status, "%s%s", reason.message, counts);
}

void gb_sharded_free(gb_sharded *sharded) {
    gb_program_destroy(sharded->program);
    gb_free(sharded->states);
    *sharded = (gb_sharded){0};
}
