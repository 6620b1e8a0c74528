"""Orders as text, and back."""
import json


def make_orders(count):
    orders = []
    for n in range(count):
        orders.append({"id": n, "sku": "sku-%d" % (n % 977), "qty": 1 + n % 7})
    return orders


def as_text(orders):
    return json.dumps(orders)


def parse(text):
    return json.loads(text)
