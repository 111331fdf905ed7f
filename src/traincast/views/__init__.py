"""What each answer shows: one document of tables, charts and notes, for terminal, page, notebook and files alike."""
