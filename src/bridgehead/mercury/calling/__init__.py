"""The policy of a call to the API: cache, limits, budget, keys, retries."""
