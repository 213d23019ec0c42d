"""DynamoDB behind `usecases.ports.store.Store`: tables and keys of each record, and the one transaction that changes them."""
