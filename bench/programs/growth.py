"""List growth and string building."""


def main(n):
    kept = []
    for i in range(n):
        kept.append(str(i))
    return len("".join(kept))


for _ in range(18):
    main(900_000)
