"""Semi-supervised learning with a teacher and a student (Yalniz et al. 2019, arXiv 1905.00546)."""
