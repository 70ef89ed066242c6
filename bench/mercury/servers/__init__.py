"""The servers that the bridge is compared with."""
