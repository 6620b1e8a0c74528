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
                    line(3, "    total += step", cpu_python_sec=1.0, n_cpu_percent_python=50.0, n_samples=100, n_live_mb=24.0, n_malloc_mb=30.0,
                         n_usage_fraction=0.6, live_samples=[[0, 0.0], [2_000_000_000, 24.0]]),
                    line(8, "    return zlib.compress(text)", cpu_native_sec=0.6, n_cpu_percent_c=30.0, n_samples=60),
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


def large(stacks=2_400, runs=30_000, threads=20):
    """Ten rows of boxes that are just wide enough to be drawn, and more runs than a screen has room for."""
    profile = small()
    profile["combined_stacks"] = [
        [[MAIN_FRAME, *(frame("f%d" % (n % base), line=n % base + 1) for base in (7, 61, *[4001] * 10))], 1]
        for n in range(stacks)
    ]
    profile["combined_stacks_timeline"] = [
        {"t_sec": n * 2.0 / runs, "stack_index": n % stacks, "count": 1, "thread_id": 100 + n % threads}
        for n in range(runs)
    ]
    profile["threads"] = [thread(70, 100 + n) for n in range(threads)]
    return profile


def lines(count=6, active=(2, 4, 5), **more):
    """One file of `count` lines with a function over all of them; the active ones have 40 %, 30 %, 20 % and so on."""
    shares = {number: share for number, share in zip(active, (40.0, 30.0, 20.0, 5.0, 2.0, *[1.5] * count))}
    rows = []
    for number in range(1, count + 1):
        share = shares.get(number, 0.0)
        rows.append(
            line(number, "value_%d = work(%d)\n" % (number, number), n_cpu_percent_python=share,
                 cpu_python_sec=share / 10, half_width_percent=2.0 if share else 0.0, n_samples=int(share * 10),
                 start_function_line=1, end_function_line=count)
        )  # fmt: skip
    total = sum(shares.values())
    return {
        "args": ["main.py"], "cpu_python_sec": total / 10, "elapsed_time_sec": 10.0, "filename": "/p",
        "files": {
            MAIN: {"functions": [], "imports": [], "leaks": {}, "lines": rows, "percent_cpu_time": total},
            "/p/other.py": {"functions": [], "imports": [], "leaks": {}, "percent_cpu_time": 0.0,
                            "lines": [line(1, "needle = 'only here'\n", n_malloc_mb=1.0)]},
        },
        "program": MAIN, "schema_version": 1, "total_time_sec": 10.0, **more,
    }  # fmt: skip


def original():
    """As version 2 of the original Scalene writes it: no seconds, no schema, escapes in the source."""
    return {
        "alloc_samples": 3, "args": None, "elapsed_time_sec": 4.0, "entrypoint_dir": "/p", "filename": "/p",
        "files": {
            MAIN: {
                "functions": [line(1, "work", n_cpu_percent_python=50.0, n_cpu_percent_c=20.0, n_sys_percent=5.0)],
                "imports": [], "leaks": {"2": {"likelihood": 0.97, "velocity_mb_s": 3.0}}, "percent_cpu_time": 75.0,
                "lines": [
                    line(1, "if a \\u003c b:\n", n_cpu_percent_python=50.0, n_cpu_percent_c=0.0, n_sys_percent=0.0),
                    line(2, "    keep(a)\n", n_cpu_percent_python=0.0, n_cpu_percent_c=20.0, n_sys_percent=5.0,
                         n_malloc_mb=10.0, n_peak_mb=8.0, n_usage_fraction=0.5, n_python_fraction=1.0,
                         memory_samples=[[0, 1.0], [3_000_000_000, 8.0]]),
                ],
            }
        },
        "gpu": False, "growth_rate": 12.0, "max_footprint_fname": MAIN, "max_footprint_lineno": 2,
        "max_footprint_mb": 8.0, "max_footprint_python_fraction": 1.0, "memory": True, "program": MAIN,
        "samples": [[0, 1.0], [3_000_000_000, 8.0]],
    }  # fmt: skip
