"""What a user looks at: progress, tables, learning curves, films, pages.
Not here: anything that decides a number."""
