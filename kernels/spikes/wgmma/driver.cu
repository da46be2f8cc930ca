// Compares the schedules of kernels.cuh with binary64 and times them.
//
//   driver list        names of schedules
//   driver check NAME  relative errors; exits with 1 if one is over 1e-3
//   driver time NAME   medians of 60 launches, and of launches in a graph
//   driver launch      what tensor maps and larger arguments cost the host

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "kernels.cuh"
#include "reference.cuh"

static void must(int error, const char* what) {
  if (error == 0) return;
  std::printf("failed with error %d: %s\n", error, what);
  std::exit(2);
}
#define MUST(call) must(static_cast<int>(call), #call)

// A function of the driver, found at run time.
template <class F>
static F* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  MUST(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
  must(found == nullptr, name);
  return reinterpret_cast<F*>(found);
}

struct Schedule {
  const char* name;
  const void* kernel;
  int tile_m, tile_n, threads, shared;
  int cluster;  // blocks of a cluster that walk over tiles; 0: a block for each tile
  bool maps;    // takes ArgsWithMaps
  int run;      // n and k have to be multiples of this
};

#define MMA_ENTRY(name, m, n, stages, run)                                                   \
  Schedule{"mma_" #name, reinterpret_cast<const void*>(mma_##name), m, n, Mma_##name::kThreads, \
           std::max(stages * Mma_##name::kStageBytes, 2 * 16 * (n + 8) * 4), 0, false, run}
#define WGMMA_ENTRY(name, n, cluster, maps)                                                  \
  Schedule{"wgmma_" #name, reinterpret_cast<const void*>(wgmma_##name), 128, n, 384,         \
           Wgmma_##name::kSharedBytes, cluster, maps, 8}

static const Schedule kSchedules[] = {
    MMA_ENTRY(128x256, 128, 256, 4, 8),        MMA_ENTRY(128x128, 128, 128, 3, 8),
    MMA_ENTRY(64x64, 64, 64, 3, 8),            MMA_ENTRY(any, 64, 64, 3, 1),
    WGMMA_ENTRY(given_256, 256, 1, true),      WGMMA_ENTRY(given_256_pair, 256, 2, true),
    WGMMA_ENTRY(built_256, 256, 1, false),     WGMMA_ENTRY(threads_256, 256, 1, false),
    WGMMA_ENTRY(given_128, 128, 1, true),      WGMMA_ENTRY(given_128_pair, 128, 2, true),
    WGMMA_ENTRY(built_128, 128, 1, false),     WGMMA_ENTRY(threads_128, 128, 1, false),
};
static const Schedule& kFallback = kSchedules[3];

template <class T>
static T* allocate(long long count) {
  void* p = nullptr;
  MUST(cudaMalloc(&p, count * sizeof(T)));
  return static_cast<T*>(p);
}

// The map of a contiguous matrix of binary16 for boxes of box_rows x 64 with the 128-byte swizzle.
static void encode(TensorMap* map, const f16* matrix, int rows, int columns, int box_rows) {
  static const auto call = driver_function<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(columns) * 2};
  const cuuint32_t box[2] = {64, static_cast<cuuint32_t>(box_rows)}, steps[2] = {1, 1};
  MUST(call(reinterpret_cast<CUtensorMap*>(map), CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, const_cast<f16*>(matrix), sizes,
            strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
            CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

// A problem's operands, and a launch of it.
struct Run {
  ArgsWithMaps args = {};
  int processors = 0;

  Run(int m, int n, int k) {
    args.m = m, args.n = n, args.k = k;
    f16* operands[4];
    const long long counts[4] = {1ll * m * k, 1ll * k * n, n, 1ll * m * n};
    for (int i = 0; i < 4; ++i) {
      operands[i] = allocate<f16>(counts[i]);
      fill<<<1024, 256>>>(operands[i], counts[i], m * 31 + n * 17 + k + i);
    }
    args.a = operands[0], args.b = operands[1], args.bias = operands[2], args.residual = operands[3];
    args.out = allocate<f16>(counts[3]);
    MUST(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    args.scratch = allocate<char>(256ll * processors);
    MUST(cudaGetLastError());
  }
  ~Run() {
    const void* all[] = {args.a, args.b, args.bias, args.residual, args.out, args.scratch};
    for (const void* p : all) cudaFree(const_cast<void*>(p));
  }

  // Maps for up to `rows` rows of a.
  void encode_maps(int rows) {
    encode(&args.map_a, args.a, rows, args.k, 128);
    encode(&args.map_b, args.b, args.k, args.n, 64);
  }

  bool fits(const Schedule& s) const { return args.n % s.run == 0 && args.k % s.run == 0; }

  void launch(const Schedule& s, cudaStream_t stream) {
    const int height = std::max(1, s.cluster);
    const int rows = (args.m + s.tile_m * height - 1) / (s.tile_m * height);
    int blocks = rows * height * ((args.n + s.tile_n - 1) / s.tile_n);
    if (s.cluster > 0) blocks = std::min(blocks, processors / s.cluster * s.cluster);
    void* parameter = s.maps ? static_cast<void*>(&args) : static_cast<void*>(static_cast<Args*>(&args));
    MUST(cudaLaunchKernel(s.kernel, dim3(blocks), dim3(s.threads), &parameter, s.shared, stream));
  }
};

static void prepare(const Schedule& s) {
  MUST(cudaFuncSetAttribute(s.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, s.shared));
}

// Relative errors of the whole and of the worst row; false if one is over 1e-3 or not a number.
static bool distance(Run& run, const char* name) {
  const Args& p = run.args;
  double* expected = allocate<double>(1ll * p.m * p.n);
  double* rows = allocate<double>(2ll * p.m);
  reference<<<dim3((p.n + 15) / 16, (p.m + 15) / 16), 256>>>(p, expected);
  compare<<<p.m, 256>>>(p.out, expected, p.n, rows);
  std::vector<double> sums(2ll * p.m);
  MUST(cudaMemcpy(sums.data(), rows, sums.size() * sizeof(double), cudaMemcpyDeviceToHost));
  cudaFree(expected), cudaFree(rows);
  double difference = 0, size = 0, worst = 0;
  for (int i = 0; i < p.m; ++i) {
    difference += sums[2 * i], size += sums[2 * i + 1];
    const double row = std::sqrt(sums[2 * i] / sums[2 * i + 1]);
    if (!(row <= worst)) worst = row;
  }
  const double all = std::sqrt(difference / size);
  const bool good = all <= 1e-3 && worst <= 1e-3;
  std::printf("%-22s %5dx%5dx%5d  error %.2e, worst row %.2e  %s\n", name, p.m, p.n, p.k, all, worst,
              good ? "ok" : "WRONG");
  return good;
}

// Poisons the output, runs and compares. What the schedule can't do goes to the fallback.
static bool check(const Schedule& s, int m, int n, int k) {
  Run run(m, n, k);
  const Schedule& chosen = run.fits(s) ? s : kFallback;
  prepare(chosen);
  if (chosen.maps) run.encode_maps(m);
  bool good = true;
  for (int repeat = 0; repeat < 2; ++repeat) {
    MUST(cudaMemset(run.args.out, 0xff, 2ll * m * n));
    run.launch(chosen, nullptr);
    MUST(cudaDeviceSynchronize());
    good = distance(run, chosen.name) && good;
  }
  return good;
}

// The same maps serve fewer rows: those past the end are read and not stored.
static bool check_bound(const Schedule& s, int bound, int m, int n, int k) {
  Run run(bound, n, k);
  prepare(s);
  run.encode_maps(bound);
  MUST(cudaMemset(const_cast<f16*>(run.args.a) + 1ll * m * k, 0xff, 2ll * (bound - m) * k));
  MUST(cudaMemset(run.args.out, 0xff, 2ll * bound * n));
  run.args.m = m;
  run.launch(s, nullptr);
  MUST(cudaDeviceSynchronize());
  std::printf("maps of %d rows: ", bound);
  return distance(run, s.name);
}

static double median(std::vector<float>& times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2] * 1e3;
}

// Microseconds of `work`, `count` times.
static double time_each(cudaStream_t stream, int count, const std::function<void()>& work) {
  std::vector<cudaEvent_t> events(count + 1);
  std::vector<float> times(count);
  for (auto& e : events) MUST(cudaEventCreate(&e));
  for (int i = 0; i < 10; ++i) work();
  MUST(cudaEventRecord(events[0], stream));
  for (int i = 0; i < count; ++i) {
    work();
    MUST(cudaEventRecord(events[i + 1], stream));
  }
  MUST(cudaStreamSynchronize(stream));
  for (int i = 0; i < count; ++i) MUST(cudaEventElapsedTime(&times[i], events[i], events[i + 1]));
  for (auto& e : events) cudaEventDestroy(e);
  return median(times);
}

static void time_schedule(const Schedule& s, int m, int n, int k) {
  constexpr int kInGraph = 20;
  Run run(m, n, k);
  if (!run.fits(s)) return;
  prepare(s);
  if (s.maps) run.encode_maps(m);
  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUST(cudaDeviceSynchronize());
  const double single = time_each(stream, 60, [&] { run.launch(s, stream); });
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kInGraph; ++i) run.launch(s, stream);
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaGraphInstantiate(&executable, graph, 0));
  const double in_graph = time_each(stream, 15, [&] { MUST(cudaGraphLaunch(executable, stream)); }) / kInGraph;
  std::printf("%-22s %5dx%5dx%5d  %9.2f us  in a graph %9.2f us  %6.1f TFLOP/s\n", s.name, m, n, k, single, in_graph,
              2.0 * m * n * k / in_graph * 1e-6);
  cudaGraphExecDestroy(executable), cudaGraphDestroy(graph), cudaStreamDestroy(stream);
}

static double nanoseconds_each(int count, const std::function<void(int)>& work) {
  for (int i = 0; i < count / 10; ++i) work(i);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) work(i);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / count;
}

static void launch_costs() {
  Run run(512, 384, 384);
  std::printf("encoding a tensor map %.0f ns\n",
              nanoseconds_each(100000, [&](int i) { encode(&run.args.map_a, run.args.a, 1 + i % 512, 384, 128); }));
  const auto move = driver_function<decltype(cuTensorMapReplaceAddress)>("cuTensorMapReplaceAddress");
  std::printf("giving one another address %.0f ns\n", nanoseconds_each(100000, [&](int i) {
                MUST(move(reinterpret_cast<CUtensorMap*>(&run.args.map_a), run.args.out + i % 8 * 384));
              }));
  // What the first word is, and whether it is all that the address changes.
  TensorMap here, there;
  encode(&here, run.args.a, 512, 384, 128);
  encode(&there, run.args.out, 512, 384, 128);
  int differ = 0;
  for (int i = 1; i < 16; ++i) differ += here.words[i] != there.words[i];
  std::printf("word 0 is the address: %s; other words that change with it: %d\n",
              here.words[0] == reinterpret_cast<unsigned long long>(run.args.a) ? "yes" : "no", differ);

  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  void* parameter = &run.args;
  const void* kernels[2] = {reinterpret_cast<const void*>(empty_small), reinterpret_cast<const void*>(empty_large)};
  const size_t bytes[2] = {sizeof(Args), sizeof(ArgsWithMaps)};
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 2; ++i) {
      const double ns = nanoseconds_each(20000, [&](int) {
        MUST(cudaLaunchKernel(kernels[i], dim3(1), dim3(32), &parameter, 0, stream));
      });
      MUST(cudaStreamSynchronize(stream));
      std::printf("launching with %3zu bytes of arguments %.0f ns\n", bytes[i], ns);
    }
  }
  for (int i = 0; i < 2; ++i) {
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaGraphExec_t executable;
    cudaKernelNodeParams node_params = {};
    node_params.func = const_cast<void*>(kernels[i]);
    node_params.gridDim = dim3(1), node_params.blockDim = dim3(32), node_params.kernelParams = &parameter;
    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &node_params));
    MUST(cudaGraphInstantiate(&executable, graph, 0));
    const double ns = nanoseconds_each(20000, [&](int) {
      MUST(cudaGraphExecKernelNodeSetParams(executable, node, &node_params));
    });
    std::printf("giving a graph's node %3zu other bytes of arguments %.0f ns\n", bytes[i], ns);
    cudaGraphExecDestroy(executable), cudaGraphDestroy(graph);
  }
}

