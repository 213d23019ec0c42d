"""The explorer page: HTML, script and style, and the files of Swagger UI that it needs. Knows nothing of requests and routes."""
