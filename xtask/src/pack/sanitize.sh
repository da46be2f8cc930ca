#!/bin/sh
# Runs the GPU tests of this pack under a tool of compute-sanitizer, a process for each network.
# usage: sanitize.sh memcheck|racecheck|initcheck|synccheck [PROCESSES [SECONDS [NETWORKS]]]
#
# SECONDS is the limit for a network in all of its precisions, NETWORKS an expression that their names match. The host
# decides meanwhile what data decide: the tools do not know conditional nodes of graphs. Prints what failed and last
# `N networks, N failed`.
tool=${1:?which tool?} processes=${2:-12} limit=${3:-300} chosen=${4:-.}
cd "$(dirname "$0")" || exit 2
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
export AOT_FORCE_HOST=1 tool limit out
grep -o '"name": "[^"]*"' pack.json | cut -d'"' -f4 | sort -u |
  grep -v '^bench/' | grep -E "$chosen" > "$out/networks"
xargs -r -P "$processes" -d '\n' -n 1 sh -c '
  log=$out/$(echo "$1" | tr "/ " "__").log
  timeout "$limit" compute-sanitizer --tool "$tool" --error-exitcode 9 ./bin/gpu-tests . "$1 in" > "$log" 2>&1
  code=$?
  [ $code = 0 ] && ! grep -q "^0 passed" "$log" && exit
  echo "FAILED $1, exit code $code"
  echo "$1" >> "$out/failed"
  grep -E "^FAILED|^error|=========.*(ERROR|Error|Invalid|hazard|Uninit)" "$log" | cut -c 1-400 | head -6
' sanitize < "$out/networks"
touch "$out/failed"
echo "$(wc -l < "$out/networks") networks, $(wc -l < "$out/failed") failed"
[ ! -s "$out/failed" ]
