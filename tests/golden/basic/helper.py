import json


class Worker:
    def __init__(self, name):
        self.name = name

    def work(self):
        return json.dumps([self.name] * 100000)
