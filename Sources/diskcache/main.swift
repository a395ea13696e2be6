// SPDX-License-Identifier: Apache-2.0

import DiskCacheCommand

// A static executable, which starts faster than one that can load libcurl.
DiskCacheTool.main(reaching: nil)
