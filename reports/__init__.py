"""Folds the event stream of a run into results, and renders them: terminal, HTML, JUnit, CTRF, Allure."""
