"""What answers a request of the three passes. One module per kind; two kinds never import each other."""
