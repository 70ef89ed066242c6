"""Tools: one module per noun, with typed arguments, declaration and wording."""
