"""Official clients against real server processes of ours, over stdio and HTTP."""
