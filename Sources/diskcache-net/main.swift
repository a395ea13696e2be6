// SPDX-License-Identifier: Apache-2.0

import DiskCacheCommand

// The same commands as in `diskcache`, with access to libcurl.
let network = NetworkCommands()
DiskCacheTool.main(
    reaching: network,
    bodies: ["fetch": network.fetch, "push": network.push, "pull": network.pull]
)
