"""The profiled program cannot tell that it is profiled, and is not harmed where we cannot work."""

import os
import resource
import shutil
import signal
import subprocess
import zipfile

import pytest

from conftest import BUILD, is_free_threaded, version_of
from side_by_side import PROGRAMS, SideBySide, assert_same, lines_hit, sampled_sec

PROBE = PROGRAMS / "probe.py"


@pytest.fixture
def both(python, scalene, tmp_path):
    return SideBySide(python, scalene, tmp_path)


@pytest.fixture
def newest(newest_python, scalene, tmp_path):
    return SideBySide(newest_python, scalene, tmp_path)


def assert_same_view(plain, profiled):
    """Compare two outputs of the probe."""
    assert plain.status == 0, plain
    assert plain.stdout.startswith("{") and len(plain.stdout) > 5000, plain
    assert profiled.status == 0, profiled
    assert_same(plain, profiled)


# Words before the program, environment.
WAYS = {
    "plain": ([], {}),
    "isolated": (["-I"], {}),
    "no-site": (["-S"], {}),
    "no-environment": (["-E"], {}),
    "optimised": (["-OO", "-B", "-u", "-s"], {}),
    "dev": (["-X", "dev"], {}),
    "warnings": (["-W", "error"], {}),
    "debug-malloc": ([], {"PYTHONMALLOC": "debug"}),
    "malloc": ([], {"PYTHONMALLOC": "malloc"}),
    "faulthandler": (["-X", "faulthandler"], {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_program_sees_the_same(both, python, way):
    if way == "malloc" and is_free_threaded(python):
        pytest.skip("without GIL, CPython refuses it")
    flags, environment = WAYS[way]
    arguments = ["an argument", "--two", "-o", "x"]
    plain = both.plain(*flags, PROBE, *arguments, env=environment)
    profiled = both.profiled(*flags, PROBE, "---", *arguments, env=environment)
    assert_same_view(plain, profiled)


def make_package(directory):
    package = directory / "package"
    package.mkdir()
    shutil.copy(str(PROBE), str(package / "__main__.py"))
    return package


def as_module(directory):
    make_package(directory)
    return ["-m", "package", "word"], {}


def as_directory(directory):
    return [str(make_package(directory)), "word"], {}


def as_zip(directory):
    path = directory / "program.zip"
    with zipfile.ZipFile(str(path), "w") as archive:
        archive.write(str(PROBE), "__main__.py")
    return [str(path), "word"], {}


def as_stdin(directory):
    return ["-", "word"], {"input": PROBE.read_text()}


@pytest.mark.parametrize("form", [as_module, as_directory, as_zip, as_stdin])
def test_forms_of_a_program(newest, form, tmp_path):
    words, options = form(tmp_path)
    plain = newest.plain(*words, **options)
    assert_same_view(plain, newest.profiled(*words, **options))


@pytest.mark.parametrize("separator", [":", " "])
def test_preload_of_the_user(newest, separator):
    """Our library goes before the user's own; the program and its children see only the latter."""
    environment = {"LD_PRELOAD": separator.join(["libm.so.6", "libdl.so.2"])}
    plain = newest.plain(PROBE, env=environment)
    profiled = newest.profiled(PROBE, env=environment)

    def in_any_order(text):  # ours moves the variable to the end of the list
        return sorted(text.replace(",", "").split("\n"))

    assert "libm.so.6" in plain.stdout
    assert in_any_order(profiled.stdout) == in_any_order(plain.stdout)


def test_signals_inherited(newest):
    """Ignored and blocked signals stay so for the program."""

    def set_up():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGCHLD})

    show = PROGRAMS / "signals_inherited.py"
    plain = newest.plain(show, preexec_fn=set_up)
    profiled = newest.profiled(show, preexec_fn=set_up)
    assert "ignored" in plain.stdout
    assert_same(plain, profiled)


@pytest.mark.parametrize("program", ["signals_all", "signals_waiting"])
def test_signals(both, program):
    words = [PROGRAMS / (program + ".py")]
    plain = both.plain(*words)
    assert plain.status == 0, plain
    assert_same(plain, both.profiled(*words, options=["--cpu-sampling-rate", "0.001"]))


def test_thread_that_blocks_all_signals(both):
    program = PROGRAMS / "blocked_thread.py"
    line = program.read_text().split("\n").index("        sum(range(500))  # here") + 1
    profiled = both.profiled(program, "0.5")
    assert profiled.stdout == "done\n"
    assert lines_hit(profiled.profile, "blocked_thread.py").get(line, 0) > 0.3


def test_no_interrupted_calls(both):
    """The timers' signal comes only while a thread runs, so that no wait is ever cut short."""
    profiled = both.profiled(
        PROGRAMS / "eintr.py", "2", options=["--cpu-sampling-rate", "0.001"]
    )
    assert profiled.stdout == "interrupted: {}\n", profiled
    assert sampled_sec(profiled.profile) > 0.3  # there were signals to be interrupted by


# ---- where the profiler cannot work as it would like ----

LIMITED = PROGRAMS / "limited.py"


def limit(which, value):
    def set_up():
        resource.setrlimit(which, (value, value))

    return set_up


def close_all(*descriptors):
    def set_up():
        for descriptor in descriptors:
            os.close(descriptor)

    return set_up


CONDITIONS = {
    "file size": limit(resource.RLIMIT_FSIZE, 4096),
    "no file at all": limit(resource.RLIMIT_FSIZE, 0),
    "few descriptors": limit(resource.RLIMIT_NOFILE, 10),
    "very few descriptors": limit(resource.RLIMIT_NOFILE, 6),
    "little memory": limit(resource.RLIMIT_AS, 96 << 20),
    "no pending signals": limit(resource.RLIMIT_SIGPENDING, 0),
    "small stack": limit(resource.RLIMIT_STACK, 256 << 10),
    "no stdin": close_all(0),
    "no stdout": close_all(1),
    "no stderr": close_all(2),
    "no streams": close_all(0, 1, 2),
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_limits(both, condition):
    """The program runs to its end with its own output, status and descriptor numbers."""
    set_up = CONDITIONS[condition]
    plain = both.plain(LIMITED, preexec_fn=set_up)
    assert plain.status == 3, plain
    assert_same(plain, both.profiled(LIMITED, preexec_fn=set_up))


# Where the address space is limited the program has it first: what it can map alone it can map under the profiler.
ADDRESSES = """\
with open("/proc/self/status") as stream:
    size = [int(line.split()[1]) for line in stream if line.startswith("VmSize")][0]
import sys
block = bytearray(int(sys.argv[1]) << 20)
print(size)
"""
ROOM = {  # of addresses that the interpreter leaves, and what the program uses at once, in MB; is memory followed?
    "much": (680, 400, True),
    "some": (280, 150, True),
    "little": (210, 150, True),
    "very little": (90, 50, False),
}


@pytest.mark.parametrize("room", ROOM)
def test_limited_addresses(both, room):
    room_mb, used_mb, is_followed = ROOM[room]
    program = both.directory / "addresses.py"
    program.write_text(ADDRESSES)
    # Where addresses are limited: without GIL it reserves a gigabyte if it can, and does with less.
    interpreter_kb = int(both.plain(program, "0", preexec_fn=limit(resource.RLIMIT_AS, 700 << 20)).stdout)
    set_up = limit(resource.RLIMIT_AS, (interpreter_kb << 10) + (room_mb << 20))
    plain = both.plain(program, str(used_mb), preexec_fn=set_up)
    profiled = both.profiled(program, str(used_mb), preexec_fn=set_up)
    assert (plain.status, profiled.status) == (0, 0), profiled
    assert int(profiled.stdout) - int(plain.stdout) < (room_mb << 10) / 8
    memory = profiled.profile["processes"][0]["memory"]
    assert (memory is not None) == is_followed
    assert any("address space" in note for note in profiled.profile["notes"]) == (room != "much")
    if is_followed:
        assert profiled.profile["max_footprint_mb"] >= used_mb


@pytest.mark.parametrize("options, most_mb", [([], 55), (["--cpu-only"], 25)], ids=["memory", "cpu only"])
def test_few_addresses_are_taken(both, options, most_mb):
    program = both.directory / "addresses.py"
    program.write_text(ADDRESSES)
    plain, profiled = both.plain(program, "1"), both.profiled(program, "1", options=options)
    # From 3.15 on and without GIL, CPython maps a segment of mimalloc's for what is asked of it before
    # it begins, which is our audit hook.
    minor = int(version_of(both.python).split(".")[1])
    segment_mb = 32 if is_free_threaded(both.python) and minor >= 15 else 0
    assert (int(profiled.stdout) - int(plain.stdout)) / 1024 < most_mb + segment_mb


def test_deleted_directory(newest, tmp_path):
    gone = tmp_path / "gone"

    def set_up():
        os.mkdir(str(gone))
        os.chdir(str(gone))
        os.rmdir(str(gone))

    plain = newest.plain(LIMITED, preexec_fn=set_up)
    assert plain.status == 3
    profiled = newest.profiled(LIMITED, preexec_fn=set_up)
    assert_same(plain, profiled)
    assert profiled.profile


def test_unwritable_temporary_directory(newest, tmp_path):
    """A file where the directory should be: unwritable for root too."""
    blocker = tmp_path / "file"
    blocker.write_text("")
    plain = newest.plain(LIMITED)
    profiled = newest.profiled(LIMITED, env={"TMPDIR": str(blocker)})
    assert_same(plain, profiled)
    assert profiled.profile


@pytest.fixture
def tiny_filesystem(tmp_path):
    """A file system of 64 kB, of which nothing is left."""
    if os.geteuid() != 0:
        pytest.skip("mounting takes root")
    place = tmp_path / "tiny"
    place.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(place)],
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )
    if mount.returncode:
        pytest.skip("cannot mount a file system here: " + mount.stderr.strip())
    yield place
    subprocess.check_call(["umount", str(place)])


