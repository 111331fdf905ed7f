"""The same step again and again with one thing changed: what does it do to the time?"""
