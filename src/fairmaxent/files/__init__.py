"""Files: tables and results in files, each written whole or not at all."""
