/* SPDX-License-Identifier: Apache-2.0
 *
 * From a plan to a list of operations, made once, and from that list and a batch to MLX's graph, in every
 * step. Building a step's graph computes nothing yet.
 */
#ifndef GUMBEL_RUN_MLX_LOWERING_HPP
#define GUMBEL_RUN_MLX_LOWERING_HPP

#include "backends/mlx/slots.hpp"
#include "backends/mlx/weights.hpp"

extern "C" {
#include "plan/plan.h"
}

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

namespace gb_mlx {

/* Tokens first .. first + count - 1 of a batch: those of one slot, at positions start and on. */
struct slot_run {
    uint32_t slot;
    int first, count, start;
};

std::vector<slot_run> runs_of(const gb_batch &batch);

/* One step while its graph is built: the values so far. Numbers that the host has, which are the batch's
 * settings and what follows from them, decide which operations are needed at all. */
class step {
  public:
    /* tokens stand in for the batch's where the host does not have them yet. */
    step(const gb_plan &executed, const gb_batch &inputs, slots &kept,
         const std::optional<mx::array> &tokens = std::nullopt);

    const gb_batch &batch;
    const std::vector<slot_run> runs;
    slots &states;

    /* A value; an input or a view is made on first use. */
    const mx::array &operator[](gb_ref value);
    void set(gb_ref value, mx::array array);
    bool has(gb_ref value) const;

    /* Whether all operands are there; those that come of rows are not in a batch without rows. */
    bool has_operands(const gb_step &planned) const;

    /* For an input the batch's numbers, of the input's dtype; otherwise NULL. */
    template <typename T>
    const T *host(gb_ref value) const {
        return static_cast<const T *>(input(value));
    }

    /* Conditions that the host knows without asking the device. */
    void know(gb_ref value, std::vector<uint8_t> conditions);
    const std::vector<uint8_t> *known(gb_ref value) const;
    bool is_true(gb_ref value);

    /* Cosines and sines of all tokens' angles, [M,heads,2 * frequencies]; made on first use. For x
     * with its halves exchanged in x', x * cosines + x' * sines rotates. */
    struct rotation {
        mx::array cosines, sines;
    };
    const rotation &rotation_of(gb_ref positions, gb_ref frequencies, const mx::array &numbers, int heads);

    int token_count() const {
        return static_cast<int>(batch.token_count);
    }
    int row_count() const {
        return static_cast<int>(batch.row_count);
    }

  private:
    const gb_plan &plan;
    std::vector<std::optional<mx::array>> values;
    std::vector<std::optional<std::vector<uint8_t>>> conditions;
    std::map<std::tuple<gb_ref, gb_ref, int>, rotation> rotations; /* by what they are made of, and heads */

    const void *input(gb_ref value) const;
    mx::Shape shape_of(gb_ref value) const;
};

/* Adds one node's part to a step's graph. */
using operation = std::function<void(step &)>;

/* The operation of a node; takes its weights from the program. */
using operation_maker = operation (*)(const gb_node &node, weights &from);

struct op_entry {
    gb_op op;
    operation_maker make;
};

/* The maker of an op's operation; throws a failure that names an op which has none. */
operation_maker find_maker(gb_op op);

/* Throws where a node's operand is not the input of that role: the host has to know its numbers. */
void require_input(const gb_program &program, const gb_node &node, int operand, gb_role role);

/* Throws where a node's attribute, which only draft heads have, is not 0: MLX runs none. */
void refuse_of_heads(const gb_node &node, gb_attribute_key key);

/* The ops that each file lowers; a table ends in GB_OP_NONE. */
extern const op_entry model_ops[], state_ops[], sampler_ops[], logprob_ops[];

struct plan_deleter {
    void operator()(gb_plan *plan) const {
        gb_plan_destroy(plan);
    }
};

class lowered_program {
  public:
    /* Throws what find_maker does before it loads any weights. */
    lowered_program(const gb_program &program, const gb_backend_options &options, bool has_fused_kernels);

    /* Builds the graph of a batch; the step then has the program's outputs and the states their new arrays.
     */
    void build(step &s) const;

    /* Adds one step of the plan, a node, to the graph. */
    void execute(uint32_t index, step &s) const {
        operations[index](s);
    }

    const gb_plan &plan() const {
        return *owned_plan;
    }

  private:
    std::unique_ptr<gb_plan, plan_deleter> owned_plan;
    std::vector<operation> operations; /* by step of the plan; empty where it is no node */
};

} // namespace gb_mlx

#endif
