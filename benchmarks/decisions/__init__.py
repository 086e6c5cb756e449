"""What was tried before a default was chosen; each script is one decision of docs/decisions.md."""
