"""A person plays against a policy: one session at the table, in the terminal or in a browser."""
