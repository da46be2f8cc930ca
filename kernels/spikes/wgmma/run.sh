#!/bin/bash
# Builds the spike with nvcc and runs it: errors first, then times. Under three minutes on an H200.
# Where there is no GPU, `run.sh build` only builds.
set -u
cd "$(dirname "$0")" || exit 1
out=${OUT:-/tmp}/wgmma
mkdir -p "$out"
echo "== build"
timeout 120 nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -Xptxas -v -o "$out/driver" driver.cu >"$out/build.log" 2>&1
status=$?
grep -iE "error|warning|C75|[1-9][0-9]* bytes spill" "$out/build.log"
[ $status -eq 0 ] || exit 1
[ "${1:-}" = build ] && exit 0
right=()
echo "== errors"
for name in $("$out/driver" list); do
  if timeout 20 "$out/driver" check "$name"; then right+=("$name"); else echo "$name: NOT RIGHT (status $?)"; fi
done
echo "== launches"
timeout 20 "$out/driver" launch
echo "== times"
for name in "${right[@]}"; do timeout 20 "$out/driver" time "$name"; done
timeout 60 python3 - <<'PY' || echo "no torch to compare with"
import statistics, torch
for m, n, k in [(4096, 4096, 4096), (8192, 8192, 8192), (4096, 384, 1536), (4096, 1536, 384), (512, 384, 384)]:
    a, b = (torch.rand(s, device="cuda").mul_(2).sub_(1).half() for s in ((m, k), (k, n)))
    graph = torch.cuda.CUDAGraph()
    a @ b
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(20):
            a @ b
    times = []
    for i in range(25):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 20 * 1e3)
    us = statistics.median(times[10:])
    print(f"{'torch, product alone':22} {m:5}x{n:5}x{k:5}  in a graph {us:9.2f} us  {2 * m * n * k / us * 1e-6:6.1f} TFLOP/s")
PY
