"""What the page shows, as values."""


def cells(page, rows):
    """The texts of each row's cells."""
    return page.locator(rows).evaluate_all(
        "rows => rows.map(row => [...row.querySelectorAll('td, [role=cell]')].map(cell => cell.textContent.trim()))"
    )
