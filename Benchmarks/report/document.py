def write(*a): return []
