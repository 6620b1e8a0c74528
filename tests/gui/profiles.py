"""Profiles with a known truth, as `scalene run` writes them: what the page must show is computed by hand."""

import copy

MAIN, LIBRARY, NATIVE = "/p/main.py", "/usr/lib/python3/threading.py", "libz.so.1"
INTERVAL = 0.01


def frame(name, file=MAIN, line=1, kind="py"):
    return {"display_name": name, "filename_or_module": file, "ip": None, "kind": kind, "line": line, "offset": None}


def line(number, text, **values):
    return {"lineno": number, "line": text, **values}


def process(pid, ppid, start=0.0, **values):
    entry = {
        "command": "python3 main.py", "count": 1, "cpu_sec": 1.0, "elapsed_sec": 2.0 - start, "ended": True,
        "exit_status": 0, "forked": ppid != 1, "memory": None, "peak_rss_mb": 50.0, "pid": pid, "ppid": ppid,
        "python": "3.12.1", "running": False, "sampled_cpu_sec": 1.0, "signal": None, "start_sec": start,
        "startup_sec": 0.0,
    }  # fmt: skip
    return {**entry, **values}


def thread(pid, tid, **values):
    entry = {
        "count": 1, "cpu_sec": 1.0, "name": "python3", "pid": pid, "python": True, "thread_id": tid, "tid": tid,
        "wait_sec": 0.5,
    }  # fmt: skip
    return {**entry, **values}


MAIN_FRAME = frame("main", line=20)
STACKS = [
    [[MAIN_FRAME, frame("work", line=3)], 100],
    [[MAIN_FRAME, frame("pack", line=8), frame("deflate", NATIVE, None, "native")], 60],
    [[MAIN_FRAME, frame("Condition.wait", LIBRARY, 320)], 40],
]


def small():
    """work 50 %, deflate 30 %, Condition.wait 20 % of two seconds; two processes, three threads."""
    runs = [(0.0, 0, 50, 70), (0.5, 1, 60, 70), (1.1, 2, 40, 70), (1.0, 0, 30, 71), (1.2, 0, 20, 80)]
    return {
        "alloc_samples": 10,
        "args": ["main.py"],
        "combined_stacks": copy.deepcopy(STACKS),
        "combined_stacks_timeline": [
            {"t_sec": start, "stack_index": stack, "count": count, "thread_id": tid} for start, stack, count, tid in runs
        ],
        "elapsed_time_sec": 2.0,
        "entrypoint_dir": "/p",
        "files": {
            MAIN: {
                "functions": [],
                "imports": [],
                "leaks": {"3": {"likelihood": 0.97, "velocity_mb_s": 12.0}},
                "lines": [
                    line(3, "    total += step", cpu_python_sec=1.0, n_samples=100, n_live_mb=24.0, n_malloc_mb=30.0,
                         n_usage_fraction=0.6, live_samples=[[0, 0.0], [2_000_000_000, 24.0]]),
                    line(8, "    return zlib.compress(text)", cpu_native_sec=0.6, n_samples=60),
                    line(20, "main()"),
                ],
                "percent_cpu_time": 80.0,
            }
        },
        "growth_rate": 90.0,
        "max_footprint_mb": 40.0,
        "memory": True,
        "memory_stacks": [[[MAIN_FRAME, frame("work", line=3)], 30.0], [[MAIN_FRAME, frame("pack", line=8)], 10.0]],
        "processes": [
            process(70, 1, memory={
                "allocator_slack_mb": 10.0, "mapped_live_mb": 0.0, "mapped_reserved_mb": 0.0, "native_live_mb": 2.0,
                "other_mb": 6.0, "python_live_mb": 24.0, "rss_mb": 50.0, "start_rss_mb": 8.0, "untouched_mb": 0.0,
            }),
            process(80, 70, 1.0, signal=9, exit_status=None, ended=False),
        ],
        "program": "/p/main.py",
        "samples": [[0, 0.0], [1_000_000_000, 40.0], [2_000_000_000, 20.0]],
        "sampling": {"cpu_interval_sec": INTERVAL, "memory_interval_mb": 1.0, "stack_least_percent": 0.0,
                     "wait_interval_sec": 0.01},
        "scalene_version": "4.0.0",
        "schema_version": 1,
        "threads": [thread(70, 70), thread(70, 71, name="worker"), thread(80, 80)],
        "total_time_sec": 2.0,
    }  # fmt: skip


def large(stacks=20_000, runs=50_000, threads=300):
    """As many boxes and runs as no screen has pixels for."""
    profile = small()
    profile["combined_stacks"] = [
        [[MAIN_FRAME, *(frame("f%d" % (n % base), line=n % base + 1) for base in (7, 61, 509, 4001, 20_000))], 1]
        for n in range(stacks)
    ]
    profile["combined_stacks_timeline"] = [
        {"t_sec": n * 2.0 / runs, "stack_index": n % stacks, "count": 1, "thread_id": 100 + n % threads}
        for n in range(runs)
    ]
    profile["threads"] = [thread(70, 100 + n) for n in range(threads)]
    return profile
