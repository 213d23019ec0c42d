"""Events, webhook endpoints, deliveries, leases."""
