/* Stands in for the agent where a test needs a library that can be preloaded and does nothing. */
int session_fixture_answer(void);

int session_fixture_answer(void)
{
    return 42;
}
