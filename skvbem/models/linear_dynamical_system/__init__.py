"""Linear dynamical systems: normal states that move linearly, and measurements that are linear in them."""
