"""Scalene, a line-level profiler for Python programs.

The profiler itself is the `scalene` command and the library that it loads into the profiled
program; importing this package changes nothing and loads nothing.
"""

__version__ = "3.0.0"
