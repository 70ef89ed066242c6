"""The parts a bridge declares: tools, resources and prompts, with their content and schemas."""
