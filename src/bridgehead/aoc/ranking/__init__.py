"""What recorded times come to: figures, boards, histories, and how they are shown."""
