"""Library calls: json both ways, regular expressions."""
import json
import re
import sys

data = {"key%d" % i: [i, i / 3, "text %d" % i] for i in range(2000)}
pattern = re.compile(r"text (\d+)")


def main(n):
    found = 0
    for _ in range(n):
        text = json.dumps(data)
        found += len(pattern.findall(text))
        json.loads(text)
    return found


main(int(800 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))
