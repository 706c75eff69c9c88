/* SPDX-License-Identifier: Apache-2.0
 *
 * From expressions to states, each part backwards from what follows it. What allows no text gets no state, so
 * that every state leads to an end.
 */
#include "base/memory.h"
#include "grammar/compile/compiler.h"
#include "grammar/compile/distinct.h"
#include "grammar/compile/lengths.h"
#include "grammar/compile/literals.h"

typedef struct emitter {
    gb_compiler *compiler;
    gb_automaton *automaton;
    bool flat;         /* use no frames */
    uint32_t *entries; /* [2 * rules] where a rule begins, and where its texts but the empty one do */
    uint32_t *pending; /* [2 * rules] entries whose rules are still to be emitted */
    size_t pending_count;
} emitter;

static uint32_t emit(emitter *all, gb_expression expression, uint32_t next, bool nonempty);

static uint32_t emit_bytes(emitter *all, const gb_expression_node *node, uint32_t next) {
    const uint8_t *bytes = all->compiler->expressions->bytes.data + node->first;
    for (uint32_t i = node->count; i-- > 0 && next != GB_NO_STATE;) {
        gb_byte_set set = {{0}};
        gb_set_add(&set, bytes[i]);
        next = gb_add_byte_state(all->automaton, &set, next);
    }
    return gb_compiler_works(all->compiler, node->count) ? next : GB_NO_STATE;
}

/* State `state` of an automaton that is given, whose moves begin at *move; base: where its first state is. */
static void emit_state(emitter *all, const gb_expression_node *node, uint32_t state, uint32_t *move,
                       uint32_t next, uint32_t base) {
    const uint32_t *links = all->compiler->expressions->links + node->first;
    const bool accepts = next != GB_NO_STATE && links[1 + state];
    gb_add_state(all->automaton, accepts ? GB_ACTION_GO : GB_ACTION_NONE, 0, next);
    for (; *move < node->count && links[*move + GB_MOVE_FROM] == state; *move += GB_MOVE_WORDS) {
        const uint32_t first = links[*move + GB_MOVE_BYTES] & 255, last = links[*move + GB_MOVE_BYTES] >> 8;
        gb_byte_set set = {{0}};
        for (unsigned byte = first; byte <= last; byte++)
            gb_set_add(&set, byte);
        gb_add_move(all->automaton, &set, base + links[*move + GB_MOVE_TO]);
    }
}

static uint32_t emit_states(emitter *all, const gb_expression_node *node, uint32_t next, bool nonempty) {
    const uint32_t count = all->compiler->expressions->links[node->first];
    const uint32_t base = (uint32_t)all->automaton->state_count;
    uint32_t move = 1 + count;
    for (uint32_t i = 0; i < count; i++)
        emit_state(all, node, i, &move, next, base);
    move = 1 + count;
    if (nonempty)
        emit_state(all, node, 0, &move, GB_NO_STATE, base);
    return gb_compiler_works(all->compiler, node->count) ? base + (nonempty ? count : 0) : GB_NO_STATE;
}

/* A fork of those targets that are states. */
static uint32_t fork_to(emitter *all, uint32_t *targets, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (targets[i] != GB_NO_STATE)
            targets[kept++] = targets[i];
    if (kept == 0)
        return GB_NO_STATE;
    return kept == 1 ? targets[0] : gb_add_fork(all->automaton, targets, kept);
}

/* ---- Sequences and choices -------------------------------------------------------------------------------
 */

static uint32_t *allocate_targets(emitter *all, size_t count) {
    uint32_t *targets = gb_allocate(count, sizeof *targets);
    if (!targets)
        gb_compiler_no_memory(all->compiler);
    return targets;
}

static uint32_t emit_sequence(emitter *all, const gb_expression_node *node, uint32_t next) {
    for (uint32_t i = node->count; i-- > 0 && next != GB_NO_STATE;)
        next = emit(all, all->compiler->expressions->links[node->first + i], next, false);
    return next;
}

