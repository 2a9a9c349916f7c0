"""Factor analyzers: measurements that a few hidden factors of each row explain."""
