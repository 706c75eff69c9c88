/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the emulated device: blocks, and reserved addresses that are mapped page by page.
 */
#include "cuda.h"
#include "written.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

size_t emulated_memory_bytes = (size_t)8 << 30;
bool emulated_driver_has_no_memory = false;

static std::recursive_mutex mutex; /* of what follows */
typedef std::lock_guard<std::recursive_mutex> guard;
static size_t used_bytes;
static std::map<void *, size_t> blocks;                          /* their sizes */
static std::map<CUmemGenericAllocationHandle, size_t> pieces;    /* of virtual memory, not yet released */
static std::map<CUdeviceptr, CUmemGenericAllocationHandle> maps; /* by address */
static std::map<CUdeviceptr, size_t> map_sizes;

static bool take(size_t size) {
    if (size > emulated_memory_bytes - used_bytes)
        return false;
    used_bytes += size;
    return true;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    const guard lock(mutex);
    *free_bytes = emulated_memory_bytes - used_bytes;
    *total_bytes = emulated_memory_bytes;
    return cudaSuccess;
}

/* ---- Blocks -------------------------------------------------------------------------------------------- */

cudaError_t cudaMallocHost(void **pointer, size_t size) {
    *pointer = nullptr;
    if (posix_memalign(pointer, 256, size ? size : 1) != 0)
        return cudaErrorMemoryAllocation;
    memset(*pointer, 0xff, size);
    return cudaSuccess;
}
/* ---- Memory of other processes ------------------------------------------------------------------------- */

/* Blocks of whole pages of the device lie in files without a name, which other processes can open. */
constexpr size_t SHARED_PAGE = 2 << 20;
struct shared_block {
    int file;
    size_t size;
};
static std::map<void *, shared_block> shared_blocks; /* own ones, and those that were opened: file -1 */

static bool is_shared(size_t size) {
    return size > 0 && size % SHARED_PAGE == 0;
}

static cudaError_t map_shared(void **pointer, int file, size_t size) {
    void *mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    *pointer = mapped == MAP_FAILED ? nullptr : mapped;
    return *pointer ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t allocate_shared(void **pointer, size_t size) {
    const int file = memfd_create("device", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)size) != 0 || map_shared(pointer, file, size) != cudaSuccess) {
        close(file);
        return cudaErrorMemoryAllocation;
    }
    memset(*pointer, 0xff, size);
    shared_blocks[*pointer] = {file, size};
    return cudaSuccess;
}

/* Whether it was one. */
static bool free_shared(void *pointer) {
    const auto block = shared_blocks.find(pointer);
    if (block == shared_blocks.end())
        return false;
    munmap(pointer, block->second.size);
    if (block->second.file >= 0)
        close(block->second.file);
    shared_blocks.erase(block);
    return true;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *memory) {
    const guard lock(mutex);
    const auto block = shared_blocks.find(memory);
    if (block == shared_blocks.end())
        return cudaErrorInvalidValue;
    snprintf(handle->reserved, sizeof handle->reserved, "/proc/%ld/fd/%d %zu", (long)getpid(),
             block->second.file, block->second.size);
    return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void **memory, cudaIpcMemHandle_t handle, unsigned) {
    const guard lock(mutex);
    char path[64];
    size_t size;
    if (sscanf(handle.reserved, "%63s %zu", path, &size) != 2)
        return cudaErrorInvalidValue;
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return cudaErrorInvalidValue;
    const cudaError_t result = map_shared(memory, file, size);
    close(file);
    if (result == cudaSuccess) {
        shared_blocks[*memory] = {-1, size};
        blocks[*memory] = size;
    }
    return result;
}

cudaError_t cudaIpcCloseMemHandle(void *memory) {
    const guard lock(mutex);
    blocks.erase(memory);
    return free_shared(memory) ? cudaSuccess : cudaErrorInvalidValue;
}

/* ---- Blocks of the device ------------------------------------------------------------------------------ */

