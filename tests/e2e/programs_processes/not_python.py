"""Children that are not Python: what they see and say must be what it always is."""

import os
import subprocess
import sys

sys.stdout.flush()
for command in (
    ["/bin/echo", "hello"],
    ["env", "-u", "_"],
    ["/bin/sh", "-c", "echo $LD_PRELOAD $SCALENE_SESSION; exit 3"],
    ["/bin/sh", "-c", "kill -9 $$"],
    ["cat", "/nonexistent"],
):
    for env in (None, {"ONLY": "this", "PATH": os.environ["PATH"]}):
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        print(command[0], done.returncode, done.stdout, done.stderr)
sys.stdout.flush()
os.system("env | sort | grep -i -e preload -e scalene")
os.execvp("env", ["env", "-u", "_"])
