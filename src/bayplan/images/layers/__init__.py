"""Safe unpacking of layers into snapshots: archives are not trusted."""
