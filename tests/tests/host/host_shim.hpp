// Enough of CUDA to run a kernel's text on the host, block by block: every thread is a fibre that
// gives way where threads exchange something. Neighbours of a warp reach each exchange together.
#include <ucontext.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define __device__
#define __forceinline__ inline
#define __global__
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static

struct Coordinates { unsigned x, y, z; };
struct uint2 { unsigned x, y; } __attribute__((aligned(8)));
struct uint4 { unsigned x, y, z, w; } __attribute__((aligned(16)));
static Coordinates threadIdx, blockIdx;

struct Fibre {
  ucontext_t context;
  std::vector<char> stack;
  bool done;
  unsigned exchanges;
};
static std::vector<Fibre> fibres;
static ucontext_t scheduler;
static unsigned current, arrived, generation;
static uint64_t slots[2][1024];

static void give_way() { swapcontext(&fibres[current].context, &scheduler); }

static void __syncthreads() {
  unsigned mine = generation;
  if (++arrived == fibres.size()) {
    arrived = 0;
    ++generation;
  }
  while (generation == mine) give_way();
}

// All threads give a value; each gets that of the thread `from`.
template <typename T> static T exchanged(T x, unsigned from) {
  unsigned parity = fibres[current].exchanges++ & 1;
  slots[parity][current] = 0;
  memcpy(&slots[parity][current], &x, sizeof(T));
  give_way();
  T y;
  memcpy(&y, &slots[parity][from], sizeof(T));
  return y;
}
template <typename T> static T __shfl_xor_sync(unsigned, T x, int mask) {
  return exchanged(x, current ^ (unsigned)mask);
}
template <typename T> static T __shfl_up_sync(unsigned, T x, unsigned distance) {
  return exchanged(x, current % 32 < distance ? current : current - distance);
}
template <typename T> static T __shfl_sync(unsigned, T x, int lane) {
  return exchanged(x, current / 32 * 32 + (unsigned)lane % 32);
}

template <typename T> static T __ldg(const T* x) { return *x; }
template <typename T> static T atomicAdd(T* at, T x) {
  T old = *at;
  *at = old + x;
  return old;
}
template <typename T> static T atomicAnd(T* at, T x) {
  T old = *at;
  *at = old & x;
  return old;
}
template <typename T> static T atomicOr(T* at, T x) {
  T old = *at;
  *at = old | x;
  return old;
}
template <typename T> static T atomicCAS(T* at, T expected, T x) {
  T old = *at;
  if (old == expected) *at = x;
  return old;
}

template <typename To, typename From> static To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To y;
  memcpy(&y, &x, sizeof(To));
  return y;
}
static unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
static float __uint_as_float(unsigned x) { return bits_as<float>(x); }
static float __int_as_float(int x) { return bits_as<float>(x); }
static double __longlong_as_double(long long x) { return bits_as<double>(x); }
static float __fdividef(float a, float b) { return a / b; }

template <typename T> static T saturated(double x, double lo, double hi, T least, T greatest) {
  return x != x ? 0 : x <= lo ? least : x >= hi ? greatest : (T)x;
}
static int __double2int_rz(double x) {
  return saturated<int>(x, -2147483648.0, 2147483647.0, INT32_MIN, INT32_MAX);
}
static unsigned __double2uint_rz(double x) {
  return saturated<unsigned>(x, 0.0, 4294967295.0, 0, UINT32_MAX);
}
static long long __double2ll_rz(double x) {
  return saturated<long long>(x, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX);
}
static unsigned long long __double2ull_rz(double x) {
  return saturated<unsigned long long>(x, 0.0, 0x1p64, 0, UINT64_MAX);
}
static int __float2int_rz(float x) { return __double2int_rz(x); }
static unsigned __float2uint_rz(float x) { return __double2uint_rz(x); }
static long long __float2ll_rz(float x) { return __double2ll_rz(x); }
static unsigned long long __float2ull_rz(float x) { return __double2ull_rz(x); }

template <typename T> static T read_number() {
  T x;
  if (fread(&x, sizeof(T), 1, stdin) != 1) exit(3);
  return x;
}

// The launch that a fibre belongs to.
static void (*thread_body)(const void*);
static const void* thread_args;