cudaError_t cudaMalloc(void **pointer, size_t size) {
    const guard lock(mutex);
    *pointer = nullptr;
    if (!take(size))
        return cudaErrorMemoryAllocation;
    const cudaError_t result =
        is_shared(size) ? allocate_shared(pointer, size) : cudaMallocHost(pointer, size);
    if (result == cudaSuccess) {
        blocks[*pointer] = size;
        emulated::set_unwritten(*pointer, size);
    } else {
        used_bytes -= size;
    }
    return result;
}
cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned) {
    return cudaMalloc(pointer, size);
}
cudaError_t cudaFreeHost(void *pointer) {
    free(pointer);
    return cudaSuccess;
}
cudaError_t cudaFree(void *pointer) {
    const guard lock(mutex);
    const auto block = blocks.find(pointer);
    if (block != blocks.end()) {
        used_bytes -= block->second;
        emulated::set_written(pointer, block->second);
        blocks.erase(block);
    }
    return free_shared(pointer) ? cudaSuccess : cudaFreeHost(pointer);
}

bool emulated_is_of_device(const void *at) {
    const guard lock(mutex);
    const auto block = blocks.upper_bound(const_cast<void *>(at));
    const auto map = map_sizes.upper_bound((CUdeviceptr)(uintptr_t)at);
    return (block != blocks.begin() &&
            (uintptr_t)at < (uintptr_t)std::prev(block)->first + std::prev(block)->second) ||
           (map != map_sizes.begin() &&
            (CUdeviceptr)(uintptr_t)at < std::prev(map)->first + std::prev(map)->second);
}

/* ---- Virtual memory ------------------------------------------------------------------------------------ */

constexpr size_t PAGE_BYTES = 64 << 10; /* small, so that small programs have several */

static CUresult get_granularity(size_t *bytes, const CUmemAllocationProp *,
                                CUmemAllocationGranularity_flags) {
    *bytes = PAGE_BYTES;
    return CUDA_SUCCESS;
}

static CUresult reserve(CUdeviceptr *address, size_t size, size_t, CUdeviceptr, unsigned long long) {
    void *reserved = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *address = (CUdeviceptr)(uintptr_t)reserved;
    return reserved == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult free_addresses(CUdeviceptr address, size_t size) {
    const guard lock(mutex);
    const auto next = maps.lower_bound(address);
    if (next != maps.end() && next->first < address + size)
        return CUDA_ERROR_INVALID_VALUE;
    munmap((void *)(uintptr_t)address, size);
    return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *,
                       unsigned long long) {
    const guard lock(mutex);
    static CUmemGenericAllocationHandle last;
    if (size % PAGE_BYTES != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!take(size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = ++last;
    pieces[*handle] = size;
    return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle handle) {
    const guard lock(mutex);
    used_bytes -= pieces.at(handle);
    pieces.erase(handle);
    return CUDA_SUCCESS;
}

static CUresult map(CUdeviceptr address, size_t size, size_t, CUmemGenericAllocationHandle handle,
                    unsigned long long) {
    const guard lock(mutex);
    if (maps.count(address) || pieces.at(handle) != size)
        return CUDA_ERROR_INVALID_VALUE;
    maps[address] = handle;
    map_sizes[address] = size;
    return CUDA_SUCCESS;
}

static CUresult set_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *, size_t) {
    if (mprotect((void *)(uintptr_t)address, size, PROT_READ | PROT_WRITE) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    memset((void *)(uintptr_t)address, 0xff, size);
    emulated::set_unwritten((void *)(uintptr_t)address, size);
    return CUDA_SUCCESS;
}

/* The pages lose what they hold. */
static CUresult unmap(CUdeviceptr address, size_t size) {
    const guard lock(mutex);
    if (!maps.count(address) || map_sizes.at(address) != size)
        return CUDA_ERROR_INVALID_VALUE;
    maps.erase(address);
    map_sizes.erase(address);
    emulated::set_written((void *)(uintptr_t)address, size);
    mmap((void *)(uintptr_t)address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
         -1, 0);
    return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned, unsigned long long,
                                             enum cudaDriverEntryPointQueryResult *found) {
    static const std::map<std::string, void *> functions = {
        {"cuMemGetAllocationGranularity", (void *)get_granularity},
        {"cuMemAddressReserve", (void *)reserve},
        {"cuMemAddressFree", (void *)free_addresses},
        {"cuMemCreate", (void *)create},
        {"cuMemRelease", (void *)release},
        {"cuMemMap", (void *)map},
        {"cuMemUnmap", (void *)unmap},
        {"cuMemSetAccess", (void *)set_access},
    };
    const auto entry = functions.find(name);
    const bool is_there = entry != functions.end() && !emulated_driver_has_no_memory;
    *function = is_there ? entry->second : nullptr;
    *found = is_there ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
