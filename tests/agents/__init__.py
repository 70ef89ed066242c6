"""What a model sees of the bridges through agent CLIs, which run their whole loop against a fake model."""
