"""Scripts that train and measure; each says in its docstring how it is run."""
