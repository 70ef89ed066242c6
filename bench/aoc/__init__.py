"""The aoc bridge measured: recording beside rewriting, ranking beside decoding, its start beside the official SDK's."""
