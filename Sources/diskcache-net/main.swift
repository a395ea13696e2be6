// SPDX-License-Identifier: Apache-2.0

import DiskCacheCommand

// The same commands as in `diskcache`, with access to libcurl.
DiskCacheTool.main(reaching: CommandNetwork())
