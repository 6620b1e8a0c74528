/*
 * What a thread may wait for: one row for each cause.  Everything else is made from the row: enum
 * wire_kind, the profile's array of waits, the keys of the JSON, the words of the terminal view.
 * Which system call means which cause is told by src/agent/waits/cause.c; docs/format.md repeats
 * key and help, and a test compares the two.
 *
 *   NAME      WIRE_WAIT_NAME in recordings, WAIT_NAME in a profile
 *   key       in the JSON, and beside a line in the terminal view
 *   label     in the summary of the terminal view
 *   external  does the program wait for the outside world, rather than for another of its own
 *             threads?  Such waits are charged first (ARCHITECTURE.md, Charging).
 *   help      to be read after "seconds waited"
 *
 * New rows come last: a row's place is its number in recordings.
 */
#ifndef WIRE_WAITS_H
#define WIRE_WAITS_H

#define WIRE_WAITS(ROW)                                                                            \
    ROW(FILE, "file", "file I/O", true, "for a file or device")                                    \
    ROW(SOCKET, "socket", "socket I/O", true, "for the network or a socket")                       \
    ROW(PIPE, "pipe", "pipe I/O", true, "for a pipe, fifo or terminal")                            \
    ROW(SLEEP, "sleep", "sleep", true, "asleep by its own wish")                                   \
    ROW(LOCK, "lock", "lock", false, "for a lock, condition, queue or thread")                     \
    ROW(GIL, "gil", "GIL", false, "for the global interpreter lock")                               \
    ROW(CHILD, "child", "child process", true, "for a child process")                              \
    ROW(LOOP, "loop", "event loop", true, "in an event loop: select, poll, epoll")                 \
    ROW(STARVED, "starved", "starved of CPU", false, "for a processor")                            \
    ROW(OTHER, "other", "other", false, "for something else")                                      \
    ROW(REQUEST, "request", "requests", true, "as a server, for requests: idle, not slow")         \
    ROW(STOPPED, "stopped", "stop-the-world", false,                                               \
        "because all threads were stopped, as by the garbage collector of a build without GIL")

#endif
