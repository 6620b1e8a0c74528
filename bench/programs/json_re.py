"""Library calls: json both ways, regular expressions."""
import json
import re

data = {"key%d" % i: [i, i / 3, "text %d" % i] for i in range(2000)}
pattern = re.compile(r"text (\d+)")


def main(n):
    found = 0
    for _ in range(n):
        text = json.dumps(data)
        found += len(pattern.findall(text))
        json.loads(text)
    return found


main(560)
