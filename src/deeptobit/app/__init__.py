"""The command-line tool: studies, reports and commands."""
