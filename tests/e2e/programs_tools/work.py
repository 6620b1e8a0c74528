"""What all programs here do: the line that takes their time."""


def crunch(name):
    total = 0
    for i in range(1000000):
        total += i * i  #: hot
    return "%s done" % name
