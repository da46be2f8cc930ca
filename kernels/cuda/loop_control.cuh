// Decides within a graph what data decide: whether the body of a loop, a node of the graph, runs again, and which sizes
// the kernels after this one have. One block.

// A function of the driver's: NVIDIA's CUDA Runtime API, "Graph Management", of that name. A body runs while its node's
// value is not 0.
extern "C" __device__ void cudaGraphSetConditional(unsigned long long node, unsigned int value);

enum Mode { kBegin, kEnd, kChoose };

struct Progress {
  long long made;  // iterations
  long long row;   // of the iteration to come
};

struct Args {
  unsigned long long node;         // of the loop
  const unsigned char* condition;  // none, or not 0: the loop goes on
  const long long* value;          // iterations, at most; or what chooses a row, not negative
  Progress* progress;              // of the loop
  const uint4* rows;               // sizes, one row after the other
  uint4* sizes;                    // where kernels read theirs
  int vectors;                     // a row's length
  int period;                      // rows
  int mode;
  int padding;
};

// Whether the loop has another iteration; counts those that it had.
__device__ bool goes_on(const Args& args, Progress& progress) {
  if (args.mode == kEnd) {
    progress = *args.progress;
    ++progress.made;
    progress.row = progress.row + 1 == args.period ? 0 : progress.row + 1;
  }
  const bool again = progress.made < *args.value && (args.condition == nullptr || *args.condition != 0);
  __syncthreads();  // All have read what one writes.
  if (threadIdx.x == 0) {
    *args.progress = progress;
    cudaGraphSetConditional(args.node, again);
  }
  return again;
}

extern "C" __global__ void __launch_bounds__(kThreads) aot_loop_control(const __grid_constant__ Args args) {
  Progress progress{0, 0};
  if (args.mode == kChoose) {
    progress.row = static_cast<long long>(static_cast<unsigned long long>(*args.value) % args.period);
  } else if (!goes_on(args, progress)) {
    return;
  }
  const uint4* const row = args.rows + progress.row * args.vectors;
  for (int i = threadIdx.x; i < args.vectors; i += kThreads) args.sizes[i] = row[i];
}
