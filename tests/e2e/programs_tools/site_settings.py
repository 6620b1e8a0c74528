ALLOWED_HOSTS = ["127.0.0.1"]
DEBUG = True
ROOT_URLCONF = "site_urls"
SECRET_KEY = "for tests"
