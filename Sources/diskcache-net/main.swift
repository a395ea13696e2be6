// SPDX-License-Identifier: Apache-2.0

import DiskCacheCommand

// Has the same commands as `diskcache`, and can load libcurl.
let network = NetworkCommands()
DiskCacheTool.main(
    reaching: network,
    bodies: ["fetch": network.fetch, "push": network.push, "pull": network.pull]
)
