"""What bash, zsh and fish complete, and the manual page: all options, in the shells' own hands."""

import re
import subprocess

import pytest

from conftest import BUILD

SHARE = BUILD / "src/cmd/share"
VERBS = ["run", "view", "merge", "on", "off", "snapshot", "recover"]


def output(*words, text=None):
    result = subprocess.run(
        list(map(str, words)), input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def options(scalene, verb):
    """All that its help names."""
    page = output(scalene, verb, "--help") + (output(scalene, "run", "--help-advanced") if verb == "run" else "")
    return sorted(set(re.findall(r"^  .*?(--[a-z][\w-]*)", page, re.M)) | set(re.findall(r", (--no-[\w-]+)", page)))


def bash(*words):
    """What it completes the last word to."""
    script = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _scalene; printf "%s\\n" "${COMPREPLY[@]}"'
    return sorted(output("bash", "--norc", "-c", script, SHARE / "scalene", *words).split())


def fish(*words):
    line = " ".join(words).replace("'", "")
    found = output("fish", "--no-config", "-c", "source %s; complete -C '%s'" % (SHARE / "scalene.fish", line))
    return sorted(row.split("\t")[0] for row in found.splitlines())


ZSH = """
fpath=(%s $fpath)
_describe() { print -rl -- "${(@)verbs%%%%:*}" }
_arguments() {
    if [[ $1 == -C ]]; then
        state=$wanted
        return 1
    fi
    print -rl -- "$@"
}
autoload -U _scalene
words=("$@")
_scalene
"""


def zsh(wanted, *words):
    """What it gives to zsh's own functions, which complete from that: the state of the line, and its words."""
    text = "wanted=%s\n%s" % (wanted, ZSH % SHARE)
    return output("zsh", "-f", "-s", "-", *words, text=text).splitlines()


def test_verbs(scalene):
    assert bash("scalene", "") == sorted(VERBS + ["--help", "--version"])
    assert fish("scalene", "''") == sorted(VERBS)
    assert zsh("verb", "") == VERBS
    assert fish("scalene", "re") == ["recover"]


@pytest.mark.parametrize("verb", VERBS)
def test_options(scalene, verb):
    known = options(scalene, verb)
    assert "--help" in known
    assert [word for word in bash("scalene", verb, "-") if word.startswith("--")] == known
    assert fish("scalene", verb, "--") == known
    found = re.findall(r"^(?:\([^)]*\))?(--[\w-]+)\[", "\n".join(zsh("rest", verb)), re.M)
    assert sorted(found) == known


def test_values(tmp_path):
    assert bash("scalene", "view", "--color", "a") == ["always", "auto"]
    assert fish("scalene", "view", "--color", "n") == ["never"]
    assert "--color[with --cli\\: auto, always or never; auto means on a terminal, unless NO_COLOR is set]:WHEN:(auto always never)" in zsh(
        "rest", "view"
    )
    # Any other value is the user's own, or a file, which shells complete themselves.
    for words in (["run", "--outfile", ""], ["run", "--cpu-sampling-rate", ""], ["on", "--pid", ""], ["view", ""]):
        assert bash("scalene", *words) == []


def test_manual_page(scalene):
    page = SHARE / "scalene.1"
    assert output("groff", "-man", "-Tutf8", "-ww", "-z", page) == ""
    shown = output("groff", "-man", "-Tascii", "-P-c", page)
    text = re.sub(".\b", "", shown)
    for verb in VERBS:
        assert re.search(r"^ +scalene %s " % verb, text, re.M), verb
        for option in options(scalene, verb):
            assert option in text, option
