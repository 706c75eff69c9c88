/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/noise_sum.cu" /* as host C++; for the device, CMake gives it to nvcc */
