/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/virtual_range.h"

#include "backends/cuda/runtime/device.h"
#include "base/memory.h"

#include <cuda.h>

/* Pages that were given memory together are a piece, and lose it together. */
struct gb_cuda_page {
    CUmemGenericAllocationHandle handle; /* of a piece's first page: the piece's memory */
    uint32_t count;                      /* of a piece's first page: its pages */
    bool is_mapped;
};

/* ---- The driver ---------------------------------------------------------------------------------------- */

/* Its functions, which the runtime finds: the driver's library is not linked, so that a program starts where
 * there is none. */
struct gb_cuda_vm_driver {
    CUresult (*get_granularity)(size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags);
    CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
    CUresult (*free)(CUdeviceptr, size_t);
    CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
                       unsigned long long);
    CUresult (*release)(CUmemGenericAllocationHandle);
    CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
    CUresult (*unmap)(CUdeviceptr, size_t);
    CUresult (*set_access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
};

static bool find_function(const char *name, void *function) {
    enum { VERSION = 12000 };
    enum cudaDriverEntryPointQueryResult found;
    return cudaGetDriverEntryPointByVersion(name, (void **)function, VERSION, cudaEnableDefault, &found) ==
               cudaSuccess &&
           found == cudaDriverEntryPointSuccess;
}

static bool find_driver(gb_cuda_vm_driver *driver) {
    const bool is_found = find_function("cuMemGetAllocationGranularity", (void *)&driver->get_granularity) &&
                          find_function("cuMemAddressReserve", (void *)&driver->reserve) &&
                          find_function("cuMemAddressFree", (void *)&driver->free) &&
                          find_function("cuMemCreate", (void *)&driver->create) &&
                          find_function("cuMemRelease", (void *)&driver->release) &&
                          find_function("cuMemMap", (void *)&driver->map) &&
                          find_function("cuMemUnmap", (void *)&driver->unmap) &&
                          find_function("cuMemSetAccess", (void *)&driver->set_access);
    if (!is_found)
        cudaGetLastError(); /* it would be found after the next launch */
    return is_found;
}

/* Memory of the thread's device, which is the backend's. */
static CUmemAllocationProp properties(void) {
    int device = 0;
    cudaGetDevice(&device);
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
}

/* ---- Ranges ------------------------------------------------------------------------------------------- */

static uint64_t pages_of_slot(const gb_cuda_virtual_range *range) {
    return range->slot_bytes / range->page_bytes;
}

static CUdeviceptr address_of(const gb_cuda_virtual_range *range, uint64_t page) {
    return (CUdeviceptr)(uintptr_t)range->memory + page * range->page_bytes;
}

/* Reserves addresses; false where the driver does not do that. */
static bool reserve_addresses(gb_cuda_virtual_range *range) {
    const CUmemAllocationProp memory = properties();
    const gb_cuda_vm_driver *driver = range->driver;
    size_t page = 0;
    uint64_t slot_bytes, size;
    CUdeviceptr address;
    if (!find_driver(range->driver) ||
        driver->get_granularity(&page, &memory, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
        page == 0 || !gb_align_size(range->slot_bytes, page, &slot_bytes) ||
        !gb_multiply_size(slot_bytes, range->slot_count, &size) ||
        driver->reserve(&address, (size_t)size, 0, 0, 0) != CUDA_SUCCESS)
        return false;
    range->slot_bytes = slot_bytes;
    range->page_bytes = page;
    range->memory = (uint8_t *)(uintptr_t)address;
    return true;
}

static gumbel_status allocate_whole(gb_cuda_virtual_range *range, const char *what, gumbel_error *error) {
    void *memory;
    range->used_bytes = range->slot_count * range->slot_bytes;
    GB_TRY(gb_cuda_allocate(range->used_bytes, what, &memory, error));
    range->memory = memory;
    return GUMBEL_OK;
}

gumbel_status gb_cuda_virtual_range_create(uint32_t slot_count, uint64_t slot_bytes, const char *what,
                                           gb_cuda_virtual_range *range, gumbel_error *error) {
    uint64_t size;
    *range = (gb_cuda_virtual_range){.slot_count = slot_count, .slot_bytes = slot_bytes};
    if (!gb_multiply_size(slot_count, slot_bytes, &size) || size > SIZE_MAX / 2)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%llu slots of %llu bytes are more than there can be",
                       (unsigned long long)slot_count, (unsigned long long)slot_bytes);
    if (size == 0)
        return GUMBEL_OK;
    range->driver = gb_allocate(1, sizeof *range->driver);
    if (!range->driver)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %s", what);
    if (!reserve_addresses(range))
        return allocate_whole(range, what, error);
    range->pages = gb_allocate((size_t)(slot_count * pages_of_slot(range)), sizeof *range->pages);
    if (!range->pages)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of pages of %s", what);
    return GUMBEL_OK;
}

