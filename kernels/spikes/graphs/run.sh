#!/bin/sh
# Builds the spike with nvcc and runs it: ./run.sh [ARCH]
set -eu
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
nvcc -std=c++20 -O3 -arch="${1:-sm_90a}" -o "$out/graphs" graphs.cu
"$out/graphs"
