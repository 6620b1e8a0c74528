"""Messages and results are files in the working directory: no server is needed."""

import os

from celery import Celery

import work

for name in ("messages", "results"):
    os.makedirs(name, exist_ok=True)
app = Celery("tasks", broker="filesystem://", backend="file://%s/results" % os.getcwd())
app.conf.broker_transport_options = {
    "data_folder_in": "messages",
    "data_folder_out": "messages",
    "control_folder": "messages",
    "polling_interval": 0.1,
}


@app.task
def crunch(name):
    return work.crunch(name)