void gb_cuda_virtual_range_destroy(gb_cuda_virtual_range *range) {
    if (range->page_bytes == 0)
        gb_cuda_free(range->memory);
    for (uint32_t slot = 0; slot < range->slot_count && range->pages; slot++)
        gb_cuda_virtual_range_unmap(range, slot);
    if (range->page_bytes > 0)
        range->driver->free(address_of(range, 0), (size_t)(range->slot_count * range->slot_bytes));
    gb_free(range->pages);
    gb_free(range->driver);
    *range = (gb_cuda_virtual_range){0};
}

/* Gives memory to count pages that have none. */
static CUresult map_pages(gb_cuda_virtual_range *range, uint64_t first, uint64_t count) {
    const gb_cuda_vm_driver *driver = range->driver;
    const CUmemAllocationProp memory = properties();
    const CUmemAccessDesc access = {.location = memory.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUdeviceptr address = address_of(range, first);
    const size_t size = (size_t)(count * range->page_bytes);
    CUmemGenericAllocationHandle handle;
    CUresult result = driver->create(&handle, size, &memory, 0);
    if (result != CUDA_SUCCESS)
        return result;
    result = driver->map(address, size, 0, handle, 0);
    if (result == CUDA_SUCCESS) {
        result = driver->set_access(address, size, &access, 1);
        if (result != CUDA_SUCCESS)
            driver->unmap(address, size);
    }
    if (result != CUDA_SUCCESS) {
        driver->release(handle);
        return result;
    }
    range->pages[first].handle = handle;
    range->pages[first].count = (uint32_t)count;
    for (uint64_t i = 0; i < count; i++)
        range->pages[first + i].is_mapped = true;
    range->used_bytes += size;
    return CUDA_SUCCESS;
}

gumbel_status gb_cuda_virtual_range_map(gb_cuda_virtual_range *range, uint32_t slot, uint64_t offset,
                                        uint64_t size, const char *what, gumbel_error *error) {
    if (range->page_bytes == 0 || size == 0)
        return GUMBEL_OK;
    const uint64_t of_slot = slot * pages_of_slot(range);
    const uint64_t end = of_slot + (offset + size - 1) / range->page_bytes + 1;
    for (uint64_t first = of_slot + offset / range->page_bytes; first < end;) {
        uint64_t count = 0;
        while (first + count < end && !range->pages[first + count].is_mapped)
            count++;
        CUresult result = count > 0 ? map_pages(range, first, count) : CUDA_SUCCESS;
        if (result == CUDA_ERROR_OUT_OF_MEMORY)
            return gb_cuda_no_memory(count * range->page_bytes, what, error);
        if (result != CUDA_SUCCESS)
            return gb_fail(error, GUMBEL_ERROR_BACKEND, "cuda: memory for %s: the driver's error %d", what,
                           (int)result);
        first += count > 0 ? count : 1;
    }
    return GUMBEL_OK;
}

void gb_cuda_virtual_range_unmap(gb_cuda_virtual_range *range, uint32_t slot) {
    if (range->page_bytes == 0)
        return;
    const uint64_t of_slot = slot * pages_of_slot(range);
    for (uint64_t page = of_slot, count; page < of_slot + pages_of_slot(range); page += count) {
        gb_cuda_page *piece = &range->pages[page];
        count = piece->count > 0 ? piece->count : 1;
        if (piece->count == 0)
            continue;
        const size_t size = (size_t)(piece->count * range->page_bytes);
        range->driver->unmap(address_of(range, page), size);
        range->driver->release(piece->handle);
        range->used_bytes -= size;
        for (uint64_t i = 0; i < count; i++)
            range->pages[page + i] = (gb_cuda_page){.is_mapped = false};
    }
}
