"""What tests share: the oracle, checked clients, and bridges and far sides made of plain values."""
