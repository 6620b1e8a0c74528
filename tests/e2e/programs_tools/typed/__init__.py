def wrong(number: int) -> str:
    return number
