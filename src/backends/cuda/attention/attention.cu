/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry of attention over KV caches: kernels of the tensor cores for decode and prefill where the
 * heads' size and the program allow them, else float32.
 */
#include "backends/cuda/attention/store_codes.cuh"

using namespace gb_cuda;

enum { THREADS = 256 };

/* Operands of attention by their place in ops.def. */
enum { QUERY, KEY, VALUE, POSITIONS, SLOTS, KEY_CACHE, VALUE_CACHE, SINKS };

/* Those of attend by attention's places; NULL: it has none. */
static const gb_cuda_tensor *operand(const gb_cuda_call *call, unsigned place) {
    static const int PLACES[] = {0, -1, -1, 1, 2, 3, 4, -1};
    if (call->node->op == GB_OP_ATTENTION)
        return call->operands[place];
    return PLACES[place] < 0 ? nullptr : call->operands[PLACES[place]];
}

static bool stores(const gb_cuda_call *call) {
    return call->node->op == GB_OP_ATTENTION;
}

/* ---- Storing ------------------------------------------------------------------------------------------- */

/* Eight numbers, where they and their place are aligned. */
__device__ static void store_eight(const cache &c, const float *x, uint8_t *data, size_t at) {
    const float4 first = reinterpret_cast<const float4 *>(x)[0],
                 second = reinterpret_cast<const float4 *>(x)[1];
    if (c.dtype == GB_F32) {
        float4 *to = reinterpret_cast<float4 *>(data) + at / 4;
        to[0] = first;
        to[1] = second;
        return;
    }
    reinterpret_cast<uint4 *>(data)[at / 8] =
        uint4{pack_bf16(first.x, first.y), pack_bf16(first.z, first.w), pack_bf16(second.x, second.y),
              pack_bf16(second.z, second.w)};
}

__device__ static void store_one(const cache &c, float x, uint8_t *data, size_t at) {
    if (c.dtype == GB_F32)
        reinterpret_cast<float *>(data)[at] = x;
    else
        reinterpret_cast<uint16_t *>(data)[at] = (uint16_t)pack_bf16(x, 0);
}

__device__ static void store_row(const cache &c, const float *x, uint8_t *data, size_t row) {
    const size_t width = c.heads * c.size, at = row * width;
    if (gb_dtype_has_codes(c.dtype)) {
        store_codes(c, x, data + row * row_bytes(c));
        return;
    }
    if (width % 8 == 0 && (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(data)) % 16 == 0) {
        for (size_t i = threadIdx.x * 8; i < width; i += blockDim.x * 8)
            store_eight(c, x + i, data, at + i);
        return;
    }
    for (size_t i = threadIdx.x; i < width; i += blockDim.x)
        store_one(c, x[i], data, at + i);
}

__device__ static void store_in_slot(const attention &a, const cache &c, const float *x, size_t n) {
    store_row(c, x, c.data + (size_t)a.slots[n] * c.slot_bytes, (size_t)a.positions[n] % c.capacity);
}

static __global__ void run_append_to_caches(attention a) {
    let_next_begin();
    wait_for_earlier();
    const size_t n = blockIdx.x;
    const cache &c = blockIdx.y == 0 ? a.keys : a.values;
    const float *x = (blockIdx.y == 0 ? a.key : a.value) + n * c.heads * c.size;
    if (c.room)
        store_row(c, x, c.room, n);
    else
        store_in_slot(a, c, x, n);
}

/* But for those that a later token of the run would overwrite. */
static __global__ void run_append_to_rings(attention a) {
    let_next_begin();
    wait_for_earlier();
    const size_t n = blockIdx.x;
    const cache &c = blockIdx.y == 0 ? a.keys : a.values;
    if (n + c.capacity >= a.tokens || a.slots[n + c.capacity] != a.slots[n])
        store_in_slot(a, c, (blockIdx.y == 0 ? a.key : a.value) + n * c.heads * c.size, n);
}

void gb_cuda::append_to_caches(const attention &a, gb_cuda_launch_list *launches) {
    if (!a.key)
        return;
    add_launch(launches, "append_to_caches", run_append_to_caches, dim3((unsigned)a.tokens, 2), THREADS, 0,
               a);
}

void gb_cuda::append_to_rings(const attention &a, gb_cuda_launch_list *launches) {
    add_launch(launches, "append_to_rings", run_append_to_rings, dim3((unsigned)a.tokens, 2), THREADS, 0, a);
}

/* ---- Choosing ------------------------------------------------------------------------------------------ */

