def write_page(results, models, page):
    pass
