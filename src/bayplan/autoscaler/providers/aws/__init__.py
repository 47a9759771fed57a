"""AWS: node groups are Auto Scaling groups, asked through boto3 (the extra `aws`)."""
