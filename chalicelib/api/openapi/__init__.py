"""The OpenAPI document, generated from the route table and the models that validate. Imported on demand."""
