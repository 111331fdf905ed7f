"""What was measured, kept: records of what was asked, what came out, where and when, ours and those of others."""
