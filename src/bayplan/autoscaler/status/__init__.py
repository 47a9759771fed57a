"""The status report at the end of a loop: the status ConfigMap and gauges."""
