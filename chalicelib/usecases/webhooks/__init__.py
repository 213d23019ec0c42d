"""Webhooks: endpoints, the relay of events, deliveries, retries and redelivery."""
