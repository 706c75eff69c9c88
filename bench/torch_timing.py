# SPDX-License-Identifier: Apache-2.0
"""How the torch benchmarks here take the time of work on a CUDA device."""
import torch

REPLAYS = 20


def median_seconds(work):
    """Of work() captured as a graph, over replays; it has run once before."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    times = []
    for _ in range(REPLAYS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return sorted(times)[REPLAYS // 2]
