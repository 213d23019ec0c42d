"""Money given back: refunds of invoices, payout links, and the page of their claim links."""
