from scripts.site_lists import on_page_content


def test_a_dash_stays_where_it_announces_something() -> None:
    described = '<li><b>tol</b>\n – <div class="doc-md-description"><p>How close.</p></div></li>'
    alone = '<li><b>coef_</b>\n –\n <div class="doc-md-description">\n \n</div>\n</li>'
    assert on_page_content(described + alone) == described + "<li><b>coef_</b>\n</li>"
