/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/region.h"

#include "backends/cuda/runtime/device.h"
#include "base/memory.h"

#include <cuda.h>

/* Pages that were given memory together are a piece, and lose it together. */
struct gb_cuda_page {
    CUmemGenericAllocationHandle handle; /* of a piece's first page: the piece's memory */
    uint32_t count;                      /* of a piece's first page: its pages */
    bool is_covered;
};

/* ---- The driver ---------------------------------------------------------------------------------------- */

/* Its functions, which the runtime finds: the driver's library is not linked, so that a program starts where
 * there is none. */
struct gb_cuda_virtual_memory {
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

static bool find_driver(gb_cuda_virtual_memory *driver) {
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

/* Memory of the first device, which is the one that the backend takes. */
static CUmemAllocationProp properties(void) {
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
}

/* ---- Regions ------------------------------------------------------------------------------------------- */

static uint64_t pages_of_slot(const gb_cuda_region *region) {
    return region->slot_bytes / region->page_bytes;
}

static CUdeviceptr address_of(const gb_cuda_region *region, uint64_t page) {
    return (CUdeviceptr)(uintptr_t)region->memory + page * region->page_bytes;
}

/* Reserves addresses; false where the driver does not do that. */
static bool reserve_addresses(gb_cuda_region *region) {
    const CUmemAllocationProp memory = properties();
    const gb_cuda_virtual_memory *driver = region->driver;
    size_t page = 0;
    uint64_t slot_bytes, size;
    CUdeviceptr address;
    if (!find_driver(region->driver) ||
        driver->get_granularity(&page, &memory, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
        page == 0 || !gb_align_size(region->slot_bytes, page, &slot_bytes) ||
        !gb_multiply_size(slot_bytes, region->slot_count, &size) ||
        driver->reserve(&address, (size_t)size, 0, 0, 0) != CUDA_SUCCESS)
        return false;
    region->slot_bytes = slot_bytes;
    region->page_bytes = page;
    region->memory = (uint8_t *)(uintptr_t)address;
    return true;
}

static gumbel_status allocate_whole(gb_cuda_region *region, const char *what, gumbel_error *error) {
    void *memory;
    region->covered_bytes = region->slot_count * region->slot_bytes;
    GB_TRY(gb_cuda_allocate(region->covered_bytes, what, &memory, error));
    region->memory = memory;
    return GUMBEL_OK;
}

gumbel_status gb_cuda_region_create(uint32_t slot_count, uint64_t slot_bytes, const char *what,
                                    gb_cuda_region *region, gumbel_error *error) {
    uint64_t size;
    *region = (gb_cuda_region){.slot_count = slot_count, .slot_bytes = slot_bytes};
    if (!gb_multiply_size(slot_count, slot_bytes, &size) || size > SIZE_MAX / 2)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%llu slots of %llu bytes are more than there can be",
                       (unsigned long long)slot_count, (unsigned long long)slot_bytes);
    if (size == 0)
        return GUMBEL_OK;
    region->driver = gb_allocate(1, sizeof *region->driver);
    if (!region->driver)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %s", what);
    if (!reserve_addresses(region))
        return allocate_whole(region, what, error);
    region->pages = gb_allocate((size_t)(slot_count * pages_of_slot(region)), sizeof *region->pages);
    if (!region->pages)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of pages of %s", what);
    return GUMBEL_OK;
}

void gb_cuda_region_destroy(gb_cuda_region *region) {
    if (region->page_bytes == 0)
        gb_cuda_free(region->memory);
    for (uint32_t slot = 0; slot < region->slot_count && region->pages; slot++)
        gb_cuda_region_uncover(region, slot);
    if (region->page_bytes > 0)
        region->driver->free(address_of(region, 0), (size_t)(region->slot_count * region->slot_bytes));
    gb_free(region->pages);
    gb_free(region->driver);
    *region = (gb_cuda_region){0};
}

/* Gives memory to count pages that have none. */
static CUresult cover_pages(gb_cuda_region *region, uint64_t first, uint64_t count) {
    const gb_cuda_virtual_memory *driver = region->driver;
    const CUmemAllocationProp memory = properties();
    const CUmemAccessDesc access = {.location = memory.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUdeviceptr address = address_of(region, first);
    const size_t size = (size_t)(count * region->page_bytes);
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
    region->pages[first].handle = handle;
    region->pages[first].count = (uint32_t)count;
    for (uint64_t i = 0; i < count; i++)
        region->pages[first + i].is_covered = true;
    region->covered_bytes += size;
    return CUDA_SUCCESS;
}

gumbel_status gb_cuda_region_cover(gb_cuda_region *region, uint32_t slot, uint64_t offset, uint64_t size,
                                   const char *what, gumbel_error *error) {
    if (region->page_bytes == 0 || size == 0)
        return GUMBEL_OK;
    const uint64_t of_slot = slot * pages_of_slot(region);
    const uint64_t end = of_slot + (offset + size - 1) / region->page_bytes + 1;
    for (uint64_t first = of_slot + offset / region->page_bytes; first < end;) {
        uint64_t count = 0;
        while (first + count < end && !region->pages[first + count].is_covered)
            count++;
        CUresult result = count > 0 ? cover_pages(region, first, count) : CUDA_SUCCESS;
        if (result == CUDA_ERROR_OUT_OF_MEMORY)
            return gb_cuda_no_memory(count * region->page_bytes, what, error);
        if (result != CUDA_SUCCESS)
            return gb_fail(error, GUMBEL_ERROR_BACKEND, "cuda: memory for %s: the driver's error %d", what,
                           (int)result);
        first += count > 0 ? count : 1;
    }
    return GUMBEL_OK;
}

void gb_cuda_region_uncover(gb_cuda_region *region, uint32_t slot) {
    if (region->page_bytes == 0)
        return;
    const uint64_t of_slot = slot * pages_of_slot(region);
    for (uint64_t page = of_slot, count; page < of_slot + pages_of_slot(region); page += count) {
        gb_cuda_page *piece = &region->pages[page];
        count = piece->count > 0 ? piece->count : 1;
        if (piece->count == 0)
            continue;
        const size_t size = (size_t)(piece->count * region->page_bytes);
        region->driver->unmap(address_of(region, page), size);
        region->driver->release(piece->handle);
        region->covered_bytes -= size;
        for (uint64_t i = 0; i < count; i++)
            region->pages[page + i] = (gb_cuda_page){.is_covered = false};
    }
}
