"""What a person runs beside the bridges: tools, call, doctor, demo, completion."""
