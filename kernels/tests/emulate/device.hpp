// Enough of CUDA C++ to run a kernel's text on a CPU: every thread of a block is a fiber, blocks run one
// after another, and instructions of a whole warp meet in `warp_step`.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <ucontext.h>
#include <vector>

#define __device__
#define __global__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static
#define __restrict__
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) alignas(n)
#define __constant__ static

struct dim3_ { unsigned x, y, z; };
struct uint4 { unsigned x, y, z, w; };
struct uint2 { unsigned x, y; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
template <class To, class From> To bits_as(From x) { To y; static_assert(sizeof x == sizeof y, ""); memcpy(&y, &x, sizeof y); return y; }
inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
inline float __int_as_float(int x) { return bits_as<float>(x); }
inline int __float_as_int(float x) { return bits_as<int>(x); }
inline double __longlong_as_double(long long x) { return bits_as<double>(x); }
inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }
template <class T> T __ldcg(const T* p) { return *p; }
template <class T> T __ldg(const T* p) { return *p; }
template <class T> T atomicAdd(T* p, T v) { T old = *p; *p = old + v; return old; }
inline void __threadfence() {}
inline float __expf(float x) { return expf(x); }
template <class T> T min(T a, T b) { return a < b ? a : b; }
template <class T> T max(T a, T b) { return a > b ? a : b; }

static dim3_ threadIdx, blockIdx, blockDim, gridDim;
static char shared_memory[256 * 1024] __attribute__((aligned(1024)));

struct Fiber { ucontext_t context; std::vector<char> stack; bool done; };
struct Warp { int arrived = 0; unsigned turn = 0; const void* input[32]; void* output[32]; };
static std::vector<Fiber> fibers;
static std::vector<Warp> warps;
static ucontext_t scheduler;
static unsigned current, block_turn, block_arrived;
static void (*fiber_body)();

inline void yield_fiber() {
  unsigned me = current;
  swapcontext(&fibers[me].context, &scheduler);
  current = me;
  threadIdx = {me, 0, 0};
}
inline void __syncthreads() {
  unsigned turn = block_turn;
  if (++block_arrived == fibers.size()) { block_arrived = 0; ++block_turn; return; }
  while (block_turn == turn) yield_fiber();
}
// All lanes of a warp give an input and an output; the last one to come does `f` for all.
template <class F> void warp_step(const void* input, void* output, F f) {
  Warp& w = warps[current / 32];
  w.input[current % 32] = input;
  w.output[current % 32] = output;
  unsigned turn = w.turn;
  if (++w.arrived == 32) { f(w); w.arrived = 0; ++w.turn; return; }
  while (w.turn == turn) yield_fiber();
}
inline void __syncwarp(unsigned = 0) { warp_step(nullptr, nullptr, [](Warp&) {}); }
template <class T> T shuffle(T v, int from) {
  struct In { T v; int from; } in{v, from};
  T out;
  warp_step(&in, &out, [](Warp& w) {
    for (int l = 0; l < 32; ++l) *(T*)w.output[l] = ((const In*)w.input[((const In*)w.input[l])->from])->v;
  });
  return out;
}
template <class T> T __shfl_xor_sync(unsigned, T v, int mask, int = 32) { return shuffle(v, (current % 32) ^ mask); }
template <class T> T __shfl_sync(unsigned, T v, int from, int = 32) { return shuffle(v, from); }
template <class T> T __shfl_down_sync(unsigned, T v, int by, int = 32) { int l = current % 32; return shuffle(v, l + by < 32 ? l + by : l); }

static void fiber_main() { fiber_body(); fibers[current].done = true; swapcontext(&fibers[current].context, &scheduler); }

inline void launch(unsigned gx, unsigned gy, unsigned gz, unsigned threads, void (*body)()) {
  gridDim = {gx, gy, gz};
  blockDim = {threads, 1, 1};
  fiber_body = body;
  fibers.resize(threads);
  for (auto& f : fibers) f.stack.resize(128 * 1024);
  for (unsigned z = 0; z < gz; ++z) for (unsigned y = 0; y < gy; ++y) for (unsigned x = 0; x < gx; ++x) {
    blockIdx = {x, y, z};
    memset(shared_memory, 0xff, sizeof shared_memory);  // NaN wherever nothing was written
    warps.assign((threads + 31) / 32, Warp());
    block_turn = block_arrived = 0;
    for (unsigned t = 0; t < threads; ++t) {
      Fiber& f = fibers[t];
      f.done = false;
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = f.stack.data();
      f.context.uc_stack.ss_size = f.stack.size();
      f.context.uc_link = nullptr;
      makecontext(&f.context, fiber_main, 0);
    }
    for (bool any = true; any;) {
      any = false;
      for (unsigned t = 0; t < threads; ++t) {
        if (fibers[t].done) continue;
        any = true;
        current = t;
        threadIdx = {t, 0, 0};
        swapcontext(&scheduler, &fibers[t].context);
      }
    }
  }
}