static void run_thread() {
  thread_body(thread_args);
  fibres[current].done = true;
}

static void run_block(unsigned threads) {
  fibres.resize(threads);
  arrived = 0;
  for (Fibre& f : fibres) {
    f.done = false;
    f.exchanges = 0;
    f.stack.resize(64 * 1024);
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.data();
    f.context.uc_stack.ss_size = f.stack.size();
    f.context.uc_link = &scheduler;
    makecontext(&f.context, run_thread, 0);
  }
  for (bool left = true; left;) {
    left = false;
    for (current = 0; current < threads; ++current) {
      if (fibres[current].done) continue;
      left = true;
      threadIdx = {current, 0, 0};
      swapcontext(&scheduler, &fibres[current].context);
    }
  }
}

// Reads sizes, buffers and numbers, launches, writes the buffers back. Arguments come packed as the launch
// ABI says: the address of sizes, that of progress, pointers, 64-bit integers, of which the first is the launch's number,
// 32-bit integers.
template <typename Args> static void run_case(void (*kernel)(Args)) {
  static void (*launched)(Args);
  launched = kernel;
  uint32_t needed = read_number<uint32_t>(), threads = read_number<uint32_t>();
  uint32_t grid = needed;
  // Blocks that have nothing to do must leave.
  if (read_number<uint32_t>()) grid += 2;
  uint32_t sizes_bytes = read_number<uint32_t>();
  uint32_t pointers = read_number<uint32_t>(), wide = read_number<uint32_t>();
  uint32_t narrow = read_number<uint32_t>();
  std::vector<std::vector<uint4>> buffers(pointers);
  std::vector<uint64_t> sizes(pointers);
  std::vector<char> packed;
  auto append = [&](const void* x, size_t n) {
    packed.insert(packed.end(), (const char*)x, (const char*)x + n);
  };
  // A length that no buffer has says that the pointer is the same as another one, whose number follows.
  std::vector<uint32_t> same(pointers);
  std::vector<uint4> own_sizes(sizes_bytes / 16 + 1);
  if (sizes_bytes) {
    if (fread(own_sizes.data(), sizes_bytes, 1, stdin) != 1) exit(3);
    void* address = own_sizes.data();
    append(&address, 8);
  }
  uint64_t progress = 0, *progress_address = &progress, number = 0;
  append(&progress_address, 8);
  for (uint32_t i = 0; i < pointers; ++i) {
    uint64_t size = read_number<uint64_t>();
    same[i] = size == UINT64_MAX ? read_number<uint32_t>() : i;
    if (same[i] != i) continue;
    sizes[i] = size;
    buffers[i].resize(size / 16 + 1);
    if (size && fread(buffers[i].data(), size, 1, stdin) != 1) exit(3);
  }
  for (uint32_t i = 0; i < pointers; ++i) {
    void* address = buffers[same[i]].data();
    append(&address, 8);
  }
  for (uint32_t i = 0; i < wide; ++i) {
    int64_t x = read_number<int64_t>();
    if (i == 0) number = x;
    append(&x, 8);
  }
  for (uint32_t i = 0; i < narrow; ++i) {
    int32_t x = read_number<int32_t>();
    append(&x, 4);
  }
  packed.resize((packed.size() + 7) / 8 * 8);
  if (packed.size() != sizeof(Args)) {
    fprintf(stderr, "arguments take %zu bytes, not %zu\n", packed.size(), sizeof(Args));
    exit(4);
  }
  Args args;
  memcpy(&args, packed.data(), sizeof(Args));
  thread_args = &args;
  thread_body = [](const void* a) { launched(*(const Args*)a); };
  for (uint32_t b = 0; b < grid; ++b) {
    blockIdx = {b, 0, 0};
    run_block(threads);
  }
  if (progress != (needed ? number : 0)) {
    fprintf(stderr, "progress is %llu, not %llu\n", (unsigned long long)progress, (unsigned long long)number);
    exit(5);
  }
  for (uint32_t i = 0; i < pointers; ++i) {
    uint64_t size = sizes[same[i]];
    if (size) fwrite(buffers[same[i]].data(), size, 1, stdout);
  }
  fflush(stdout);
}