/* Of items that all allow the empty text: some item is the first that is not empty. */
static uint32_t emit_nonempty_sequence(emitter *all, const gb_expression_node *node, uint32_t next) {
    uint32_t *targets = allocate_targets(all, node->count);
    if (!targets)
        return GB_NO_STATE;
    for (uint32_t i = node->count; i-- > 0;) {
        gb_expression item = all->compiler->expressions->links[node->first + i];
        targets[i] = emit(all, item, next, true);
        next = emit(all, item, next, false);
    }
    uint32_t state = fork_to(all, targets, node->count);
    gb_free(targets);
    return state;
}

/* What is behind the text that the expression begins with (gb_append_literal), and then next. */
static uint32_t emit_behind(emitter *all, gb_expression expression, uint32_t next) {
    const gb_expressions *expressions = all->compiler->expressions;
    const gb_expression_node *node = &expressions->nodes[expression];
    uint32_t first = 0;
    if (node->kind == GB_NODE_RULE && gb_is_inlined(all->compiler, expressions->rules[node->first].item))
        return emit_behind(all, expressions->rules[node->first].item, next);
    if (node->kind != GB_NODE_SEQUENCE)
        return emit(all, expression, next, false);
    while (first < node->count &&
           gb_append_literal(all->compiler, expressions->links[node->first + first], NULL))
        first++;
    for (uint32_t i = node->count; i-- > first + 1 && next != GB_NO_STATE;)
        next = emit(all, expressions->links[node->first + i], next, false);
    return first < node->count && next != GB_NO_STATE
               ? emit_behind(all, expressions->links[node->first + first], next)
               : next;
}

/* Takes an alternative that begins with a text, or is the empty one. False: it does not. */
static bool take_literal(emitter *all, gb_literals *literals, gb_expression item, uint32_t next,
                         bool nonempty) {
    gb_byte_buffer *bytes = &literals->bytes;
    const size_t begin = bytes->size;
    const bool is_whole = gb_append_literal(all->compiler, item, bytes);
    if (bytes->size == begin && (!is_whole || nonempty))
        return is_whole; /* the empty text is left out */
    if (!is_whole && gb_has_fact(all->compiler, item, GB_FACT_PRODUCTIVE))
        next = emit_behind(all, item, next);
    else if (!is_whole)
        next = GB_NO_STATE;
    if (next == GB_NO_STATE)
        bytes->size = begin;
    else
        gb_literals_add(literals, all->compiler, next);
    return true;
}

/* What alternatives begin with becomes one automaton, since a place among thousands of them would be
 * thousands of states. */
static uint32_t emit_choice(emitter *all, const gb_expression_node *node, uint32_t next, bool nonempty) {
    gb_compiler *compiler = all->compiler;
    gb_literals literals = {0};
    size_t count = 0;
    uint32_t *targets = allocate_targets(all, node->count + (size_t)1);
    if (!targets)
        return GB_NO_STATE;
    for (uint32_t i = 0; i < node->count && compiler->error.status == GUMBEL_OK; i++) {
        const gb_expression item = compiler->expressions->links[node->first + i];
        if (!take_literal(all, &literals, item, next, nonempty))
            targets[count++] = emit(all, item, next, nonempty);
    }
    if (literals.count > 0)
        targets[count++] = gb_emit_literals(&literals, compiler, all->automaton);
    uint32_t state = fork_to(all, targets, count);
    gb_literals_free(&literals);
    gb_free(targets);
    return state;
}

/* ---- Repeats ---------------------------------------------------------------------------------------------
 */

/* An item that does not allow the empty text, or of which the empty text is left out, which changes no repeat
 * that may be empty. */
typedef struct repeat {
    gb_expression item;
    uint32_t least, most;
    bool nonempty;
} repeat;

static uint32_t emit_item(emitter *all, const repeat *part, uint32_t next) {
    return emit(all, part->item, next, part->nonempty);
}

static uint32_t emit_endless(emitter *all, const repeat *part, uint32_t next) {
    uint32_t targets[] = {GB_NO_STATE, next};
    uint32_t loop = gb_add_fork(all->automaton, targets, 2);
    uint32_t item = emit_item(all, part, loop);
    if (loop == GB_NO_STATE || item == GB_NO_STATE)
        return GB_NO_STATE;
    all->automaton->forks[all->automaton->states[loop].argument] = item;
    return loop;
}

