"""Pure values and arithmetic. Nothing here reads a file, a clock or the environment."""
