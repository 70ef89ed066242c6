"""The tools, prompts and resources of the mercury bridge."""
