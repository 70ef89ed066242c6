"""The tools, prompts and resources that an agent uses."""