static cache cache_of(const gb_cuda_tensor *tensor, const gb_node *node, gb_attribute_key key) {
    const int64_t rotation = gb_node_int(node, key);
    return cache{data_of<uint8_t>(tensor), nullptr,         tensor->slot_bytes, tensor->dtype,
                 tensor->dims[0],          tensor->dims[1], tensor->dims[2],    (unsigned)rotation};
}

/* Whether a step of the call's row class may have a run that a ring has no rows for beside its window. What
 * goes on behind a prompt is never so long. */
static bool has_room(const gb_cuda_call *call) {
    const gb_cuda_tensor *cache = operand(call, KEY_CACHE);
    const size_t slack = cache->dims[0] - (size_t)gb_node_int(call->node, GB_ATTRIBUTE_WINDOW);
    return cache->is_ring && stores(call) && gb_cuda_is_prompt(call) &&
           (call->row_class != GB_CUDA_FEW_OF_PROMPT || slack + 1 < GB_CUDA_MOST_FEW_ROWS);
}

static size_t in_lines(size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

/* Values begin where their dtype may, which need not be that of the keys. */
static void add_room(attention &a, const gb_cuda_scratch *scratch) {
    const size_t of_keys = in_lines(a.tokens * row_bytes(a.keys));
    a.room_bytes = of_keys + in_lines(a.tokens * row_bytes(a.values));
    a.keys.room = scratch->bytes;
    a.values.room = scratch->bytes + of_keys;
}

/* As attention.form says it. Fewer rows than a tile has keys would wrap more than once, and the largest score
 * is the largest of the scaled ones. Rows of codes are copied 16 bytes at a time. */
static cached_form form_of(const gb_cuda_call *call, const cache &keys, const cache &values, float scale) {
    const size_t size = keys.size;
    if (!call->allows_bf16 || !(scale > 0) || (size != 128 && size != 256 && size != 512) ||
        values.size != size || keys.dtype != values.dtype || keys.capacity < 64)
        return NOT_THEIRS;
    if (gb_dtype_has_codes(keys.dtype))
        return row_bytes(keys) % 16 != 0 ? NOT_THEIRS : keys.dtype == GB_Q8 ? AS_Q8 : AS_Q4;
    return keys.dtype == GB_BF16 ? AS_BF16 : keys.dtype == GB_F32 ? AS_TWO_TERMS : NOT_THEIRS;
}

/* Two kv heads are one of twice the size. */
static void pair_heads(attention &a) {
    for (cache *c : {&a.keys, &a.values}) {
        c->heads /= 2;
        c->size *= 2;
    }
    a.group *= 2;
}

/* As kernels for heads of any size take it. */
static attention plain_attention_of(const gb_cuda_call *call) {
    attention a = {};
    a.query = data_of<const float>(operand(call, QUERY));
    if (stores(call)) {
        a.key = data_of<const float>(operand(call, KEY));
        a.value = data_of<const float>(operand(call, VALUE));
    }
    a.positions = data_of<const int32_t>(operand(call, POSITIONS));
    a.slots = data_of<const int32_t>(operand(call, SLOTS));
    a.run_first = call->runs.first;
    a.run_count = call->runs.count;
    a.keys = cache_of(operand(call, KEY_CACHE), call->node, GB_ATTRIBUTE_ROTATION);
    a.values = cache_of(operand(call, VALUE_CACHE), call->node, GB_ATTRIBUTE_VALUE_ROTATION);
    if (const gb_cuda_tensor *sinks = operand(call, SINKS)) {
        a.sinks = sinks->data;
        a.sink_dtype = sinks->dtype;
    }
    a.tokens = operand(call, SLOTS)->dims[0];
    a.heads = operand(call, QUERY)->dims[1];
    a.group = (unsigned)(a.heads / a.keys.heads);
    a.head_size = (unsigned)a.values.size;
    a.window = (size_t)gb_node_int(call->node, GB_ATTRIBUTE_WINDOW);
    a.scale = (float)gb_node_float(call->node, GB_ATTRIBUTE_SCALE);
    a.y = data_of<float>(call->results[0]);
    a.form = form_of(call, a.keys, a.values, a.scale);
    if (has_room(call))
        add_room(a, call->scratch);
    return a;
}

static attention attention_of(const gb_cuda_call *call) {
    enum { HALF = 64 };
    attention a = plain_attention_of(call);
    if (a.keys.size == HALF && a.values.size == HALF && a.keys.heads % 2 == 0) {
        pair_heads(a);
        a.form = form_of(call, a.keys, a.values, a.scale);
    }
    return a;
}

/* ---- The kernels --------------------------------------------------------------------------------------- */

static bool supports_decode(const gb_cuda_problem *problem) {
    const attention a = attention_of(problem->parts[0]);
    return a.form != NOT_THEIRS && !gb_cuda_is_prompt(problem->parts[0]) && decode_fits(a);
}

/* Heads are whole groups of what the next product takes. */
static bool decode_has_epilogue(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const attention a = attention_of(call);
    if (!call->epilogue || gb_cuda_epilogue_columns(call) != a.heads * a.head_size)
        return false;
    return call->epilogue->group == 0 || a.head_size % call->epilogue->group == 0;
}

static void describe_decode(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const attention a = attention_of(call);
    attend_decode(a, gb_cuda_epilogue_rows(call), call->scratch, call->launches);
}

static uint64_t decode_scratch(const gb_cuda_problem *problem) {
    return attend_decode_scratch(attention_of(problem->parts[0]));
}

static bool supports_prefill(const gb_cuda_problem *problem) {
    const attention a = attention_of(problem->parts[0]);
    return (a.form == AS_BF16 || a.form == AS_TWO_TERMS) && prompt_fits(a);
}

static uint64_t room_bytes(const gb_cuda_problem *problem) {
    return attention_of(problem->parts[0]).room_bytes;
}

/* Where several nodes have the same states, all but the last leave the rings as they were. */
static void empty_room(const gb_cuda_call *call, const attention &a) {
    if (a.room_bytes > 0 && call->is_last_with_state)
        append_to_rings(a, call->launches);
}

static void describe_prefill(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const attention a = attention_of(call);
    append_to_caches(a, call->launches);
    attend_prefill(a, call->launches);
    empty_room(call, a);
}

static bool supports_wgmma(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const unsigned form = attention_of(call).form;
    return gb_cuda_is_prompt(call) && call->scratch->wgmma_blocks > 0 &&
           (form == AS_BF16 || form == AS_Q8 || form == AS_Q4);
}

static void describe_wgmma(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const attention a = attention_of(call);
    append_to_caches(a, call->launches);
    attend_wgmma(a, call->launches);
    empty_room(call, a);
}

static bool is_few(const gb_cuda_problem *problem) {
    return gb_cuda_has_few_rows(problem->parts[0]);
}

static void describe_few_in_float(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const attention a = plain_attention_of(call);
    append_to_caches(a, call->launches);
    attend_few_in_float(a, call->scratch, call->launches);
    empty_room(call, a);
}

static uint64_t few_in_float_scratch(const gb_cuda_problem *problem) {
    return attend_few_in_float_scratch(plain_attention_of(problem->parts[0]));
}

static uint64_t float_scratch(const gb_cuda_problem *problem) {
    return attend_in_float_scratch(plain_attention_of(problem->parts[0]));
}

static void describe_float(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const attention a = plain_attention_of(call);
    append_to_caches(a, call->launches);
    attend_in_float(a, call->scratch, call->launches);
    empty_room(call, a);
}

static const gb_cuda_kernel kernels[] = {
    {"attention_decode", supports_decode, describe_decode, decode_scratch, decode_has_epilogue, nullptr,
     false, false},
    {"attention_wgmma", supports_wgmma, describe_wgmma, room_bytes, nullptr, nullptr, false, false},
    {"attention_prefill", supports_prefill, describe_prefill, room_bytes, nullptr, nullptr, false, false},
    {"attention_float_spans", is_few, describe_few_in_float, few_in_float_scratch, nullptr, nullptr, false,
     false},
    {"attention_float", nullptr, describe_float, float_scratch, nullptr, nullptr, false, false},
};

/* The kernels of prompts read tiles of positions that ascend with the tokens. */
static const gb_cuda_kernel attend_kernels[] = {
    {"attend_decode", supports_decode, describe_decode, decode_scratch, decode_has_epilogue, nullptr, false,
     false},
    {"attend_float_spans", is_few, describe_few_in_float, few_in_float_scratch, nullptr, nullptr, false,
     false},
    {"attend_float", nullptr, describe_float, float_scratch, nullptr, nullptr, false, false},
};

extern "C" const gb_cuda_registry gb_cuda_attention_kernels = {kernels, sizeof kernels / sizeof *kernels};
extern "C" const gb_cuda_registry gb_cuda_attend_kernels = {attend_kernels,
                                                            sizeof attend_kernels / sizeof *attend_kernels};
