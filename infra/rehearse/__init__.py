"""`make rehearse`: a deployment from beginning to end, before there is an account. A clean clone is deployed to the local AWS
stand-in with the operator's commands, and payments go through the package as Lambda unpacks it."""