static uint32_t emit_written_out(emitter *all, const repeat *part, uint32_t next) {
    uint32_t state = next;
    if (part->most == GB_NO_END)
        state = emit_endless(all, part, next);
    for (uint32_t i = part->least; i < part->most && part->most != GB_NO_END && state != GB_NO_STATE; i++) {
        uint32_t targets[] = {emit_item(all, part, state), next};
        state = fork_to(all, targets, 2);
    }
    for (uint32_t i = 0; i < part->least && state != GB_NO_STATE; i++)
        state = emit_item(all, part, state);
    return state;
}

static uint32_t emit_counted(emitter *all, const repeat *part, uint32_t next) {
    gb_automaton *automaton = all->automaton;
    const gb_count count = {.item = emit_item(all, part, GB_END_STATE),
                            .least = part->least,
                            .most = part->most,
                            .last = part->most == GB_NO_END ? part->least : part->most,
                            .below = 1,
                            .above = 1};
    if (count.item == GB_NO_STATE || !gb_add_count(automaton, &count))
        return GB_NO_STATE;
    return gb_add_state(automaton, GB_ACTION_COUNT, (uint32_t)automaton->count_count - 1, next);
}

static uint32_t emit_repeat(emitter *all, const gb_expression_node *node, uint32_t next, bool nonempty) {
    gb_facts item = all->compiler->facts[node->item];
    repeat part = {.item = node->item, .least = node->first, .most = node->count};
    if (item.flags & GB_FACT_NULLABLE) {
        part.nonempty = true;
        part.least = 0;
    }
    if (nonempty && part.least == 0)
        part.least = 1;
    if (!(item.flags & (part.nonempty ? GB_FACT_NONEMPTY : GB_FACT_PRODUCTIVE)))
        return part.least ? GB_NO_STATE : next;
    uint64_t times = part.most == GB_NO_END ? part.least : part.most;
    bool small = times <= 1 || times * (item.size + UINT64_C(1)) <= all->compiler->limits.repeat_states;
    return all->flat || small ? emit_written_out(all, &part, next) : emit_counted(all, &part, next);
}

/* ---- Rules -----------------------------------------------------------------------------------------------
 */

static uint32_t rule_entry(emitter *all, uint32_t rule, bool nonempty) {
    uint32_t entry = 2 * rule + nonempty;
    if (all->entries[entry] == GB_NO_STATE) {
        all->entries[entry] = gb_add_state(all->automaton, GB_ACTION_GO, 0, 0);
        all->pending[all->pending_count++] = entry;
    }
    return all->entries[entry];
}

static uint32_t emit_rule(emitter *all, const gb_expression_node *node, uint32_t next, bool nonempty) {
    gb_expression item = all->compiler->expressions->rules[node->first].item;
    if (all->flat || gb_is_inlined(all->compiler, item))
        return emit(all, item, next, nonempty);
    if (all->automaton->failed || all->automaton->full)
        return GB_NO_STATE;
    uint32_t entry = rule_entry(all, node->first, nonempty);
    /* A call at the end of a rule needs no frame, so that lists written by recursion stay flat. */
    return next == GB_END_STATE ? entry : gb_add_state(all->automaton, GB_ACTION_CALL, entry, next);
}

static void emit_pending_rules(emitter *all) {
    while (all->pending_count && all->compiler->error.status == GUMBEL_OK) {
        uint32_t entry = all->pending[--all->pending_count];
        gb_expression item = all->compiler->expressions->rules[entry / 2].item;
        uint32_t state = emit(all, item, GB_END_STATE, entry % 2);
        if (state == GB_NO_STATE || all->entries[entry] == GB_NO_STATE)
            return;
        all->automaton->states[all->entries[entry]].next = state;
    }
}

/* ---- Items in any order ----------------------------------------------------------------------------------
 */