int main(int count, char** words) {
  const char* what = count > 1 ? words[1] : "";
  if (!std::strcmp(what, "list")) {
    for (const Schedule& s : kSchedules) std::puts(s.name);
    return 0;
  }
  if (!std::strcmp(what, "launch")) {
    launch_costs();
    return 0;
  }
  for (const Schedule& s : kSchedules) {
    if (count < 3 || std::strcmp(words[2], s.name)) continue;
    if (!std::strcmp(what, "check")) {
      bool good = true;
      const int sizes[][3] = {{4096, 4096, 4096}, {4096, 1536, 384}, {333, 776, 136}, {333, 777, 129}, {1, 8, 8}};
      for (const auto& z : sizes) good = check(s, z[0], z[1], z[2]) && good;
      if (s.maps) good = check_bound(s, 4096, 1000, 1536, 384) && good;
      return good ? 0 : 1;
    }
    if (!std::strcmp(what, "time")) {
      const int sizes[][3] = {
          {4096, 4096, 4096}, {8192, 8192, 8192}, {4096, 384, 1536}, {4096, 1536, 384}, {512, 384, 384}};
      for (const auto& z : sizes) time_schedule(s, z[0], z[1], z[2]);
      return 0;
    }
  }
  std::puts("usage: driver list | launch | check NAME | time NAME");
  return 2;
}
