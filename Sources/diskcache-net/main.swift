// SPDX-License-Identifier: Apache-2.0

import DiskCacheCommand

// The same commands as `diskcache`, with libcurl at hand.
DiskCacheTool.main(reaching: CommandNetwork())
