"""The OpenAPI document, generated from the route table and the models that validate. Imported when it is asked for, not before."""
