"""The serving processes: one, or several behind one port that share sessions and metrics."""
