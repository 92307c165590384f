"""What is asked of finished runs: cross-play, comparison, adaptation to strangers, audits.
Not here: matches and statistics (`matches`), pages and tables (`reports`)."""
