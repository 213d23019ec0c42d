"""A crypto payment service: deposit addresses, invoices, withdrawals and signed webhooks, on AWS Lambda."""
