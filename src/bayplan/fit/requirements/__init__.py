"""What waiting pods require of storage, devices and spreading."""
