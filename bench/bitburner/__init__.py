"""The bitburner bridge measured beside a bare WebSocket exchange, and its start beside the official SDK's."""
