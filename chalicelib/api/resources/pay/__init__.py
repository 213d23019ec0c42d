"""The endpoints of a payer beside the checkout page."""