/* Whether all that the item needs can be. */
static bool is_usable(const gb_compiler *compiler, const gb_order *order, uint32_t item) {
    for (uint32_t k = 0; k < order->count && order->words; k++)
        if (gb_order_implies(compiler->expressions, order, item, k) &&
            !gb_has_fact(compiler, compiler->expressions->links[order->first + k], GB_FACT_PRODUCTIVE))
            return false;
    return true;
}

/* The rows of implications between the items that were emitted. */
static void emit_implications(emitter *all, const gb_order *order, const uint32_t *emitted,
                              gb_order_part *part) {
    const uint32_t words = gb_set_words(part->count);
    uint32_t *rows = allocate_targets(all, (size_t)part->count * words);
    for (uint32_t i = 0; i < part->count && rows; i++)
        for (uint32_t k = 0; k < part->count; k++)
            if (gb_order_implies(all->compiler->expressions, order, emitted[i], emitted[k]))
                rows[(size_t)i * words + k / 32] |= 1u << (k % 32);
    if (rows && part->count)
        part->implied = gb_add_targets(all->automaton, rows, (size_t)part->count * words);
    gb_free(rows);
}

static void emit_items(emitter *all, const gb_order *order, gb_order_part *part) {
    uint32_t *items = allocate_targets(all, order->count), *emitted = allocate_targets(all, order->count);
    for (uint32_t i = 0; i < order->count && items && emitted; i++) {
        if (!is_usable(all->compiler, order, i))
            continue;
        const uint32_t item =
            emit(all, all->compiler->expressions->links[order->first + i], GB_END_STATE, false);
        emitted[part->count] = i;
        if (item != GB_NO_STATE)
            items[part->count++] = item;
    }
    part->first = items && emitted ? gb_add_targets(all->automaton, items, part->count) : 0;
    if (emitted && order->words)
        emit_implications(all, order, emitted, part);
    gb_free(items);
    gb_free(emitted);
}

static uint32_t emit_order(emitter *all, const gb_expression_node *node, uint32_t next, bool nonempty) {
    gb_automaton *automaton = all->automaton;
    const gb_order *order = &all->compiler->expressions->orders[node->first];
    gb_order_part part = {
        .required = order->required, .least = order->least, .most = order->most, .implied = GB_NO_STATE};
    emit_items(all, order, &part);
    part.rest = emit(all, order->rest, GB_END_STATE, false);
    part.separator = emit(all, order->separator, GB_END_STATE, false);
    if (part.separator == GB_NO_STATE && part.most > 1)
        part.most = 1;
    part.least = nonempty && part.least == 0 ? 1 : part.least;
    if (!gb_grow((void **)&automaton->orders, &automaton->order_capacity, automaton->order_count + 1,
                 sizeof part)) {
        automaton->failed = true;
        return GB_NO_STATE;
    }
    automaton->orders[automaton->order_count] = part;
    return gb_add_state(automaton, GB_ACTION_ORDER, (uint32_t)automaton->order_count++, next);
}

/* ---- Items that differ -----------------------------------------------------------------------------------
 */

static uint32_t emit_distinct(emitter *all, gb_expression expression, uint32_t next, bool nonempty) {
    const gb_expressions *expressions = all->compiler->expressions;
    const gb_distinct items = gb_distinct_of(expressions, &expressions->nodes[expression]);
    const gb_distinct_part part = {.separator = emit(all, items.separator, GB_END_STATE, false),
                                   .least = nonempty && items.least == 0 ? 1 : items.least,
                                   .most = items.most};
    const gb_dfa *dfa = gb_flat_product(all->compiler, expression);
    if (!dfa)
        return GB_NO_STATE;
    return dfa->count ? gb_emit_distinct(dfa, all->automaton, part, next) : next;
}

/* ---- Intersections and differences -----------------------------------------------------------------------
 */

