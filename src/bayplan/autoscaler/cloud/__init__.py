"""The cloud as the autoscaler keeps it: what groups say, what of it has come, who rests."""
