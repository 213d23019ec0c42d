"""What several tests share. Holds no tests."""
