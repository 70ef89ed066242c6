"""What happens to a call on its way to the API: cache, limits, budget, keys, retries."""
