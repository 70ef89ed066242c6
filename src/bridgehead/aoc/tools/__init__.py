"""What an agent calls: tools, with the resources and prompts beside them."""
