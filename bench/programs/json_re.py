"""Library calls: json both ways, regular expressions."""
import json
import re

import steps

data = {"key%d" % i: [i, i / 3, "text %d" % i] for i in range(2000)}
pattern = re.compile(r"text (\d+)")


def step():
    found = 0
    for _ in range(18):
        text = json.dumps(data)
        found += len(pattern.findall(text))
        json.loads(text)
    return found


steps.run(step, 45)
