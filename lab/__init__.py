"""What only maintainers run, in the repository and not in the wheel: fits, pages of accuracy, counts of the code."""
