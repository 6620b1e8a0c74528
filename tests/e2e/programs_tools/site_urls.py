from django.http import HttpResponse
from django.urls import path

import work


def view(request, number):
    return HttpResponse(work.crunch(number))


urlpatterns = [path("work/<int:number>/", view)]
