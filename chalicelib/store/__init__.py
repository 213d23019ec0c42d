"""DynamoDB behind `usecases.ports.Store`: which record lies where, and the one transaction that changes them."""