static uint32_t emit_product(emitter *all, gb_expression expression, uint32_t next, bool nonempty) {
    gb_compiler *compiler = all->compiler;
    if (all->flat) {
        const gb_dfa *dfa = gb_flat_product(compiler, expression);
        return dfa ? gb_dfa_emit(dfa, all->automaton, next, nonempty) : GB_NO_STATE;
    }
    const gb_dfa *dfa = &compiler->dfas[compiler->facts[expression].dfa - 1];
    const gb_expression_node *counted = gb_units_of(compiler, expression);
    if (!counted)
        return gb_dfa_emit(dfa, all->automaton, next, nonempty);
    return gb_emit_units(dfa, all->automaton, nonempty && !counted->first ? 1 : counted->first,
                         counted->count, next);
}

/* ---- All -------------------------------------------------------------------------------------------------
 */

/* The state where the expression, and then next, begins; GB_NO_STATE where it allows no text, and after an
 * error. `nonempty` leaves out the empty text. */
static uint32_t emit(emitter *all, gb_expression expression, uint32_t next, bool nonempty) {
    gb_compiler *compiler = all->compiler;
    const gb_expression_node *node = &compiler->expressions->nodes[expression];
    nonempty &= gb_has_fact(compiler, expression, GB_FACT_NULLABLE);
    unsigned needed = nonempty ? GB_FACT_NONEMPTY : GB_FACT_PRODUCTIVE;
    if (next == GB_NO_STATE || !gb_compiler_works(compiler, 1) || !gb_has_fact(compiler, expression, needed))
        return GB_NO_STATE;
    switch ((gb_node_kind)node->kind) {
    case GB_NODE_NOTHING:
        return GB_NO_STATE;
    case GB_NODE_EMPTY:
        return next;
    case GB_NODE_BYTES:
        return emit_bytes(all, node, next);
    case GB_NODE_BYTE_SET:
        return gb_add_byte_state(all->automaton, &compiler->expressions->sets[node->first], next);
    case GB_NODE_STATES:
        return emit_states(all, node, next, nonempty);
    case GB_NODE_SEQUENCE:
        return nonempty ? emit_nonempty_sequence(all, node, next) : emit_sequence(all, node, next);
    case GB_NODE_CHOICE:
        return emit_choice(all, node, next, nonempty);
    case GB_NODE_REPEAT:
        return emit_repeat(all, node, next, nonempty);
    case GB_NODE_BOTH:
    case GB_NODE_EXCEPT:
        return emit_product(all, expression, next, nonempty);
    case GB_NODE_RULE:
        return emit_rule(all, node, next, nonempty);
    case GB_NODE_TOKEN:
        return gb_add_state(all->automaton, node->count ? GB_ACTION_OTHER_TOKEN : GB_ACTION_TOKEN,
                            node->first, next);
    case GB_NODE_ANY_ORDER:
        return emit_order(all, node, next, nonempty);
    case GB_NODE_DISTINCT:
        return emit_distinct(all, expression, next, nonempty);
    }
    return GB_NO_STATE;
}

static void report(gb_compiler *compiler, const gb_automaton *automaton) {
    if (automaton->failed)
        gb_compiler_no_memory(compiler);
    else if (automaton->full)
        gb_compiler_fail(compiler, GUMBEL_ERROR_LIMIT,
                         "grammar: it needs more than %zu states; make it smaller", automaton->state_limit);
}

void gb_emit_automaton(gb_compiler *compiler, gb_automaton *automaton, gb_expression root, bool flat) {
    size_t entries = 2 * compiler->expressions->rule_count;
    emitter all = {.compiler = compiler, .automaton = automaton, .flat = flat};
    all.entries = gb_allocate(entries, sizeof *all.entries);
    all.pending = gb_allocate(entries, sizeof *all.pending);
    if (all.entries && all.pending) {
        for (size_t i = 0; i < entries; i++)
            all.entries[i] = GB_NO_STATE;
        automaton->start = emit(&all, root, GB_END_STATE, false);
        emit_pending_rules(&all);
    } else {
        gb_compiler_no_memory(compiler);
    }
    report(compiler, automaton);
    if (compiler->error.status == GUMBEL_OK)
        gb_automaton_finish(automaton);
    report(compiler, automaton);
    gb_free(all.entries);
    gb_free(all.pending);
}
