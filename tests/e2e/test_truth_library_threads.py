"""What a library's threads allocate is on the line they work for."""

import pytest

import truth

# Nothing of it is traced: it lies where packages are installed.
LIBRARY = """\
import threading
from concurrent.futures import ThreadPoolExecutor

def large(kept):
    for _ in range(100):
        kept.append(bytearray(1 << 18))

def small(kept):
    mine = [None] * 100000  # its growth would count too, where a longer array is allocated beside the old one
    for i in range(100000):
        mine[i] = b"%0200d" % i
    kept.append(mine)

def at_once(kept):
    kept.append(bytearray(25 << 20))

def by_threads(work):
    kept = []
    threads = [threading.Thread(target=work, args=(kept,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return kept

def by_pool(work, pool):
    kept = []
    for future in [pool.submit(work, kept) for _ in range(4)]:
        future.result()
    return kept

def by_new_pool(work):
    with ThreadPoolExecutor(4) as pool:
        return by_pool(work, pool)

OLD = ThreadPoolExecutor(4)

def by_old_pool(work):
    return by_pool(work, OLD)

def begin(work):
    kept = []
    done = []
    def run():
        for _ in range(4):
            work(kept)
        done.append(True)
    threading.Thread(target=run).start()
    return kept, done
"""

PROGRAM = """\
import sys
sys.path.insert(0, sys.argv[1])
import pools
a = pools.by_threads(pools.large)  #: threads
b = pools.by_new_pool(pools.large)  #: new pool
pools.by_old_pool(len)
c = pools.by_old_pool(pools.large)  #: old pool
d = pools.by_old_pool(pools.small)  #: old pool small
e = pools.by_threads(pools.small)  #: threads small
f = pools.by_old_pool(pools.at_once)  #: old pool at once
g, done = pools.begin(pools.large)  #: begun
while not done:  #: meanwhile
    pass
print(sum(sys.getsizeof(part) + len(part) * sys.getsizeof(part[0]) for part in d) / 2**20)
"""


@pytest.fixture(scope="module")
def run(scalene, python, tmp_path_factory):
    """Mark -> its line, and how many MB the small blocks are, by the interpreter's own measure."""
    directory = tmp_path_factory.mktemp("library")
    packages = directory / "lib/python3/site-packages"
    packages.mkdir(parents=True)
    (packages / "pools.py").write_text(LIBRARY)
    program = directory / "app" / "prog.py"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    stdout, profile = truth.launch(scalene, python, [program, packages], directory)
    assert list(profile["files"]) == [str(program)]
    lines = profile["files"][str(program)]["lines"]
    marked = {truth.MARK.search(line["line"]).group(1): line for line in lines if "#:" in line["line"]}
    return marked, float(stdout)


@pytest.fixture(scope="module")
def marked(run):
    return run[0]


@pytest.mark.parametrize("mark", ["threads", "new pool", "old pool", "old pool at once", "begun"])
def test_large_blocks(marked, mark):
    """They are exact; a thread's own structures come with them."""
    assert marked[mark]["n_malloc_mb"] == pytest.approx(100, rel=0.05)
    assert marked[mark]["n_live_mb"] == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize("mark", ["old pool small", "threads small"])
def test_small_blocks(run, mark):
    marked, small_mb = run
    line = marked[mark]
    assert line["n_malloc_mb"] == pytest.approx(small_mb, abs=0.05 * small_mb + line["half_width_malloc_mb"])


def test_a_line_that_only_runs_meanwhile_has_nothing(marked):
    assert marked["meanwhile"]["n_malloc_mb"] < 1
