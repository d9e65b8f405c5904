"""A Ray cluster of two nodes on this machine, in a process without JAX, whose threads no fork should meet.

Prints the cluster's address and the second node's name, then for each line read: removes the second node as if its
plug were pulled, and says so. Ends with its input.
"""

import os
import sys

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from ray.cluster_utils import Cluster

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}

if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    try:
        second = cluster.add_node(**NODE)
        cluster.wait_for_nodes()
        print(cluster.address, second.node_id, flush=True)
        for _ in sys.stdin:
            cluster.remove_node(second, allow_graceful=False)
            print("removed", flush=True)
    finally:
        cluster.shutdown()
