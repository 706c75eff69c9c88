/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and graphs of the emulated device.
 */
#include "device.h"

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

namespace emulated {
void run_grid(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &kernel);
}

struct CUgraph_st {
    std::vector<std::function<void()>> work;
};
struct CUgraphExec_st {
    std::vector<std::function<void()>> work;
};
struct CUstream_st {
    CUgraph_st *captured;
    std::vector<std::function<void()>> late; /* copies to the host, which nobody has waited for yet */
};
struct CUevent_st {
    std::chrono::steady_clock::time_point at;
    cudaStream_t stream;
};

/* What comes late is done when somebody waits for it, so that memory that changes before that is found. */
static void catch_up(cudaStream_t stream) {
    if (!stream)
        return;
    const std::vector<std::function<void()>> late = std::move(stream->late);
    stream->late.clear();
    for (const auto &work : late)
        work();
}

static void enqueue(cudaStream_t stream, std::function<void()> work) {
    catch_up(stream);
    if (stream && stream->captured)
        stream->captured->work.push_back(std::move(work));
    else
        work();
}

/* As many devices as tests of ranks need; their memory is one. */
static thread_local int current_device;
enum { DEVICES = 4 };
int emulated_lost_device = -1;

/* ---- Kernels ------------------------------------------------------------------------------------------- */

static std::mutex kernels_mutex;

static std::map<const void *, emulated::binder> &known_kernels() {
    static std::map<const void *, emulated::binder> known;
    return known;
}

void emulated::know_kernel(const void *function, binder bind) {
    const std::lock_guard<std::mutex> lock(kernels_mutex);
    known_kernels()[function] = bind;
}

void (*emulated_trace)(const void *function);
bool emulated_kernels_do_nothing; /* for tests of what is launched alone (test_plan.c) */

cudaError_t cudaFuncSetAttribute(const void *, enum cudaFuncAttribute, int) {
    return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **parameters) {
    emulated::binder bind = nullptr;
    if (current_device == emulated_lost_device)
        return cudaErrorNoDevice;
    {
        const std::lock_guard<std::mutex> lock(kernels_mutex);
        const auto found = known_kernels().find(function);
        if (found == known_kernels().end())
            return cudaErrorInvalidValue;
        bind = found->second;
    }
    const std::function<void()> kernel = bind(function, parameters);
    const dim3 grid = config->gridDim, block = config->blockDim;
    const size_t shared_bytes = config->dynamicSmemBytes;
    enqueue(config->stream, [=] {
        if (emulated_trace)
            emulated_trace(function);
        if (!emulated_kernels_do_nothing)
            emulated::run_grid(grid, block, shared_bytes, kernel);
    });
    return cudaSuccess;
}

/* ---- The rest ------------------------------------------------------------------------------------------ */

const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaSuccess ? "no error" : "an error of the emulated device";
}
cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int *count) {
    *count = DEVICES;
    return cudaSuccess;
}
int emulated_other_device = -1, emulated_apart_device = -1;

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    const int multiprocessors = device == emulated_other_device ? 114 : 132;
    *properties = {"emulated device", {{(char)device}}, emulated_memory_bytes, multiprocessors, 9, 0,
                   228 << 10};
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int) {
    *value = attribute == cudaDevAttrMemoryClockRate ? 3201000 : 6016;
    return cudaSuccess;
}
cudaError_t cudaDeviceReset(void) {
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
    current_device = device;
    return device < DEVICES ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaGetDevice(int *device) {
    *device = current_device;
    return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    *can = device != emulated_apart_device && peer != emulated_apart_device;
    return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) {
    return cudaSuccess;
}
cudaError_t cudaMemset(void *to, int value, size_t size) {
    memset(to, value, size);
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) {
    *version = 13000;
    return cudaSuccess;
}
bool emulated_pinning_fails;
cudaError_t cudaHostRegister(void *, size_t, unsigned) {
    return emulated_pinning_fails ? cudaErrorInvalidValue : cudaSuccess;
}
cudaError_t cudaHostUnregister(void *) {
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind) {
    memcpy(to, from, size);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    if (kind == cudaMemcpyDeviceToHost && stream && !stream->captured)
        stream->late.push_back([=] { memcpy(to, from, size); });
    else
        enqueue(stream, [=] { memcpy(to, from, size); });
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream) {
    enqueue(stream, [=] { memset(to, value, size); });
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
    *stream = new CUstream_st{};
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    catch_up(stream);
    delete stream;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    catch_up(stream);
    return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) {
    return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode) {
    stream->captured = new CUgraph_st;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    *graph = stream->captured;
    stream->captured = nullptr;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *instance, cudaGraph_t graph, unsigned long long) {
    *instance = new CUgraphExec_st{graph->work};
    return cudaSuccess;
}
unsigned emulated_graph_launches;
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t stream) {
    catch_up(stream);
    if (current_device == emulated_lost_device)
        return cudaErrorNoDevice;
    emulated_graph_launches++;
    for (const auto &work : instance->work)
        work();
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance) {
    delete instance;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    *event = new CUevent_st{};
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    event->stream = stream;
    event->at = std::chrono::steady_clock::now();
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    catch_up(event->stream);
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned) {
    catch_up(event->stream);
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    *milliseconds = std::chrono::duration<float, std::milli>(end->at - begin->at).count();
    return cudaSuccess;
}
