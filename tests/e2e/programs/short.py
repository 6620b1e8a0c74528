"""Over in a fifth of a second."""

import time

cpu_at_first_line = time.process_time()

from measure import busy, finish


def most():
    total = 0
    for i in range(5000):  #: most
        total += i * i  #: most


def least():
    total = 0
    for i in range(5000):  #: least
        total += i * i  #: least


busy("most", 0.12, most)
busy("least", 0.04, least)
finish(cpu_at_first_line=cpu_at_first_line)
