/*
 * A module to load and unload in test_unwind.c.  Built twice, with PLUGIN_FRAME
 * of two sizes whose code has the same length: the same return address, another
 * way to the caller.
 */
void plugin_enter(void (*call)(void));

void plugin_enter(void (*call)(void))
{
    volatile char frame[PLUGIN_FRAME];
    frame[0] = 1;
    call();
    frame[PLUGIN_FRAME - 1] = frame[0];
}
