// SPDX-License-Identifier: Apache-2.0

import DiskCacheCommand

// As one static file, which starts sooner than one that could load libcurl.
DiskCacheTool.main(reaching: nil)
