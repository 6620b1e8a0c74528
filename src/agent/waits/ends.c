#include "agent/waits/ends.h"

#include "agent/core/agent.h"
#include "agent/waits/claims.h"
#include "os/os.h"

/*
 * Looking through the descriptors of all processes is dear.  What was found about a
 * pipe is believed for a second, if no process comes, and looking takes a three-hundredth of the
 * time at most: until it is its turn again, a pipe is taken for one to another process of the
 * session if there is any.
 */
enum { KNOWN = 64, COST_SHARE = 300 };
static const uint64_t BELIEVED_NS = 1000000000;

static struct known_pipe {
    uint64_t inode, until_ns;
    uint32_t joined; /* claims_joined() then */
    bool writes, is_inside;
} known[KNOWN];
static uint64_t next_look_ns;

static enum wire_mark mark_of(uint64_t inode)
{
    uint32_t made = atomic_load_explicit(&agent.control->marks_made, memory_order_relaxed);
    for (uint32_t i = 0; i < made && i < WIRE_MARKS_MAX; i++) {
        uint64_t mark = atomic_load_explicit(&agent.control->marks[i], memory_order_relaxed);
        if (mark >> 2 == inode)
            return (enum wire_mark)(mark & 3);
    }
    return WIRE_MARK_NONE;
}

static bool look_for_pipe(uint64_t inode, bool writes, uint64_t now_ns)
{
    unsigned at = 0;
    for (pid_t pid; (pid = claims_next(&at, now_ns));)
        if (os_holds_pipe(pid, inode, !writes))
            return true;
    return false;
}

static bool are_others_there(uint64_t now_ns)
{
    unsigned at = 0;
    bool is_one = claims_next(&at, now_ns) != 0;
    return is_one && claims_next(&at, now_ns);
}

static bool pipe_is_inside(uint64_t inode, bool writes, uint64_t now_ns)
{
    struct known_pipe *entry = &known[inode % KNOWN];
    uint32_t joined = claims_joined();
    bool is_known = entry->inode == inode && entry->writes == writes && entry->joined == joined;
    if (is_known && now_ns < entry->until_ns)
        return entry->is_inside;
    if (now_ns < next_look_ns)
        return is_known ? entry->is_inside : are_others_there(now_ns);
    uint64_t before_ns = os_thread_cpu_ns();
    bool is_inside = look_for_pipe(inode, writes, now_ns);
    next_look_ns = now_ns + (os_thread_cpu_ns() - before_ns) * COST_SHARE;
    *entry = (struct known_pipe){inode, now_ns + BELIEVED_NS, joined, writes, is_inside};
    return is_inside;
}

enum end ends_look(int fd, bool writes, uint64_t now_ns)
{
    uint64_t inode;
    switch (os_file_type(fd, &inode)) {
    case OS_FILE_SOCKET:
        switch (mark_of(inode)) {
        case WIRE_MARK_LISTENS:
            return END_CLIENTS;
        case WIRE_MARK_PAIR:
            return END_INSIDE;
        default:
            return END_OUTSIDE;
        }
    case OS_FILE_PIPE:
        return pipe_is_inside(inode, writes, now_ns) ? END_INSIDE : END_OUTSIDE;
    default:
        return END_OUTSIDE;
    }
}
