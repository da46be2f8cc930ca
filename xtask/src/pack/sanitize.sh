#!/bin/sh
# Runs the GPU tests of this pack under a tool of compute-sanitizer, a process for each network.
# usage: sanitize.sh memcheck|racecheck|initcheck|synccheck [PROCESSES [SECONDS [NETWORKS]]]
#
# SECONDS is the limit for a network in all of its precisions, NETWORKS an expression that their names match. Under
# racecheck, which is the slowest, networks only run once at each of their sizes. The host decides meanwhile what data
# decide: the tools can't follow conditional nodes of graphs (docs/spikes.md). Prints what failed and last `N networks, N
# passed, N failed`, also when it is told to end before.
tool=${1:?which tool?} processes=${2:-12} limit=${3:-600} chosen=${4:-.}
cd "$(dirname "$0")" || exit 2
out=$(mktemp -d) || exit 2
count() { wc -l < "$out/$1"; }
trap 'echo "$(count networks) networks, $(count passed) passed, $(count failed) failed"; rm -rf "$out"' EXIT
trap 'kill $!; exit 1' INT TERM
case $tool in racecheck) extent=once ;; *) extent= ;; esac
touch "$out/passed" "$out/failed"
export AOT_FORCE_HOST=1 tool limit extent out
grep -o '"name": "[^"]*"' pack.json | cut -d'"' -f4 | sort -u |
  grep -v '^bench/' | grep -E "$chosen" > "$out/networks"
xargs -r -P "$processes" -d '\n' -n 1 sh -c '
  log=$out/$(echo "$1" | tr "/ " "__").log
  timeout "$limit" compute-sanitizer --tool "$tool" --error-exitcode 9 ./bin/gpu-tests . "$1 in" $extent > "$log" 2>&1
  code=$?
  if [ $code = 0 ] && ! grep -q "^0 passed" "$log"; then echo "$1" >> "$out/passed"; exit; fi
  echo "FAILED $1, exit code $code"
  echo "$1" >> "$out/failed"
  grep -E "^FAILED|^error|=========.*(ERROR|Error|Invalid|hazard|Uninit)" "$log" | cut -c 1-400 | head -6
' sanitize < "$out/networks" &
wait $!
[ "$(count passed)" = "$(count networks)" ]
