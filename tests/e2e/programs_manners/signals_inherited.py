"""Print the dispositions and the mask this process was born with, and those its child is born with."""

import signal
import subprocess
import sys

NAMES = {signal.SIG_DFL: "default", signal.SIG_IGN: "ignored"}

dispositions = [NAMES.get(signal.getsignal(n), "handled") for n in sorted(signal.valid_signals())]
print(dispositions, sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))), flush=True)
if len(sys.argv) == 1:
    # A disposition set by the program is inherited too.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    subprocess.check_call([sys.executable, __file__, "child"], restore_signals=False)
