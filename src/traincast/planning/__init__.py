"""What should I rent, why is it slow, what would help?"""
