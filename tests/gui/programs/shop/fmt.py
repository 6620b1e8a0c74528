def table(rows):
    return "\n".join("%6d %12.2f" % (i, row) for i, row in enumerate(rows))