def test_full_temporary_directory(newest, tiny_filesystem):
    """Another place is used where there is one."""
    plain = newest.plain(LIMITED)
    profiled = newest.profiled(LIMITED, env={"TMPDIR": str(tiny_filesystem)})
    assert_same(plain, profiled)
    assert profiled.profile


def test_no_room_anywhere(newest, tiny_filesystem):
    """The agent finds no room for its file: the program runs all the same."""
    if shutil.which("unshare") is None or not os.path.isdir("/mnt"):
        pytest.skip("needs unshare and /mnt")
    # The build is moved out of the way, as it may be below /tmp itself.
    script = """tiny=$1; build=$2; shift 2
        mount --bind "$build" /mnt && mount --bind "$tiny" /dev/shm &&
        mount --bind "$tiny" /tmp && exec "$@" """
    private = ["unshare", "-m", "sh", "-c", script, "sh", str(tiny_filesystem), str(BUILD)]
    trial = subprocess.run([*private, "true"], stderr=subprocess.PIPE, universal_newlines=True)
    if trial.returncode:
        pytest.skip("no private mounts here: " + trial.stderr.strip())
    program = BUILD / "limited.py"  # the tree may be below /tmp too
    shutil.copy(str(LIMITED), str(program))
    plain = newest.plain(program)
    newest.scalene = "/mnt/" + os.path.relpath(newest.scalene, str(BUILD))
    newest.profile_path = "/dev/null/nowhere.json"
    done = subprocess.run(
        [*private, *newest.profiled_command("/mnt/limited.py")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        env={**os.environ, "TMPDIR": "/tmp"},
        cwd="/",
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (plain.status, plain.stdout), done.stderr
    assert "scalene: " in done.stderr


def test_descriptors_closed_by_the_program(both):
    """Programs that close everything they did not open (daemons) close nothing of ours."""
    text = (
        "import os, time\n"
        "os.closerange(3, 1000)\n"
        "end = time.process_time() + 0.2\n"
        "while time.process_time() < end:\n"
        "    sum(range(1000))\n"
        "print([os.open('/dev/null', 0) for _ in range(5)])\n"
    )
    program = both.directory / "closer.py"
    program.write_text(text)
    plain = both.plain(program)
    profiled = both.profiled(program)
    assert_same(plain, profiled)
    assert lines_hit(profiled.profile, "closer.py").get(5, 0) > 0.1
