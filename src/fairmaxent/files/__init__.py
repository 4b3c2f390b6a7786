"""Files: tables and results in files, each written completely or not at all."""
