"""What is known of a fit: records, without the machinery that finds them out."""
