"""What is not deployed as code: infrastructure, the operator's commands, the local stack."""
