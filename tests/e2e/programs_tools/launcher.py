"""Starts ranks of a script as torch.distributed.run does, and waits for them."""

import argparse
import os
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--nproc_per_node", type=int)
parser.add_argument("script")
parser.add_argument("script_args", nargs=argparse.REMAINDER)
args = parser.parse_args()
ranks = []
for rank in range(args.nproc_per_node):
    environment = {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(args.nproc_per_node),
    }
    command = [sys.executable, "-u", args.script, *args.script_args]
    ranks.append(
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, universal_newlines=True)
    )
for process in ranks:  # one after the other, so that what they say does not mix
    print(process.communicate()[0], end="")
sys.exit(max(process.returncode for process in ranks))
