"""The methods of the protocol; `requests.METHODS` names them."""
