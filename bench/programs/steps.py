"""Does a program's work in steps of about 50 ms, and writes down what CPU time was used up by then.

    python3 PROGRAM.py [FRACTION OF THE STEPS [FILE FOR THE TIMES]]
"""
import sys
import time


def run(step, count):
    times = [time.process_time()]
    for _ in range(max(1, int(count * float(sys.argv[1] if len(sys.argv) > 1 else 1)))):
        step()
        times.append(time.process_time())
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as file:
            print(*times, file=file)
