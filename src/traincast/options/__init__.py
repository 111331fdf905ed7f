"""Every option of every question, declared once: commands, Python, job files and the page are derived from it."""
