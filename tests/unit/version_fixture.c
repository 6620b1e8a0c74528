/* Preloaded into a Python, makes it look like one from the future; see test_unknown_python.py. */
const char *Py_GetVersion(void);

const char *Py_GetVersion(void)
{
    return "3.99.0 (from the future)";
}
