"""What is reported at the end of a loop: the status ConfigMap and gauges."""
