import math
import time

from helper import Worker


def total(n):
    result = 0.0
    for i in range(n):
        for j in range(n):
            result += math.sqrt(i * j)  # a & b < c
    return result


class Main:
    @staticmethod
    def run(n):
        square = lambda x: x * x
        return [square(i) for i in range(n)]


if __name__ == "__main__":
    print(total(2000), Main.run(10))
    Worker("ä").work()
    time.sleep(0.2)
