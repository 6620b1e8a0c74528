"""A small order service: prices, a cache, a report, workers."""
import time
import zlib
from multiprocessing import get_context

from shop import fmt, load, seal

RATES = [1, 2, 3, 5]
CACHE = {}


def price(order):
    """Plain Python: the interpreter itself is what takes the time."""
    total = 0
    for step in range(order["qty"] * 12):
        rate = RATES[step & 3]
        total += (step * rate + order["id"]) % 97
    return total


def remember(order, result):
    """Kept for ever: nothing takes entries out of the cache."""
    key = "%s/%d" % (order["sku"], order["id"])
    CACHE[key] = bytearray(1200) + str(result).encode()


def price_all(orders):
    results = []
    for order in orders:
        result = price(order)
        remember(order, result)
        results.append(result)
    return results


def report(results):
    ordered = sorted(results, reverse=True)
    text = fmt.table(ordered).encode()
    return zlib.compress(text * 2, 9)


def price_part(part):
    return sum(price(order) for order in part)


def price_in_processes(orders, workers):
    """Two workers; the parts travel to them through pipes."""
    size = len(orders) // workers
    parts = [orders[n * size : (n + 1) * size] for n in range(workers)]
    with get_context("fork").Pool(workers) as pool:
        return sum(pool.map(price_part, parts))


def main():
    orders = load.make_orders(40_000)
    text = load.as_text(orders)
    again = load.parse(text)
    results = price_all(again)
    packed = report(results)
    seal.seal_in_threads(60)
    total = price_in_processes(orders, 2)
    time.sleep(0.3)  # the service is rate-limited
    print(len(packed), total)


main()
