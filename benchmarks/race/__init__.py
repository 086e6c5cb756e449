"""Methods that people would use instead, raced on the same splits of the same data."""
