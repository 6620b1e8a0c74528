"""gunicorn's."""

workers = 2
